package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/jobs"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
)

// siteOf is a host that runs what is submitted, and its site on a network.
func siteOf(t *testing.T) (*Site, *httptest.Server) {
	t.Helper()
	var site *Site
	host, err := jobs.Open(jobs.Config{Dir: t.TempDir(), Every: 5 * time.Millisecond,
		Open: func(j store.Hosted, dir string, h coordinator.Host) (*coordinator.Coordinator, error) {
			parsed, err := job.Parse(strings.NewReader(string(j.File)))
			if err != nil {
				return nil, err
			}
			return coordinator.New(coordinator.Config{Job: parsed, Dir: dir, Base: tinyBase(t), Hosts: []string{}, Host: h})
		},
		Mount:   func(j store.Hosted, c *coordinator.Coordinator) error { return site.Mount(j, c, j.Name == "root") },
		Unmount: func(name string) { site.Unmount(name) },
	})
	ok(t, err)
	pages := http.NewServeMux()
	for _, path := range []string{"/jobs", "/assets/"} {
		pages.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "page of %s", r.URL.Path) })
	}
	site, err = NewSite(SiteConfig{Host: host, Pages: pages, Version: "v0-test", Accept: func(file []byte) error {
		_, err := job.Parse(bytes.NewReader(file))
		return err
	}})
	ok(t, err)
	devices := httptest.NewServer(site.Handler())
	ok(t, site.Reach(devices.URL, nil))
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- host.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		watchdog.Wait(t, "the host's end", func() { ok(t, <-ran) })
		ok(t, host.Close())
		devices.Close()
	})
	return site, devices
}

// jobText is a job file as an operator sends it.
func jobText(t *testing.T, name string) string {
	t.Helper()
	j := tinyJob(3)
	j.Name = name
	b, err := strict.Encode(j)
	ok(t, err)
	return string(b)
}

