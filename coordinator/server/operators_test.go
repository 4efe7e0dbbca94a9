package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// deskOf is the operator's listener of a coordinator that makes no round, and its fleet.
func deskOf(t *testing.T) (h http.Handler, s *Server, f *store.Fleet) {
	t.Helper()
	c, s := serve(t, tinyJob(3), Config{})
	t.Cleanup(func() { ok(t, c.Close()) })
	f, err := c.Fleet()
	ok(t, err)
	t.Cleanup(func() { ok(t, f.Close()) })
	return s.named(s.AdminHandler()), s, f
}

// posted sends JSON with a token.
func posted(h http.Handler, token, path, body string) (int, string) {
	r := httptest.NewRequest("POST", "http://127.0.0.1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestRolesOfRoutes: each route lets in those of its role and above, and nobody else.
func TestRolesOfRoutes(t *testing.T) {
	h, s, f := deskOf(t)
	rolesHold(t, h, f, s.routes())
}

func rolesHold(t *testing.T, h http.Handler, f *store.Fleet, routes []route) {
	t.Helper()
	tokens := map[store.Role]string{}
	for _, role := range store.Roles {
		_, token, err := f.AddOperator("a "+string(role), role, time.Hour)
		ok(t, err)
		tokens[role] = token
	}
	for _, r := range routes {
		method, path, _ := strings.Cut(r.pattern, " ")
		path = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "none")
		switch path {
		case "/v1/admin/events", "/debug/pprof/profile", "/debug/pprof/trace": // go on for seconds where they are let in
			continue
		}
		if r.role == "" { // for anybody: see TestNobodySignsInWithoutIssuer
			continue
		}
		for role, token := range tokens {
			code, _ := asked(t, h, method, path, map[string]string{"Authorization": "Bearer " + token})
			if let := code != http.StatusForbidden; let != role.Allows(r.role) || code == http.StatusUnauthorized {
				t.Errorf("%s for %s: %d, it is for %s", r.pattern, role, code, r.role)
			}
		}
		for name, given := range map[string]string{"nobody": "", "a made-up token": "Bearer " + tokens[store.RoleAdmin][:50] + strings.Repeat("0", 32),
			"another scheme": "Basic " + tokens[store.RoleAdmin]} {
			if code, _ := asked(t, h, method, path, map[string]string{"Authorization": given}); code != http.StatusUnauthorized {
				t.Errorf("%s for %s: %d", r.pattern, name, code)
			}
		}
		if code, _ := asked(t, h, method, path+"?token="+tokens[store.RoleAdmin], map[string]string{"Cookie": "token=" + tokens[store.RoleAdmin]}); code != http.StatusUnauthorized {
			t.Errorf("%s by a token in address or cookie: %d", r.pattern, code)
		}
	}
}

// TestOperatorsOverHTTP: an admin names an operator, who invites a device and is revoked;
// what was done is listed under the names.
func TestOperatorsOverHTTP(t *testing.T) {
	h, s, f := deskOf(t)
	code, body := posted(h, s.AdminToken(), "/v1/admin/operators", `{"name": "Ada", "role": "operator", "seconds": 3600}`)
	var ada Added
	if err := json.Unmarshal([]byte(body), &ada); code != 200 || err != nil || ada.Role != store.RoleOperator {
		t.Fatalf("%d %s", code, body)
	}
	code, body = posted(h, ada.Token, "/v1/admin/invitations", `{"uses": 3, "note": "laptops"}`)
	var in Invited
	if err := json.Unmarshal([]byte(body), &in); code != 200 || err != nil || in.Uses != 3 || len(in.Secret) != 32 {
		t.Fatalf("%d %s", code, body)
	}
	for what, want := range map[string]int{`{"uses": 0}`: 400, `{"use": 3}`: 400, `{"uses": 3} {}`: 400, `{"seconds": -1}`: 400, `{"seconds": 9223372036854775807}`: 400,
		`{"note": "` + strings.Repeat("a", 5000) + `"}`: 400} {
		if code, body := posted(h, ada.Token, "/v1/admin/invitations", what); code != want {
			t.Errorf("%.40s: %d %s", what, code, body)
		}
	}
	if code, body := posted(h, ada.Token, "/v1/admin/operators", `{"name": "Eve", "role": "admin", "seconds": 3600}`); code != 403 || !strings.Contains(body, "names viewers only") {
		t.Errorf("an operator names an admin: %d %s", code, body)
	}
	if code, body := posted(h, s.AdminToken(), "/v1/admin/operators", `{"name": "Ada", "role": "viewer", "seconds": 3600}`); code != 400 {
		t.Errorf("a name twice: %d %s", code, body)
	}
	if code, _ := posted(h, s.AdminToken(), "/v1/admin/operators/Ada/revoke", ""); code != 200 {
		t.Errorf("revoked: %d", code)
	}
	if code, _ := posted(h, ada.Token, "/v1/admin/invitations", `{}`); code != 401 {
		t.Errorf("a revoked operator invites: %d", code)
	}
	acts, _, err := f.Acts()
	ok(t, err)
	var said []string
	for _, a := range acts {
		said = append(said, fmt.Sprintf("%s: %s %s", a.By, a.Act, a.Subject))
	}
	want := []string{"(the folder): add operator Ada as operator", "Ada: invite invitation 1, 3 devices", "(the folder): revoke operator Ada"}
	if fmt.Sprint(said) != fmt.Sprint(want) {
		t.Errorf("acts %q, want %q", said, want)
	}
}

// TestRevokedInMidStream: a dashboard that is open when its operator is revoked is told
// nothing more, however much happens.
func TestRevokedInMidStream(t *testing.T) {
	job := tinyJob(3)
	job.Enrolment.Secret = "a secret of sixteen bytes"
	c, s := serve(t, job, Config{})
	t.Cleanup(func() { ok(t, c.Close()) })
	f, err := c.Fleet()
	ok(t, err)
	t.Cleanup(func() { ok(t, f.Close()) })
	_, token, err := f.AddOperator("Ada", store.RoleViewer, time.Hour)
	ok(t, err)
	desk := httptest.NewServer(s.AdminHandler())
	t.Cleanup(desk.Close)
	r, err := http.NewRequestWithContext(watchdog.Context(t), "GET", desk.URL+"/v1/admin/events", nil)
	ok(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := desk.Client().Do(r)
	ok(t, err)
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, len("event: overview"))); err != nil || res.StatusCode != 200 {
		t.Fatalf("%s, %v", res.Status, err)
	}
	ok(t, f.RevokeOperator("Ada"))
	enrolled(t, c, s)
	rest, err := io.ReadAll(res.Body) // it ends
	if err != nil || strings.Contains(string(rest), `"version":1`) {
		t.Errorf("%v, %.300s", err, rest)
	}
}

// TestOpenAPI: the document has every route, with its role, and no other.
func TestOpenAPI(t *testing.T) {
	_, s, _ := deskOf(t)
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	ok(t, json.Unmarshal(openAPI, &doc))
	described := 0
	for _, methods := range doc.Paths {
		for m := range methods {
			if m != "parameters" {
				described++
			}
		}
	}
	routes := s.routes()
	site, _ := siteOf(t)
	for _, r := range site.routes() {
		if !slices.ContainsFunc(routes, func(o route) bool { return o.pattern == r.pattern }) {
			routes = append(routes, r)
		}
	}
	for _, r := range routes {
		method, path, _ := strings.Cut(r.pattern, " ")
		var is struct {
			Role     store.Role `json:"x-role"`
			Security *[]any     `json:"security"`
		}
		if err := json.Unmarshal(doc.Paths[path][strings.ToLower(method)], &is); err != nil || is.Role != r.role || (is.Security != nil && len(*is.Security) == 0) != (r.role == "") {
			t.Errorf("%s is for %q in openapi.json, and for %q: %v", r.pattern, is.Role, r.role, err)
		}
	}
	if described != len(routes) {
		t.Errorf("%d requests are described, there are %d", described, len(routes))
	}
}
