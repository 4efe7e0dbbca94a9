package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/model"
)

// TestServerOfTwoJobs: an operator submits two jobs to one server, four devices take part in
// both under one identity each, and the server is killed while rounds are made. Started again
// it ends both, every round is in the fleet's ledger once and as in its job's, and over
// the admin address the jobs are listed, and archived.
func TestServerOfTwoJobs(t *testing.T) {
	dir, binary := t.TempDir(), build(t)
	const devices, rounds = 4, 3
	data, state := filepath.Join(dir, "data"), filepath.Join(dir, "state")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(watchdog.Context(t), binary, args...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s%s", args, err, out, cmd.Stderr)
		}
		return string(out)
	}
	run("lab", "invoices", "--out", data, "--clients", fmt.Sprint(devices))
	public := filepath.Join(dir, "public")
	run("lab", "invoices", "--out", public, "--split", "validation", "--clients", "1")
	for name, priority := range map[string]string{"first": "1", "second": "0"} {
		text := fmt.Sprintf(`
name: %s
labels: [catering, energy, freight, maintenance, office, software, telecom, travel]
rounds: %d
adapter: {rank_min: 1, rank_max: 2}
cohort: {population: %d, floor: 3}
shard: {size: 8, floor: 3, corrupt: 0, breach_bits: 0}
privacy: {simulated_population: 1000000, simulated_cohort: 10000}
`, name, rounds, devices)
		file := filepath.Join(dir, name+".yaml")
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if name == "second" { // is scored on a file of the server's, and on none that it does not have, or that is elsewhere
			for _, other := range []string{"validation-0.jsonl", "../../public/validation-0.jsonl", filepath.Join(public, "validation-0.jsonl")} {
				write(text + "validation_file: " + other)
				if out, err := exec.CommandContext(watchdog.Context(t), binary, "job", "submit", "--dir", state, file).CombinedOutput(); err == nil || !strings.Contains(string(out), "validation_file is") {
					t.Errorf("validation_file %s: %v, %s", other, err, out)
				}
			}
			if err := os.MkdirAll(state, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(public, filepath.Join(state, "public")); err != nil {
				t.Fatal(err)
			}
			text += "validation_file: validation-0.jsonl\n"
		}
		write(text)
		if said := run("job", "submit", "--json", "--dir", state, "--priority", priority, file); said != fmt.Sprintf("{\"act\":\"submit\",\"on\":%q}\n", name) {
			t.Errorf("submitted: %q", said)
		}
	}
	serve := []string{"serve", "--dir", state, "--listen", freePort(t), "--log", "text"}
	first := start(t, binary, serve...)
	tokens := map[string]string{}
	for range 2 {
		m := first.await(t, `^job (\w+): join with: starling join (\S+)`)
		tokens[m[1]] = m[2]
	}
	var joined []*process
	for i := range devices {
		joined = append(joined, start(t, binary, "join", "--trust-local", tokens["first"], tokens["second"], "--json", "--data", filepath.Join(data, fmt.Sprintf("train-%d.jsonl", i)),
			"--identity", filepath.Join(dir, fmt.Sprintf("identity-%d.pem", i)), "--cache", filepath.Join(dir, "cache"),
			"--accounts", filepath.Join(dir, "accounts")))
	}
	first.await(t, `msg=committed`)
	first.await(t, `msg=committed`)
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.end()
	// Anyone who is killed says nothing of it any more.
	if list := run("job", "list", "--dir", state); strings.Contains(list, "running") || !strings.Contains(list, "away") {
		t.Errorf("after the server was killed:\n%s", list)
	}

	second := start(t, binary, append(serve, "--fleet-epsilon", "1e12", "--fleet-delta", "1e-5")...)
	var jobs []struct {
		Name, State     string
		Rounds, Version int
		Token           string
	}
	operator := second.await(t, `starling job list --server (\S+);.*`)[1]
	t.Cleanup(func() {
		if t.Failed() {
			list, _ := exec.Command(binary, "job", "list", "--dir", state).CombinedOutput()
			t.Logf("a device: %s\njobs: %s", joined[0].said(), list)
		}
	})
	if err := json.Unmarshal([]byte(run("job", "list", "--dir", state, "--json")), &jobs); err != nil || len(jobs) != 2 || jobs[0].State == "away" {
		t.Errorf("while it serves: %+v, %v", jobs, err)
	}
	for range 2 {
		second.await(t, `msg="job over".*state=finished`)
	}
	for i, p := range joined {
		if err := p.end(); err != nil {
			t.Errorf("device %d: %v\n%s", i, err, p.said())
		}
		// One report a job, whose total is the same.
		lines := strings.Fields(strings.ReplaceAll(strings.TrimSpace(p.out.String()), "} {", "}\n{"))
		if n := strings.Count(p.out.String(), `"rounds_committed":`); n != 2 {
			t.Errorf("device %d: %d reports: %q", i, n, lines)
		}
	}
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(run("operator", "add", "--dir", state, "--role", "admin", "Ada")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(run("job", "list", "--server", operator, "--token-file", token, "--json")), &jobs); err != nil ||
		len(jobs) != 2 || jobs[0].State != "finished" || jobs[1].State != "finished" || jobs[0].Rounds+jobs[1].Version != 2*rounds || jobs[0].Token == "" {
		t.Errorf("jobs %+v, %v", jobs, err)
	}
	var over, local struct {
		Epsilon float64
		Head    string
		Entries []struct {
			Act, Job string
			Round    int
		}
		Totals []struct {
			Jobs, Rounds int
			Guarantee    *struct{ Epsilon float64 }
		}
	}
	for _, h := range []struct {
		args []string
		into any
	}{{[]string{"--server", operator, "--token-file", token}, &over}, {[]string{"--dir", state}, &local}} {
		if err := json.Unmarshal([]byte(run(append([]string{"job", "ledger", "--json"}, h.args...)...)), h.into); err != nil {
			t.Fatal(err)
		}
	}
	charged := map[string]int{}
	for _, e := range local.Entries {
		if e.Act == "charge" {
			charged[fmt.Sprint(e.Job, e.Round)]++
		}
	}
	if len(charged) < 2*rounds || over.Head != local.Head || local.Epsilon != 1e12 || len(local.Totals) != 1 || local.Totals[0].Jobs != 2 ||
		local.Totals[0].Rounds != len(charged) || local.Totals[0].Guarantee == nil {
		t.Errorf("ledger %+v", local)
	}
	for name, measured := range map[string]bool{"first": false, "second": true} {
		text, err := os.ReadFile(filepath.Join(state, "jobs", name, "checkpoint", model.CheckpointFile))
		var of struct {
			BestRank int `json:"best_rank"`
		}
		if err := errors.Join(err, json.Unmarshal(text, &of)); err != nil || (of.BestRank > 0) != measured {
			t.Errorf("the release of %s has the rank %d, %v", name, of.BestRank, err)
		}
	}
	for what, n := range charged {
		if n != 1 {
			t.Errorf("%s is charged %d times", what, n)
		}
	}
	run("job", "archive", "--server", operator, "--token-file", token, "first")
	second.await(t, `act=archive`)
	for _, refused := range [][]string{
		{"serve", "--dir", filepath.Join(state, "jobs", "first"), "--job", filepath.Join(dir, "first.yaml")},
		{"serve", "--dir", state, "--job", filepath.Join(dir, "first.yaml")},
		{"job", "submit", "--dir", state, filepath.Join(dir, "first.yaml")},
		{"token", "create", "--dir", state, "--of", "third"},
	} {
		if out, err := exec.CommandContext(watchdog.Context(t), binary, refused...).CombinedOutput(); err == nil {
			t.Errorf("%v: %s", refused, out)
		}
	}
	for where, of := range map[string][]string{"/jobs/second": {"--of", "second"}, "": nil} { // to one job, to all
		invited, err := wire.ParseToken(run(append([]string{"token", "create", "--dir", state}, of...)...))
		if err != nil || !strings.HasSuffix(invited.URL, serve[4]+where) {
			t.Errorf("an invitation to %q, %v", invited.URL, err)
		}
	}
}
