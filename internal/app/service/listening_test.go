package service

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/app/usage"
)

// TestAdminAddressStays: the operator's address of a folder is the one of the start before,
// and another where somebody else has that, or it cannot be read.
func TestAdminAddressStays(t *testing.T) {
	f := &Config{Dir: t.TempDir(), Admin: FreeAdmin}
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
		if err := os.WriteFile(filepath.Join(f.Dir, adminFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at, end := listen()
		end()
		if ap, err := netip.ParseAddrPort(at); err != nil || !ap.Addr().IsLoopback() {
			t.Errorf("%q led to %s, %v", text, at, err)
		}
	}
	f.Admin = "127.0.0.1:nonsense"
	if _, err := f.listenAdmin(); err == nil {
		t.Error("an address that is none was taken")
	}
}

// TestCertificateFlags: one way to TLS, whole.
func TestCertificateFlags(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		f    TLS
		url  string
		want string // of the error; "plain", "tls": none
	}{
		"none":             {TLS{}, "", "plain"},
		"pinned":           {TLS{Pinned: true}, "", "tls"},
		"two ways":         {TLS{Pinned: true, Host: "fl.example.org"}, "", "give one"},
		"half a pair":      {TLS{Cert: "a.pem"}, "https://x", "go together"},
		"no name":          {TLS{Cert: "a.pem", Key: "b.pem"}, "", "needs --url"},
		"no files":         {TLS{Cert: "a.pem", Key: "b.pem"}, "https://x", "a.pem"},
		"acme":             {TLS{Host: "fl.example.org"}, "", "tls"},
		"directory alone":  {TLS{Directory: "https://x"}, "", "needs --acme"},
		"no authority":     {TLS{Host: "fl.example.org", Directory: "https://x", Authorities: "a.pem"}, "", "a.pem"},
		"an empty one":     {TLS{Host: "fl.example.org", Directory: "https://x", Authorities: "listening_test.go"}, "", "no certificate"},
		"authority alone":  {TLS{Host: "fl.example.org", Authorities: "a.pem"}, "", "needs --acme-directory"},
		"directory, pairs": {TLS{Cert: "a.pem", Key: "b.pem", Directory: "https://x"}, "https://x", "needs --acme"},
	} {
		cert, err := (&Config{Dir: dir, TLS: c.f, URL: c.url}).certificate(slog.New(slog.DiscardHandler))
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
	got, err := (&Config{Trusted: []string{"10.1.2.3/8", "192.0.2.1", "fd00::/8"}}).proxies()
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("fd00::/8")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	var wrong usage.Error
	if _, err := (&Config{Trusted: []string{"proxy.example.org"}}).proxies(); !errors.As(err, &wrong) {
		t.Errorf("a name: %v", err)
	}
}
