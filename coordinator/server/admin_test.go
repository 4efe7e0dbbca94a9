package server

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
)

// dashboard is what a stream of events has told so far.
type dashboard struct {
	overview monitor.Overview
	rounds   []monitor.RoundRecord
}

// until reads events until they have come to what passes.
func (d *dashboard) until(t *testing.T, body *bufio.Reader, passes func() bool) {
	t.Helper()
	event := ""
	for !passes() {
		line, err := body.ReadString('\n')
		if err != nil {
			t.Fatalf("%v; so far %+v", err, d)
		}
		if e, ok := strings.CutPrefix(line, "event: "); ok {
			event = strings.TrimSpace(e)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			switch event {
			case "overview":
				err = json.Unmarshal([]byte(data), &d.overview)
			case "rounds":
				var more []monitor.RoundRecord
				err = json.Unmarshal([]byte(data), &more)
				for _, r := range more { // new, or changed
					d.rounds = slices.DeleteFunc(d.rounds, func(old monitor.RoundRecord) bool { return old.Round == r.Round })
					d.rounds = append(d.rounds, r)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDashboard: the operator's endpoints answer the token alone, and stream what
// the round's cohort does while it does it.
func TestDashboard(t *testing.T) {
	job := tinyJob(3)
	job.Enrolment.Secret = "a secret of sixteen bytes"
	c, s := serve(t, job, Config{})
	devices := httptest.NewServer(s.Handler())
	operator := httptest.NewServer(s.AdminHandler())
	token := s.AdminToken()
	if len(token) != 64 {
		t.Fatalf("token %q", token)
	}
	get := func(ctx context.Context, path, token string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, "GET", operator.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := httpClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	paths := []string{"/v1/admin/events", "/v1/admin/job.yaml", "/v1/admin/rounds.csv", "/v1/admin/ledger.json", "/v1/admin/adapter/adapter_model.safetensors"}
	for _, path := range paths {
		for _, wrong := range []string{"", token[:63], token + "0", strings.Repeat("0", 64)} {
			if res := get(t.Context(), path, wrong); res.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s with %q: %s", path, wrong, res.Status)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	res := get(ctx, "/v1/admin/events", token)
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s %v", res.Status, res.Header)
	}
	body := bufio.NewReader(res.Body)
	var d dashboard
	d.until(t, body, func() bool { return d.overview.Status.State == monitor.StateWaiting })
	if d.overview.Cohort != "" || len(d.rounds) != 0 {
		t.Errorf("before the first round: %+v", d)
	}
	ended := join(ctx, t, s.Token(devices.URL, nil), 3)
	ran := make(chan error, 1)
	go func() { ran <- c.Run(ctx) }()
	d.until(t, body, func() bool { return d.overview.Status.State == monitor.StateFinished && len(d.rounds) == 2 })
	if r := d.rounds[1]; r.Round != 2 || !r.Released || r.Cohort != 3 || r.Dropped != 0 || r.Delivered == nil || r.BytesUp <= 0 || r.Seconds <= 0 {
		t.Errorf("second round %+v", r)
	}
	ok(t, errors.Join(<-ran, ended()))
	defer func() {
		cancel() // the server waits for the stream
		operator.Close()
		devices.Close()
		ok(t, c.Close())
	}()
	read := func(path string) string {
		t.Helper()
		res := get(t.Context(), path, token)
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %s %v", path, res.Status, err)
		}
		return string(b)
	}
	if file := read("/v1/admin/job.yaml"); strings.Contains(file, job.Enrolment.Secret) || !strings.Contains(file, "rounds: 2") {
		t.Errorf("job file:\n%s", file)
	}
	lines, err := csv.NewReader(strings.NewReader(read("/v1/admin/rounds.csv"))).ReadAll()
	if err != nil || len(lines) != 3 || lines[2][0] != "2" || lines[2][6] != "true" {
		t.Errorf("rounds %v, %v", lines, err)
	} else if at := slices.Index(lines[0], "values_bytes"); at < 0 {
		t.Errorf("columns %v", lines[0])
	} else if rank, err := strconv.Atoi(lines[2][2]); err != nil || lines[2][at] != strconv.Itoa(4*c.Values(rank)) || c.Values(rank) == 0 {
		t.Errorf("a message of rank %s has %s bytes of values", lines[2][2], lines[2][at])
	}
	var ledger struct {
		Head    string
		Entries []struct{ Hash string }
	}
	if err := json.Unmarshal([]byte(read("/v1/admin/ledger.json")), &ledger); err != nil || len(ledger.Entries) != 2 || ledger.Entries[1].Hash != ledger.Head {
		t.Errorf("ledger %+v, %v", ledger, err)
	}
	if b := read("/v1/admin/adapter/adapter_model.safetensors"); !strings.Contains(b[:min(len(b), 400)], "lora_A") {
		t.Errorf("adapter begins %q", b[:min(len(b), 100)])
	}
	if res := get(t.Context(), "/v1/admin/adapter/starling.db", token); res.StatusCode != http.StatusNotFound {
		t.Errorf("another file: %s", res.Status)
	}
	// Dashboards are bounded: each costs the engine a walk over the cohort.
	for f := c.Follow(); f != nil; f = c.Follow() {
		defer f.Close()
	}
	if res := get(t.Context(), "/v1/admin/events", token); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one dashboard too many: %s", res.Status)
	}
}
