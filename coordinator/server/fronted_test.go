package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A page of ours is one behind a proxy too, whatever name that asks under; a page of a
// stranger's is not, and none of them has a way to the operator's endpoints.
func TestPagesBehindAProxy(t *testing.T) {
	c, s := serve(t, tinyJob(3), Config{})
	t.Cleanup(func() { ok(t, c.Close()) })
	s.Token("https://fl.example.org:8443/some/path", nil)
	devices, operator := s.fronted(s.named(s.Handler())), s.named(s.AdminHandler())
	const ours = "https://fl.example.org:8443"
	for _, x := range []struct {
		to           http.Handler
		host, origin string
		want         int
	}{
		{devices, "fl.example.org:8443", ours, 200},
		{devices, "fl.example.org", ours, 200},
		{devices, "127.0.0.1:8080", ours, 200},
		{devices, "127.0.0.1:8080", "https://fl.example.org", 403},
		{devices, "127.0.0.1:8080", "https://evil.example", 403},
		{devices, "evil.example", ours, http.StatusMisdirectedRequest},
		{devices, "evil.example", "https://evil.example", http.StatusMisdirectedRequest},
		{operator, "127.0.0.1:9090", ours, 403},
		{operator, "127.0.0.1:9090", "http://127.0.0.1:9090", 200},
	} {
		r := httptest.NewRequest("GET", "/healthz", nil)
		r.Host = x.host
		r.Header.Set("Origin", x.origin)
		w := httptest.NewRecorder()
		x.to.ServeHTTP(w, r)
		if w.Code != x.want {
			t.Errorf("for %s from %s: %d, want %d", x.host, x.origin, w.Code, x.want)
		}
	}
}