// TestSite: operators submit and steer jobs over the admin address, each as its role may;
// devices reach each job below its path, are told whether to come back to one that is not
// there, and all that was done is the fleet's.
func TestSite(t *testing.T) {
	site, front := siteOf(t)
	h := site.named(site.AdminHandler())
	hand, err := site.fleet()
	ok(t, err)
	t.Cleanup(func() { ok(t, hand.Close()) })
	tokens := map[store.Role]string{}
	for _, role := range store.Roles {
		_, token, err := hand.AddOperator("a "+string(role), role, time.Hour)
		ok(t, err)
		tokens[role] = token
	}
	submit := func(token, name string) (int, string) {
		b, err := json.Marshal(Submitted{Name: name, File: jobText(t, name)})
		ok(t, err)
		return posted(h, token, "/v1/admin/jobs", string(b))
	}
	if code, body := submit(tokens[store.RoleOperator], "one"); code != 403 {
		t.Errorf("an operator submits: %d %s", code, body)
	}
	for _, name := range []string{"one", "root"} {
		if code, body := submit(tokens[store.RoleAdmin], name); code != 200 {
			t.Fatalf("an admin submits: %d %s", code, body)
		}
	}
	for what, want := range map[string]int{`{"name": "../x", "file": "name: x"}`: 400, `{"name": "one", "file": "name: x"}`: 400, `{"name": "fresh", "file": "nonsense: 1"}`: 400, `{"name": "x"}`: 400,
		`{"name": "x", "file": "` + strings.Repeat("a", store.MaxHostedFile+1) + `"}`: 400, `{"name": "x", "file": "` + strings.Repeat("a", 3*store.MaxHostedFile) + `"}`: 400} {
		if code, body := posted(h, tokens[store.RoleAdmin], "/v1/admin/jobs", what); code != want {
			t.Errorf("%.40s: %d %s", what, code, body)
		}
	}
	list := func(role store.Role) (lines []JobLine) {
		t.Helper()
		code, b := asked(t, h, "GET", "/v1/admin/jobs.json", map[string]string{"Authorization": "Bearer " + tokens[role]})
		if err := json.Unmarshal(b, &lines); code != 200 || err != nil {
			t.Fatalf("%d %s %v", code, b, err)
		}
		return lines
	}
	becomes := func(i int, state store.State) {
		t.Helper()
		watchdog.Wait(t, "job "+fmt.Sprint(i)+" to be "+string(state), func() {
			for l := list(store.RoleOperator); l[i].State != state || state == store.StateRunning && l[i].Token == ""; l = list(store.RoleOperator) {
				time.Sleep(2 * time.Millisecond)
			}
		}, func() string { return fmt.Sprintf("%+v", list(store.RoleOperator)) })
	}
	becomes(0, store.StateRunning)
	becomes(1, store.StateRunning)
	if seen := list(store.RoleViewer); seen[0].Token != "" || strings.Contains(fmt.Sprint(seen), "secret") {
		t.Errorf("a viewer is shown %+v", seen)
	}
	root, err := wire.ParseToken(site.Token("root"))
	ok(t, err)
	root.URL = front.URL // as devices of before there were several have it
	end := join(t.Context(), t, root.String(), 3)
	becomes(1, store.StateFinished)
	ok(t, end())
	for path, want := range map[string]int{"/jobs/one/v1/job": 200, "/jobs/none/v1/job": 404, "/v1/job": 200, "/jobs/one": 301, "/healthz": 200, "/readyz": 200} {
		if w := ask(site.Handler(), "GET", path); w.Code != want && (want != 301 || w.Code != 307) {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	for _, path := range []string{"/metrics", "/v1/admin/jobs.json", "/jobs/one/v1/admin/ledger.json", "/jobs/one/metrics"} {
		if w := ask(site.Handler(), "GET", path, "Authorization", "Bearer "+tokens[store.RoleAdmin]); w.Code != 404 {
			t.Errorf("%s on the listener of devices: %d", path, w.Code)
		}
		if code, _ := asked(t, h, "GET", path, nil); code != 401 {
			t.Errorf("%s for nobody: %d", path, code)
		}
	}
	ok(t, site.cfg.Host.Budget(1000, 1e-6))
	totals, _, _, err := site.cfg.Host.Totals()
	ok(t, err)
	if len(totals) != 1 || totals[0].Guarantee == nil || !(totals[0].Guarantee.Epsilon > 0) {
		t.Fatalf("spent: %+v", totals)
	}
	fleet := fmt.Sprintf("starling_fleet_epsilon_spent{pool=%q} %v\n", totals[0].Pool, totals[0].Guarantee.Epsilon)
	for _, want := range []string{fleet, fmt.Sprintf("starling_fleet_rounds{pool=%q} 2\n", totals[0].Pool), "starling_fleet_epsilon_budget 1000\n", "starling_fleet_delta 1e-06\n"} {
		if _, b := asked(t, h, "GET", "/metrics", map[string]string{"Authorization": "Bearer " + tokens[store.RoleViewer]}); !strings.Contains(string(b), want) {
			t.Errorf("figures have no %q", want)
		}
	}
	if code, b := asked(t, h, "GET", "/metrics", map[string]string{"Authorization": "Bearer " + tokens[store.RoleViewer]}); code != 200 ||
		!strings.Contains(string(b), `starling_version{job_name="root"} 2`) || !strings.Contains(string(b), `starling_version{job_name="one"} 0`) {
		t.Errorf("figures: %d %.2000s", code, b)
	}
	// The fleet's operators are the jobs', too.
	if code, b := asked(t, h, "GET", "/jobs/root/v1/admin/devices.json", map[string]string{"Authorization": "Bearer " + tokens[store.RoleViewer]}); code != 200 || strings.Count(string(b), `"identity"`) != 3 {
		t.Errorf("devices of a job: %d %s", code, b)
	}
	// Who is invited from a job's own dashboard is led to that job.
	var led Invited
	code, body := posted(h, tokens[store.RoleOperator], "/jobs/one/v1/admin/invitations", "{}")
	if err := json.Unmarshal([]byte(body), &led); code != 200 || err != nil {
		t.Fatalf("an invitation: %d %s", code, body)
	}
	page, text, _ := strings.Cut(led.Link, "#")
	if to, err := wire.ParseToken(text); err != nil || page != front.URL+"/jobs/one/" || to.URL != front.URL+"/jobs/one" || len(to.Task) == 0 {
		t.Errorf("an invitation to a job leads to %s, %v", led.Link, err)
	}
	// A link that shows a run shows that one alone, and nothing of the server's.
	var link Added
	code, body = posted(h, tokens[store.RoleOperator], "/jobs/one/v1/admin/operators", `{"name": "a guest", "role": "viewer", "seconds": 3600}`)
	if err := json.Unmarshal([]byte(body), &link); code != 200 || err != nil {
		t.Fatalf("a link: %d %s", code, body)
	}
	for path, want := range map[string]int{"/jobs/one/v1/admin/who.json": 200, "/jobs/one/metrics": 200, "/jobs/root/v1/admin/who.json": 401,
		"/jobs/one/v1/admin/fleet.json": 403, "/jobs/one/v1/admin/devices.json": 403, "/jobs/one/v1/admin/paused.json": 200,
		"/v1/admin/who.json": 401, "/v1/admin/jobs.json": 401, "/v1/admin/spending.json": 401, "/metrics": 401} {
		if code, _ := asked(t, h, "GET", path, map[string]string{"Authorization": "Bearer " + link.Token}); code != want {
			t.Errorf("%s by a link to one job: %d, want %d", path, code, want)
		}
	}
	steer := func(role store.Role, name, act string, want int) {
		t.Helper()
		if code, body := posted(h, tokens[role], "/v1/admin/jobs/"+name+"/"+act, ""); code != want {
			t.Errorf("%s of %s by a %s: %d %s", act, name, role, code, body)
		}
	}
	steer(store.RoleViewer, "one", "pause", 403)
	steer(store.RoleOperator, "one", "pause", 200)
	becomes(0, store.StatePaused)
	// A pause is one thing, wherever it is said and taken back: here, and on the job's own dashboard.
	paused := func() string {
		t.Helper()
		code, b := asked(t, h, "GET", "/jobs/one/v1/admin/paused.json", map[string]string{"Authorization": "Bearer " + tokens[store.RoleViewer]})
		if code != 200 {
			t.Errorf("whether the job is paused: %d %s", code, b)
		}
		return strings.TrimSpace(string(b))
	}
	own := func(role store.Role, act, body string, want int) {
		t.Helper()
		if code, said := posted(h, tokens[role], "/jobs/one/v1/admin/job/"+act, body); code != want {
			t.Errorf("%s on the job's dashboard by a %s: %d %s", act, role, code, said)
		}
	}
	if p := paused(); p == `{"pause":null}` {
		t.Error("the job's dashboard knows nothing of the pause")
	}
	own(store.RoleViewer, "resume", "", 403)
	own(store.RoleOperator, "stop", "", 404) // what a job's own page does not offer
	own(store.RoleOperator, "resume", "", 200)
	becomes(0, store.StateRunning)
	if p := paused(); p != `{"pause":null}` {
		t.Errorf("resumed, and paused: %s", p)
	}
	own(store.RoleOperator, "pause", `{"reason": "power cut"}`, 200)
	becomes(0, store.StatePaused)
	if p := paused(); p != `{"pause":{"by":"a operator","reason":"power cut"}}` {
		t.Errorf("who paused it, and why: %s", p)
	}
	steer(store.RoleOperator, "none", "pause", 404)
	steer(store.RoleOperator, "one", "delete", 404)
	steer(store.RoleOperator, "one", "archive", 400)
	steer(store.RoleOperator, "root", "archive", 200)
	becomes(1, store.StateArchived)
	if w := ask(site.Handler(), "GET", "/jobs/root/v1/job"); w.Code != 410 {
		t.Errorf("an archived job: %d", w.Code)
	}
	var b []byte
	code, b = asked(t, h, "GET", "/v1/admin/spending.json", map[string]string{"Authorization": "Bearer " + tokens[store.RoleViewer]})
	var l Ledger
	if err := json.Unmarshal(b, &l); code != 200 || err != nil || len(l.Entries) != 5 || len(l.Totals) != 1 || l.Totals[0].Rounds != 2 {
		t.Errorf("the ledger: %d %s %v", code, b, err)
	}
	acts, _, err := hand.Acts()
	ok(t, err)
	var did []string
	for _, a := range acts[3:] {
		did = append(did, a.By+": "+a.Act)
	}
	if want := "a admin: submit job, a admin: submit job, a operator: invite, a operator: add operator, a operator: pause job, a operator: resume job, a operator: pause job, a operator: archive job"; strings.Join(did, ", ") != want {
		t.Errorf("acts %q", did)
	}
	if !strings.Contains(acts[9].Subject, "one: power cut") {
		t.Errorf("why the job was paused is not kept: %+v", acts[9])
	}
	if _, err := os.Stat(filepath.Join("jobs")); err == nil {
		t.Error("a job lies where the test runs")
	}
}

// TestSitePages: operators have a page of all jobs, and devices have none of it.
func TestSitePages(t *testing.T) {
	site, _ := siteOf(t)
	for path, want := range map[string]string{"/": "page of /jobs", "/dashboard": "page of /jobs", "/assets/jobs-1.js": "page of /assets/jobs-1.js"} {
		if w := ask(site.AdminHandler(), "GET", path); w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		if w := ask(site.Handler(), "GET", path); w.Code != 404 {
			t.Errorf("%s on the listener of devices: %d %s", path, w.Code, w.Body)
		}
	}
	if w := ask(site.AdminHandler(), "GET", "/v1/admin/nothing"); w.Code == 200 {
		t.Errorf("what there is not: %d", w.Code)
	}
}

// TestSiteRoles: each route of a site lets in those of its role and above, and nobody else.
func TestSiteRoles(t *testing.T) {
	site, _ := siteOf(t)
	hand, err := site.fleet()
	ok(t, err)
	t.Cleanup(func() { ok(t, hand.Close()) })
	rolesHold(t, site.named(site.AdminHandler()), hand, site.routes())
}
