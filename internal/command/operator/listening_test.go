package operator

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/usage"
)

// TestAdminAddressStays: the operator's address of a folder is the one of the start before,
// and another where somebody else has that, or it cannot be read.
func TestAdminAddressStays(t *testing.T) {
	f := serveFlags{dir: t.TempDir(), admin: freeAdmin}
	listen := func() (address string, end func()) {
		t.Helper()
		e, err := f.listenAdmin()
		if err != nil {
			t.Fatal(err)
		}
		return e.Listener.Addr().String(), func() {
			if err := e.Listener.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	first, end := listen()
	taken, other := listen()
	if taken == first {
		t.Errorf("both listen on %s", first)
	}
	end()
	other()
	again, end := listen()
	end()
	if again != taken { // the last start's
		t.Errorf("%s, the start before had %s", again, taken)
	}
	for _, text := range []string{"nonsense", "0.0.0.0:1234\n", "127.0.0.1:99999"} {
		if err := os.WriteFile(filepath.Join(f.dir, adminFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at, end := listen()
		end()
		if ap, err := netip.ParseAddrPort(at); err != nil || !ap.Addr().IsLoopback() {
			t.Errorf("%q led to %s, %v", text, at, err)
		}
	}
	f.admin = "127.0.0.1:nonsense"
	if _, err := f.listenAdmin(); err == nil {
		t.Error("an address that is none was taken")
	}
}

// TestCertificateFlags: one way to TLS, whole.
func TestCertificateFlags(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		f    serveFlags
		want string // of the error; "plain", "tls": none
	}{
		"none":             {serveFlags{}, "plain"},
		"pinned":           {serveFlags{tls: true}, "tls"},
		"two ways":         {serveFlags{tls: true, acme: "fl.example.org"}, "give one"},
		"half a pair":      {serveFlags{cert: "a.pem", url: "https://x"}, "go together"},
		"no name":          {serveFlags{cert: "a.pem", key: "b.pem"}, "needs --url"},
		"no files":         {serveFlags{cert: "a.pem", key: "b.pem", url: "https://x"}, "a.pem"},
		"acme":             {serveFlags{acme: "fl.example.org"}, "tls"},
		"directory alone":  {serveFlags{directory: "https://x"}, "needs --acme"},
		"no authority":     {serveFlags{acme: "fl.example.org", directory: "https://x", authority: "a.pem"}, "a.pem"},
		"an empty one":     {serveFlags{acme: "fl.example.org", directory: "https://x", authority: "listening_test.go"}, "no certificate"},
		"authority alone":  {serveFlags{acme: "fl.example.org", authority: "a.pem"}, "needs --acme-directory"},
		"directory, pairs": {serveFlags{cert: "a.pem", key: "b.pem", url: "https://x", directory: "https://x"}, "needs --acme"},
	} {
		c.f.dir = dir
		cert, err := c.f.certificate(slog.New(slog.DiscardHandler))
		switch {
		case c.want == "plain" || c.want == "tls":
			if err != nil || (cert != nil) != (c.want == "tls") {
				t.Errorf("%s: %v, %v", name, cert, err)
			}
		case err == nil || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestTrustedProxies(t *testing.T) {
	got, err := serveFlags{trusted: []string{"10.1.2.3/8", "192.0.2.1", "fd00::/8"}}.proxies()
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("fd00::/8")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	var wrong usage.Error
	if _, err := (serveFlags{trusted: []string{"proxy.example.org"}}).proxies(); !errors.As(err, &wrong) {
		t.Errorf("a name: %v", err)
	}
}
