package checkup

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// found is what a device's checks find, by their names.
func found(t *testing.T, d Device) (map[string]Check, *Report) {
	t.Helper()
	d.Version, d.Cache = "test", t.TempDir()
	r, err := d.Run(watchdog.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]Check{}
	for _, c := range r.Checks {
		by[c.Name] = c
		if c.Found == Failed && c.Name != "data" && c.Next == "" {
			t.Errorf("%s fails, and nothing says what to do: %s", c.Name, c.Detail)
		}
	}
	return by, r
}

func token(t *testing.T, url string) string {
	t.Helper()
	text, err := edge.JoinToken(url)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The machine alone is looked at where no coordinator is named; a data file is read.
func TestMachine(t *testing.T) {
	by, r := found(t, Device{})
	if by["disk"].Found != OK || by["coordinator"].Found != Unknown || r.Err() != nil {
		t.Errorf("%+v", r)
	}
	bad := filepath.Join(t.TempDir(), "bad.tsv")
	if err := os.WriteFile(bad, []byte("no tab\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	by, r = found(t, Device{Data: bad})
	if by["data"].Found != Failed || r.Err() == nil || !strings.Contains(by["data"].Detail, "no tab") {
		t.Errorf("%+v", r)
	}
	var text strings.Builder
	if err := r.Print(&text); err != nil || !strings.Contains(text.String(), "failed       data ") {
		t.Errorf("%v: %s", err, &text)
	}
}

// What is between a device and its coordinator is told apart: nobody there, another server, a certificate that nobody
// trusts, a clock, a proxy that passes no WebSockets on.
func TestTheWay(t *testing.T) {
	var skew time.Duration
	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Date", time.Now().Add(skew).UTC().Format(http.TimeFormat))
	})
	plain, secure, other := httptest.NewServer(site), httptest.NewTLSServer(site), httptest.NewServer(http.NotFoundHandler())
	for _, s := range []*httptest.Server{plain, secure, other} {
		t.Cleanup(s.Close)
	}
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = nobody.Close() // its port is free now
	by, r := found(t, Device{Token: token(t, plain.URL)})
	if by["network"].Found != OK || by["tls"].Found != OK || by["clock"].Found != OK || by["websocket"].Found != Failed || r.Failed != 1 {
		t.Errorf("a server without sessions: %+v", r)
	}
	skew = time.Hour + 30*time.Second
	if by, r = found(t, Device{Token: token(t, plain.URL)}); by["clock"].Found != Warning || !strings.Contains(by["clock"].Detail, "-1h0m") {
		t.Errorf("an hour apart: %+v", r)
	}
	for url, says := range map[string]string{
		other.URL:                          "404 Not Found",
		secure.URL:                         "certificate",
		"http://" + nobody.Addr().String(): "refused",
	} {
		if by, r = found(t, Device{Token: token(t, url)}); by["network"].Found != Failed || !strings.Contains(by["network"].Detail, says) || len(by) != 6 {
			t.Errorf("%s: %+v", says, r)
		}
	}
	if by, r = found(t, Device{Token: "starling2_nonsense"}); by["token"].Found != Failed {
		t.Errorf("no token: %+v", r)
	}
}
