package server

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestCameFrom: a trusted proxy's word is taken, nobody else's, and no further than to the
// first address that is not a proxy.
func TestCameFrom(t *testing.T) {
	s := &Server{desk: desk{trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/24"),
		netip.MustParsePrefix("fd00::/8")}}}
	for name, c := range map[string]struct{ remote, forwarded, want string }{
		"no proxy":               {"192.0.2.1:77", "198.51.100.9", "192.0.2.1:77"},
		"a proxy":                {"127.0.0.1:77", "198.51.100.9", "198.51.100.9:0"},
		"says nothing":           {"127.0.0.1:77", "", "127.0.0.1:77"},
		"two of them":            {"127.0.0.1:77", "198.51.100.9, 10.0.0.3", "198.51.100.9:0"},
		"a device that lies":     {"127.0.0.1:77", "203.0.113.1, 127.0.0.1, 198.51.100.9", "198.51.100.9:0"},
		"a device's noise":       {"127.0.0.1:77", "<script>, 198.51.100.9", "198.51.100.9:0"},
		"a proxy's noise":        {"127.0.0.1:77", "198.51.100.9, unknown", "127.0.0.1:77"},
		"IPv6":                   {"[fd00::1]:77", "2001:db8::5", "[2001:db8::5]:0"},
		"IPv4 in IPv6":           {"[::ffff:127.0.0.1]:77", "::ffff:198.51.100.9", "198.51.100.9:0"},
		"all of them are":        {"127.0.0.1:77", "10.0.0.7", "10.0.0.7:0"},
		"longer than any way is": {"127.0.0.1:77", "198.51.100.9" + strings.Repeat(", 10.0.0.3", 1000), "10.0.0.3:0"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.remote
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := s.cameFrom(r); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	none := &Server{}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Forwarded-For", "198.51.100.9")
	if got := none.cameFrom(r); got != r.RemoteAddr {
		t.Errorf("nobody is trusted: %s", got)
	}
}
