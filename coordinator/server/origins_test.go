package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

func TestParseOrigin(t *testing.T) {
	for text, want := range map[string]string{
		"https://app.example.org":      "https://app.example.org",
		"https://APP.example.org:443/": "https://app.example.org",
		"https://app.example.org:8443": "https://app.example.org:8443",
		"http://localhost:5173":        "http://localhost:5173",
		"http://127.0.0.1:80":          "http://127.0.0.1",
		"http://[0:0:0:0:0:0:0:1]:99":  "http://[::1]:99",
		"https://[2001:DB8::1]":        "https://[2001:db8::1]",
	} {
		if got, err := ParseOrigin(text); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "*", "null", "https://*.example.org", "https://*", "app.example.org", "//app.example.org", "ftp://app.example.org",
		"http://app.example.org", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "https://", "https://app.example.org/path",
		"https://app.example.org?a", "https://app.example.org#", "https://user@app.example.org", "https://bücher.example", "https://a b.example",
		"https://app.example.org,https://b.example", "https://a.example:x", "chrome-extension://abcdef", "https://a\\b.example", "https://[::1%25eth0]"} {
		if got, err := ParseOrigin(text); err == nil {
			t.Errorf("%q is taken as %q", text, got)
		} else if text == "*" && !strings.Contains(err.Error(), "enrol") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, origins := range [][]string{{"*"}, slices.Repeat([]string{"https://a.example"}, 3)} {
		got, err := parseOrigins(origins)
		if bad := origins[0] == "*"; bad != errors.Is(err, ErrOrigin) || !bad && len(got) != 1 {
			t.Errorf("%q: %q, %v", origins, got, err)
		}
	}
	many := make([]string, mostOrigins+1)
	for i := range many {
		many[i] = "https://" + strings.Repeat("a", i+1) + ".example"
	}
	if _, err := parseOrigins(many); !errors.Is(err, ErrOrigin) {
		t.Errorf("%d origins: %v", len(many), err)
	}
}

// What a page of an allowed origin gets: what devices ask for, and nothing else, on the
// devices' listener alone; pages of other origins get what they got before.
func TestAllowedOrigins(t *testing.T) {
	const app, evil = "https://app.example.org", "https://evil.example"
	c, s := serve(t, tinyJob(3), Config{Origins: []string{app, "http://[::1]:5173"}, Pages: http.NotFoundHandler()})
	t.Cleanup(func() { ok(t, c.Close()) })
	s.Token("https://fl.example.org:8443", nil)
	devices, operator := s.reachable(s.Handler()), s.named(s.AdminHandler())
	blob := wire.BlobPath + strings.Repeat("0", 64) // there is none: 404
	for _, x := range []struct {
		to                         http.Handler
		method, path, host, origin string
		want                       int
		allowed                    string
	}{
		{devices, "GET", "/v1/job", "fl.example.org:8443", app, 200, app},
		{devices, "GET", "/v1/job/announced", "fl.example.org:8443", app, 200, app},
		{devices, "GET", "/v1/job/base", "fl.example.org:8443", app, 200, app},
		{devices, "GET", "/v1/status", "127.0.0.1:8080", app, 200, app}, // a proxy's name for it
		{devices, "GET", "/v1/status", "127.0.0.1:8080", "http://[::1]:5173", 200, "http://[::1]:5173"},
		{devices, "GET", blob, "fl.example.org:8443", app, 404, app},
		{devices, "OPTIONS", blob, "fl.example.org:8443", app, 204, app},
		{devices, "OPTIONS", blob, "fl.example.org:8443", evil, 403, ""},
		{devices, "OPTIONS", blob, "evil.example", app, http.StatusMisdirectedRequest, ""},
		{devices, "OPTIONS", "/", "fl.example.org:8443", app, 403, ""},
		// The page itself, and what is beside it, are not another site's to read.
		{devices, "GET", "/", "fl.example.org:8443", app, 403, ""},
		{devices, "GET", "/healthz", "fl.example.org:8443", app, 403, ""},
		{devices, "GET", "/v1/admin/who.json", "fl.example.org:8443", app, 403, ""},
		{devices, "GET", "/v1/status/", "fl.example.org:8443", app, 403, ""},
		// Neither another site nor one that only looks like it.
		{devices, "GET", "/v1/status", "fl.example.org:8443", evil, 403, ""},
		{devices, "GET", "/v1/status", "fl.example.org:8443", "http://app.example.org", 403, ""},
		{devices, "GET", "/v1/status", "fl.example.org:8443", app + ":444", 403, ""},
		{devices, "GET", "/v1/status", "fl.example.org:8443", app + ".evil.example", 403, ""},
		{devices, "GET", "/v1/status", "fl.example.org:8443", "null", 403, ""},
		{devices, "GET", "/v1/status", "fl.example.org:8443", app + " " + evil, 403, ""},
		// A name that was made to mean this machine.
		{devices, "GET", "/v1/status", "evil.example", app, http.StatusMisdirectedRequest, ""},
		{devices, "GET", "/v1/status", "app.example.org", app, http.StatusMisdirectedRequest, ""},
		// Our own page, and who is no page.
		{devices, "GET", "/v1/status", "fl.example.org:8443", "https://fl.example.org:8443", 200, ""},
		{devices, "GET", "/v1/status", "fl.example.org:8443", "", 200, ""},
		// The operator's listener knows no other site.
		{operator, "GET", "/v1/job", "127.0.0.1:9090", app, 403, ""},
		{operator, "GET", "/v1/status", "127.0.0.1:9090", app, 403, ""},
		{operator, "OPTIONS", "/v1/status", "127.0.0.1:9090", app, 403, ""},
		{operator, "POST", "/v1/admin/invitations", "127.0.0.1:9090", app, 403, ""},
	} {
		r := httptest.NewRequest(x.method, x.path, nil)
		r.Host = x.host
		if x.origin != "" {
			r.Header.Set("Origin", x.origin)
		}
		w := httptest.NewRecorder()
		x.to.ServeHTTP(w, r)
		h := w.Header()
		if w.Code != x.want || h.Get("Access-Control-Allow-Origin") != x.allowed {
			t.Errorf("%s %s at %s from %q: %d for %q, want %d for %q", x.method, x.path, x.host, x.origin, w.Code,
				h.Get("Access-Control-Allow-Origin"), x.want, x.allowed)
		}
		if h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %s from %q: credentials are allowed", x.method, x.path, x.origin)
		}
		// An answer without the header must not be cached for a page that would get it.
		if varies := slices.Contains(h.Values("Vary"), "Origin"); varies != (forDevices(x.path) && strings.HasPrefix(x.host, "fl.")) && strings.HasPrefix(x.host, "fl.") {
			t.Errorf("%s %s from %q: Vary is %q", x.method, x.path, x.origin, h.Values("Vary"))
		}
		if x.want == http.StatusNoContent && (h.Get("Access-Control-Allow-Methods") != "GET, HEAD" || !strings.Contains(h.Get("Access-Control-Allow-Headers"), "If-Range")) {
			t.Errorf("a preflight is answered by %v", h)
		}
	}
	r := httptest.NewRequest("GET", "/v1/status", nil)
	r.Host = "fl.example.org:8443"
	r.Header["Origin"] = []string{app, evil}
	w := httptest.NewRecorder()
	devices.ServeHTTP(w, r)
	if w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Error("two origins at once are one that is allowed")
	}
}

