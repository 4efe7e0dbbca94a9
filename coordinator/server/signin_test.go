package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/signin"
	"github.com/starling-fl/starling/coordinator/store"
)

// TestNobodySignsInWithoutIssuer: the routes are there, and lead nowhere.
func TestNobodySignsInWithoutIssuer(t *testing.T) {
	h, _, _ := deskOf(t)
	for path, want := range map[string]int{"/v1/oidc/issuer.json": 200, "/v1/oidc/login": 404, "/v1/oidc/callback?code=a&state=b": 404} {
		if code, body := asked(t, h, "GET", path, nil); code != want || want == 200 && strings.TrimSpace(string(body)) != "null" {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, _ := asked(t, h, "GET", "/v1/admin/who.json", map[string]string{"Authorization": "Bearer a.b.c"}); code != 401 {
		t.Errorf("an ID token of nobody's: %d", code)
	}
}

// TestIssuerAway: an issuer that cannot be reached is said to be that, and the coordinator's own tokens
// work; the end of a login that nobody began is refused, and leads nowhere else.
func TestIssuerAway(t *testing.T) {
	issuer, err := signin.New(signin.Config{Issuer: "https://id.example.org", ClientID: "starling", Claim: "groups", Groups: map[store.Role][]string{store.RoleViewer: {"staff"}}})
	ok(t, err)
	c, s := serve(t, tinyJob(3), Config{SignIn: issuer})
	defer c.Close()
	ok(t, s.AdminAt("https://fl.example.org/operators"))
	h := s.named(s.AdminHandler())
	for token, want := range map[string]int{s.AdminToken(): 200, "a.b.c": 503, "a.b": 401, "starling-session-" + strings.Repeat("0", 64): 401} {
		if code, body := asked(t, h, "GET", "/v1/admin/who.json", map[string]string{"Authorization": "Bearer " + token}); code != want {
			t.Errorf("%s: %d %s", token, code, body)
		}
	}
	code, body := asked(t, h, "GET", "/v1/oidc/issuer.json", nil)
	var said struct {
		Issuer string
		Ready  bool
	}
	if err := json.Unmarshal(body, &said); code != 200 || err != nil || said.Issuer != "id.example.org" || said.Ready {
		t.Errorf("%d %s", code, body)
	}
	for path, want := range map[string]int{"/v1/oidc/login?again": 503, "/v1/oidc/callback?code=a&state=b": 503} {
		if code, body := asked(t, h, "GET", path, map[string]string{"Cookie": "__Host-starling-login=a.https://evil.example"}); code != want || !strings.Contains(string(body), "cannot be reached") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	// Under another name than the one that the issuer sends browsers back to the cookie would be lost.
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/v1/oidc/login", nil))
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "https://fl.example.org/operators/v1/oidc/login?again" {
		t.Errorf("%d to %q", w.Code, to)
	}
}
