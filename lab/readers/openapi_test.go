package readers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/jobs"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/lab/loadtest"
)

const hostedJob = `
name: %s
labels: [a, b]
rounds: 2
adapter: {rank_min: 1, rank_max: 2, sequence: 8}
cohort: {population: 4, floor: 3}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
`

// siteOf is a server of what is submitted, and its operator's listener.
func siteOf(t *testing.T) (*server.Site, http.Handler) {
	t.Helper()
	var site *server.Site
	host, err := jobs.Open(jobs.Config{Dir: t.TempDir(), Every: 10 * time.Millisecond,
		Open: func(j store.Hosted, dir string, h coordinator.Host) (*coordinator.Coordinator, error) {
			parsed, err := job.Parse(bytes.NewReader(j.File))
			if err != nil {
				return nil, err
			}
			return coordinator.New(coordinator.Config{Job: parsed, Dir: dir, Base: tiny.Base(t, 8, 1, 8), Hosts: []string{}, Host: h})
		},
		Mount:   func(j store.Hosted, c *coordinator.Coordinator) error { return site.Mount(j, c, false) },
		Unmount: func(name string) { site.Unmount(name) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if site, err = server.NewSite(server.SiteConfig{Host: host}); err != nil {
		t.Fatal(err)
	}
	devices := httptest.NewServer(site.Handler())
	if err := site.Reach(devices.URL, nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- host.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := watchdog.Recv(t, "the host's end", ran); err != nil {
			t.Error(err)
		}
		if err := host.Close(); err != nil {
			t.Error(err)
		}
		devices.Close()
	})
	return site, site.AdminHandler()
}

// answers are the schemas of a document's JSON answers with status 200, by request: "GET /v1/status".
func answers(t *testing.T, document []byte) map[string]*jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	closed(doc, "")
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(document, &read); err != nil {
		t.Fatal(err)
	}
	out := map[string]*jsonschema.Schema{}
	for path, methods := range read.Paths {
		for method, text := range methods {
			var of struct {
				Responses map[string]struct {
					Content map[string]json.RawMessage
				}
			}
			if method == "parameters" {
				continue
			}
			if err := json.Unmarshal(text, &of); err != nil {
				t.Fatal(err)
			}
			if of.Responses["200"].Content["application/json"] == nil {
				continue
			}
			at := strings.NewReplacer("~", "~0", "/", "~1").Replace
			s, err := c.Compile("openapi.json#/paths/" + at(path) + "/" + method + "/responses/200/content/application~1json/schema")
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			out[strings.ToUpper(method)+" "+path] = s
		}
	}
	return out
}

// closed has schemas allow what they name alone: where they are used, since parts of others are open.
func closed(v any, as string) {
	switch v := v.(type) {
	case map[string]any:
		_, object := v["properties"]
		_, ref := v["$ref"]
		_, all := v["allOf"]
		if as == "used" && (object || ref || all) && v["additionalProperties"] == nil {
			v["unevaluatedProperties"] = false
		}
		for key, of := range v {
			switch {
			case key == "schema" || key == "items":
				closed(of, "used")
			case as == "names":
				closed(of, "used")
			case key == "properties":
				closed(of, "names")
			default:
				closed(of, "")
			}
		}
	case []any:
		for _, of := range v {
			closed(of, "")
		}
	}
}

// TestOpenAPI: every JSON answer that a server's openapi.json describes is as it describes it, with
// nothing beside, from a server of which one job was made and another waits for devices.
func TestOpenAPI(t *testing.T) {
	site, h := siteOf(t)
	ask := func(method, path, body string) (int, []byte) {
		r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+site.AdminToken())
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.Bytes()
	}
	code, document := ask("GET", "/v1/openapi.json", "")
	if code != http.StatusOK {
		// Each job's listener has it, and the server's own.
		t.Fatalf("%d %s", code, document)
	}
	left := answers(t, document)
	if len(left) < 20 {
		t.Fatalf("%d answers are described", len(left))
	}
	schemas := answers(t, document)
	// holds asks, and holds the answer against that of a pattern.
	holds := func(pattern, path, body string) []byte {
		t.Helper()
		method, _, _ := strings.Cut(pattern, " ")
		code, answer := ask(method, path, body)
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, code, answer)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
		if err != nil {
			t.Fatalf("%s: %v: %.200s", path, err, answer)
		}
		if err := schemas[pattern].Validate(v); err != nil {
			t.Errorf("%s is not as %s is described: %v\n%.1000s", path, pattern, err, answer)
		}
		delete(left, pattern)
		return answer
	}
	for _, name := range []string{"one", "two"} {
		text, err := json.Marshal(server.Submitted{Name: name, File: fmt.Sprintf(hostedJob, name)})
		if err != nil {
			t.Fatal(err)
		}
		holds("POST /v1/admin/jobs", "/v1/admin/jobs", string(text))
	}
	watchdog.Wait(t, "two jobs to be open", func() {
		for site.Token("one") == "" || site.Token("two") == "" {
			time.Sleep(5 * time.Millisecond)
		}
	})
	fleet, err := loadtest.New(loadtest.Config{Devices: 4}, site.Token("one"))
	if err != nil {
		t.Fatal(err)
	}
	watchdog.Wait(t, "the devices' end", func() { fleet.Run(watchdog.Context(t)) })

	var devices []struct{ Identity string }
	if err := json.Unmarshal(holds("GET /v1/admin/devices.json", "/v1/admin/devices.json", ""), &devices); err != nil || len(devices) != 4 {
		t.Fatalf("%d devices, %v", len(devices), err)
	}
	var invited struct{ ID int }
	if err := json.Unmarshal(holds("POST /v1/admin/invitations", "/v1/admin/invitations", `{"note": "Ada"}`), &invited); err != nil {
		t.Fatal(err)
	}
	for _, r := range [][3]string{
		{"POST /v1/admin/invitations/{id}/revoke", fmt.Sprintf("/v1/admin/invitations/%d/revoke", invited.ID), ""},
		{"POST /v1/admin/operators", "/v1/admin/operators", `{"name": "Ada", "role": "viewer", "seconds": 3600}`},
		{"POST /v1/admin/operators/{name}/revoke", "/v1/admin/operators/Ada/revoke", ""},
		{"POST /v1/admin/devices/{identity}/{act}", "/v1/admin/devices/" + devices[0].Identity + "/ban", `{"reason": "a test"}`},
		{"GET /v1/admin/ready.json", "/jobs/two/v1/admin/ready.json", ""}, // 503 where a job is over or paused
		{"POST /v1/admin/jobs/{name}/{act}", "/v1/admin/jobs/two/pause", `{"reason": "a test"}`},
		{"GET /v1/admin/paused.json", "/jobs/two/v1/admin/paused.json", ""},
		{"POST /v1/admin/job/{act}", "/jobs/two/v1/admin/job/resume", ""},
	} {
		holds(r[0], r[1], r[2])
	}
	for pattern := range schemas {
		method, path, _ := strings.Cut(pattern, " ")
		if _, unasked := left[pattern]; method != "GET" || !unasked {
			continue
		}
		answered := false
		for _, at := range []string{path, "/jobs/one" + path, "/jobs/two" + path} { // of the server, of a job, or of both
			if code, _ := ask("GET", at, ""); code == http.StatusOK {
				answered = true
				holds(pattern, at, "")
			}
		}
		if !answered {
			t.Errorf("nothing answers %s", pattern)
		}
	}
	for pattern := range left {
		t.Errorf("%s was not asked", pattern)
	}
}