// A device's socket opens for the pages of an allowed origin, over the network.
func TestAllowedOriginsSocket(t *testing.T) {
	c, s := serve(t, tinyJob(3), Config{Origins: []string{"https://app.example.org", "http://[::1]:5173"}})
	e, err := Listen("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Token(e.URL, nil)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, e) }()
	for origin, want := range map[string]int{"https://app.example.org": 101, "http://[::1]:5173": 101, "http://[::2]:5173": 403, "https://evil.example": 403,
		"http://app.example.org": 403, "null": 403, e.URL: 101, "": 101} {
		r, err := http.NewRequest("GET", e.URL+wire.Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{"Origin": origin, "Connection": "Upgrade", "Upgrade": "websocket",
			"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
			if v != "" {
				r.Header.Set(k, v)
			}
		}
		res, err := httpClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("from %q: %s, want %d", origin, res.Status, want)
		}
	}
	cancel()
	ok(t, watchdog.Recv(t, "what Serve returns", served))
	ok(t, c.Close())
}

func FuzzParseOrigin(f *testing.F) {
	for _, seed := range []string{"https://app.example.org", "http://[::1]:5173", "*", "https://a:443", "https://%61"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		origin, err := ParseOrigin(text)
		if err != nil {
			return
		}
		if again, err := ParseOrigin(origin); err != nil || again != origin {
			t.Errorf("%q is %q, and that %q: %v", text, origin, again, err)
		}
		if strings.ContainsAny(origin, "*? ,\\") || len(origin) > len(text)+len("[]") {
			t.Errorf("%q is %q", text, origin)
		}
	})
}
