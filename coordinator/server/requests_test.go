package server

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestRequestsAreNumbered: each answer has a number of its own under which it is logged; a
// trusted proxy's is taken, a device's own never is, nor what could forge a line; and nothing
// that a request shows is logged.
func TestRequestsAreNumbered(t *testing.T) {
	var log bytes.Buffer
	d := &desk{log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	var seen string
	h := d.identified(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = requestOf(r.Context())
		d.logOf(r).Error("it fails")
	}))
	get := func(remote string, header ...string) string {
		t.Helper()
		r := httptest.NewRequest("GET", "/v1/status?token=hidden", nil)
		r.RemoteAddr = remote
		r.Header.Set("Authorization", "Bearer hidden")
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		id := w.Header().Get(RequestID)
		if id == "" || id != seen || strings.Count(log.String(), "request="+id) != 2 {
			t.Errorf("answered as %q, handled as %q, logged as %s", id, seen, log.String())
		}
		if strings.Contains(log.String(), "hidden") || !strings.Contains(log.String(), "path=/v1/status ") {
			t.Errorf("logged: %s", log.String())
		}
		log.Reset()
		return id
	}
	const given = "from-the-proxy.1"
	if a, b := get("192.0.2.1:7"), get("192.0.2.1:7"); a == b || len(a) != 16 {
		t.Errorf("numbers %q and %q", a, b)
	}
	if id := get("127.0.0.1:7", "X-Forwarded-For", "198.51.100.9", RequestID, given); id != given {
		t.Errorf("a trusted proxy's %q is %q", given, id)
	}
	for name, header := range map[string][]string{
		"a device's":       {"192.0.2.1:7", "X-Forwarded-For", "198.51.100.9", RequestID, given},
		"this machine's":   {"127.0.0.1:7", RequestID, given}, // no proxy: it names nobody
		"two":              {"127.0.0.1:7", "X-Forwarded-For", "198.51.100.9", RequestID, given, RequestID, given},
		"a line of a log":  {"127.0.0.1:7", "X-Forwarded-For", "198.51.100.9", RequestID, "x\nlevel=ERROR"},
		"one that is long": {"127.0.0.1:7", "X-Forwarded-For", "198.51.100.9", RequestID, strings.Repeat("a", 65)},
	} {
		if id := get(header[0], header[1:]...); id == given || len(id) != 16 {
			t.Errorf("%s number is taken: %q", name, id)
		}
	}
}
