package server

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/store"
)

// asked sends a request to the operator's endpoints as they are served.
func asked(t *testing.T, h http.Handler, method, path string, header map[string]string) (int, []byte) {
	t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1"+path, nil)
	for k, v := range header {
		if k == "Host" {
			r.Host = v
		} else {
			r.Header.Set(k, v)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, b
}

// enrolled runs a job of three devices, which stay enrolled.
func enrolled(t *testing.T, c *coordinator.Coordinator, s *Server) {
	t.Helper()
	devices := httptest.NewServer(s.Handler())
	t.Cleanup(devices.Close)
	play(t, c, s.Token(devices.URL, nil), 3)
}

// The operator bans and pardons a device from the dashboard; nobody else does, from
// wherever and with whatever method.
func TestBanFromTheDashboard(t *testing.T) {
	job := tinyJob(3)
	job.Enrolment.Secret = "a secret of sixteen bytes"
	c, s := serve(t, job, Config{})
	t.Cleanup(func() { ok(t, c.Close()) })
	h := s.named(s.AdminHandler())
	bearer := map[string]string{"Authorization": "Bearer " + s.AdminToken()}
	list := func() (d []store.Device) {
		code, b := asked(t, h, "GET", "/v1/admin/devices.json", bearer)
		if err := json.Unmarshal(b, &d); code != 200 || err != nil {
			t.Fatalf("%d %s %v", code, b, err)
		}
		return d
	}
	if d := list(); len(d) != 0 {
		t.Fatalf("devices before any came: %+v", d)
	}
	if code, _ := asked(t, h, "POST", "/v1/admin/devices/"+strings.Repeat("ab", 32)+"/ban", bearer); code != http.StatusNotFound {
		t.Errorf("a device that is not there is banned: %d", code)
	}
	enrolled(t, c, s)
	if d := list(); len(d) != 3 {
		t.Fatalf("the devices are %+v", d)
	}
	id := list()[0].Identity
	path := "/v1/admin/devices/" + id + "/ban"
	for name, try := range map[string]struct {
		method, path string
		header       map[string]string
		want         int
	}{
		"a stranger":             {"POST", path, nil, 401},
		"another token":          {"POST", path, map[string]string{"Authorization": "Bearer " + strings.Repeat("0", 64)}, 401},
		"the token in a cookie":  {"POST", path, map[string]string{"Cookie": "token=" + s.AdminToken()}, 401},
		"the token in the path":  {"POST", path + "?token=" + s.AdminToken(), nil, 401},
		"a link":                 {"GET", path, bearer, 405},
		"a page elsewhere":       {"POST", path, map[string]string{"Authorization": bearer["Authorization"], "Origin": "https://evil.example"}, 403},
		"a name made to mean us": {"POST", path, map[string]string{"Authorization": bearer["Authorization"], "Host": "evil.example"}, 421},
		"some digits":            {"POST", "/v1/admin/devices/" + id[:8] + "/ban", bearer, 400},
		"no digits":              {"POST", "/v1/admin/devices/" + strings.Repeat("%25", 32) + strings.Repeat("_", 32) + "/ban", bearer, 404},
		"another act":            {"POST", "/v1/admin/devices/" + id + "/destroy", bearer, 404},
	} {
		if code, b := asked(t, h, try.method, try.path, try.header); code != try.want {
			t.Errorf("%s: %d %s, want %d", name, code, b, try.want)
		}
	}
	if d := list(); d[0].Identity != id || d[0].Excluded != "" {
		t.Fatalf("after all of them: %+v", d)
	}
	if code, b := asked(t, h, "POST", path, bearer); code != 200 {
		t.Fatalf("the operator: %d %s", code, b)
	}
	if d := list(); d[0].Excluded == "" {
		t.Errorf("after the ban: %+v", d)
	}
	if code, _ := asked(t, h, "POST", "/v1/admin/devices/"+id+"/pardon", bearer); code != 200 {
		t.Errorf("pardon: %d", code)
	}
	if d := list(); d[0].Excluded != "" {
		t.Errorf("after the pardon: %+v", d)
	}
}

// The dashboard shows the link that devices join by, to the operator alone.
func TestInvitationOnTheDashboard(t *testing.T) {
	job := tinyJob(3)
	job.Enrolment.Secret = "a secret of sixteen bytes"
	c, s := serve(t, job, Config{})
	t.Cleanup(func() { ok(t, c.Close()) })
	bearer := map[string]string{"Authorization": "Bearer " + s.AdminToken()}
	get := func() (in Invitation) {
		code, b := asked(t, s.AdminHandler(), "GET", "/v1/admin/invitation.json", bearer)
		if err := json.Unmarshal(b, &in); code != 200 || err != nil {
			t.Fatalf("%d %s %v", code, b, err)
		}
		return in
	}
	if code, b := asked(t, s.AdminHandler(), "GET", "/v1/admin/invitation.json", nil); code != 401 {
		t.Errorf("a stranger gets %d %s", code, b)
	}
	if code, _ := asked(t, s.Handler(), "GET", "/v1/admin/invitation.json", bearer); code != 404 {
		t.Errorf("the devices' listener answers %d", code)
	}
	token := s.Token("https://fl.example.org", nil)
	in := get()
	if in.Link != "https://fl.example.org/#"+token || in.Local || !strings.HasPrefix(in.SVG, "<svg ") {
		t.Errorf("%+v", in)
	}
	s.Token("http://[::1]:8080", nil)
	if in := get(); !in.Local {
		t.Errorf("a loopback address is for others: %+v", in)
	}
}

// Before a round is committed there is no adapter to download.
func TestArchive(t *testing.T) {
	job := tinyJob(3)
	c, s := serve(t, job, Config{})
	t.Cleanup(func() { ok(t, c.Close()) })
	bearer := map[string]string{"Authorization": "Bearer " + s.AdminToken()}
	if code, _ := asked(t, s.AdminHandler(), "GET", "/v1/admin/adapter.zip", bearer); code != 404 {
		t.Errorf("before the first round: %d", code)
	}
	enrolled(t, c, s)
	code, b := asked(t, s.AdminHandler(), "GET", "/v1/admin/adapter.zip", bearer)
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if code != 200 || err != nil || len(z.File) != 4 {
		t.Fatalf("%d, %v", code, err)
	}
}

// The operator's sample is offered to visitors as the file it is; without one there
// is neither its name nor an address.
func TestSample(t *testing.T) {
	about := func(s *Server) string {
		code, b := asked(t, s.Handler(), "GET", "/v1/job", nil)
		var a coordinator.About
		if err := json.Unmarshal(b, &a); code != 200 || err != nil {
			t.Fatalf("%d %s %v", code, b, err)
		}
		return a.Sample
	}
	c, s := serve(t, tinyJob(3), Config{Sample: []byte("a\tthe fox\n"), SampleName: `try "it".tsv`})
	t.Cleanup(func() { ok(t, c.Close()) })
	if about(s) != `try "it".tsv` {
		t.Errorf("the sample is called %q", about(s))
	}
	if code, b := asked(t, s.Handler(), "GET", "/v1/sample", nil); code != 200 || string(b) != "a\tthe fox\n" {
		t.Errorf("%d %q", code, b)
	}
	none, without := serve(t, tinyJob(3), Config{})
	t.Cleanup(func() { ok(t, none.Close()) })
	if code, _ := asked(t, without.Handler(), "GET", "/v1/sample", nil); code != 404 || about(without) != "" {
		t.Errorf("without a sample: %d, %q", code, about(without))
	}
	if _, err := New(none, Config{Sample: make([]byte, MostSample+1), SampleName: "large.tsv"}); err == nil || !strings.Contains(err.Error(), "large.tsv") {
		t.Errorf("a sample that is too large: %v", err)
	}
}
