package main

import (
	"bytes"
	"crypto/rand"
	"encoding/csv"
	"encoding/json"
	"errors"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/command/operator"
	"github.com/starling-fl/starling/internal/app/guarantee"
	"github.com/starling-fl/starling/internal/app/spent"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/lab/internal/plots"
)

// runPrivacy runs a privacy command and returns its standard output.
func runPrivacy(t *testing.T, asJSON bool, args ...string) (string, error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := &cobra.Command{}
	root.AddCommand(operator.Commands(&command.App{Streams: terminal.Streams{Stdout: &out, Stderr: &errs, JSON: asJSON}}, plots.Plots{}, nil)...)
	cmd, _, err := root.Find([]string{"privacy"})
	if err != nil {
		t.Fatal(err)
	}
	root.RemoveCommand(cmd)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&errs)
	cmd.SetErr(&errs)
	err = cmd.Execute()
	return out.String(), err
}

func TestPrivacyEpsilonJSON(t *testing.T) {
	out, err := runPrivacy(t, true, "epsilon", "--sampling-rate", "0.01", "--noise-multiplier", "1", "--rounds", "200", "--delta", "1e-6")
	if err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	for key, want := range map[string]float64{"epsilon": 1.149624, "epsilon_lower": 1.149624, "rdp_epsilon": 1.641427, "rdp_order": 8.676, "noise_multiplier": 1, "delta": 1e-6, "rounds": 200} {
		got, ok := r[key].(float64)
		if !ok || math.Abs(got/want-1) > 2e-3 {
			t.Errorf("%s = %v, want about %v", key, r[key], want)
		}
	}
	for key, want := range map[string]string{"adjacency": "add/remove", "accountant": "tight", "sampling": "poisson, participation hidden"} {
		if r[key] != want {
			t.Errorf("%s = %v, want %q", key, r[key], want)
		}
	}
	if v, ok := r["visible"].(map[string]any); !ok || v["epsilon"].(float64) < 5 {
		t.Errorf("visible = %v, want a far larger epsilon", r["visible"])
	}
}

// A search says both epsilons, and how many runs it may come to.
func TestPrivacySearch(t *testing.T) {
	args := []string{"search", "--sampling-rate", "0.01", "--noise-multiplier", "0.8375", "--rounds", "200", "--delta", "1e-6", "--runs", "poisson:10"}
	out, err := runPrivacy(t, true, args...)
	if err != nil {
		t.Fatal(err)
	}
	var r guarantee.Search
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if math.Abs(r.One.Epsilon-2) > 0.01 || math.Abs(r.Whole.Epsilon/3.953-1) > 0.02 || len(r.Quantiles) != 4 || r.Quantiles[1].Runs != 10 {
		t.Errorf("%+v", r)
	}
	if out, err = runPrivacy(t, false, args...); err != nil || !strings.Contains(out, "the search        epsilon 3.9") || !strings.Contains(out, "poisson:10, 10 on average") {
		t.Errorf("%s, %v", out, err)
	}
}

func TestPrivacyNoiseVerifies(t *testing.T) {
	out, err := runPrivacy(t, true, "noise", "--epsilon", "2", "--delta", "1e-6", "--sampling-rate", "0.01", "--rounds", "200")
	if err != nil {
		t.Fatal(err)
	}
	var r guarantee.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if math.Abs(r.NoiseMultiplier/0.837510-1) > 1e-4 || r.Epsilon > 2 || r.Epsilon < 1.9998 {
		t.Errorf("noise multiplier %v with epsilon %v, want about 0.837510 and just below 2", r.NoiseMultiplier, r.Epsilon)
	}
}

// Each of the three parameters can be the answer, and gives back the others.
func TestPrivacyCalibrations(t *testing.T) {
	for _, c := range []struct {
		args []string
		ok   func(guarantee.Report) bool
	}{
		{[]string{"rounds", "--epsilon", "2", "--delta", "1e-6", "--sampling-rate", "0.01", "--noise-multiplier", "0.83752"},
			func(r guarantee.Report) bool { return r.Rounds >= 200 && r.Rounds <= 201 }},
		{[]string{"rate", "--epsilon", "2", "--delta", "1e-6", "--rounds", "200", "--noise-multiplier", "0.83751"},
			func(r guarantee.Report) bool { return math.Abs(r.SamplingRate/0.01-1) < 1e-3 }},
		// The baseline of the competition, and what is left of its claim.
		{[]string{"noise", "--epsilon", "8", "--delta", "1e-5", "--rounds", "10", "--sampling-rate", "0.2", "--provider-rate", "1", "--participation-hidden"},
			func(r guarantee.Report) bool {
				return math.Abs(r.NoiseMultiplier/0.770660-1) < 1e-3 && r.Visible != nil && r.Visible.Epsilon > 14
			}},
		{[]string{"epsilon", "--noise-multiplier", "0.771484375", "--delta", "1e-5", "--rounds", "10", "--sampling-rate", "0.2", "--provider-rate", "1"},
			func(r guarantee.Report) bool {
				return math.Abs(r.Epsilon-14.46) < 0.01 && r.Visible == nil && r.Adjacency == dp.AdjacencyProvider
			}},
		{[]string{"rounds", "--epsilon", "8", "--delta", "1e-5", "--noise-multiplier", "1", "--sampling-rate", "0.2", "--provider-rate", "0.3"},
			func(r guarantee.Report) bool { return r.Rounds > 10 && r.Epsilon <= 8 && r.Epsilon > 7.8 }},
	} {
		out, err := runPrivacy(t, true, c.args...)
		var r guarantee.Report
		if err == nil {
			err = json.Unmarshal([]byte(out), &r)
		}
		if err != nil || !c.ok(r) {
			t.Errorf("%v: %+v, %v", c.args, r, err)
		}
	}
	if _, err := runPrivacy(t, true, "rounds", "--epsilon", "0.01", "--delta", "1e-6", "--sampling-rate", "1", "--noise-multiplier", "1"); err == nil || !strings.Contains(err.Error(), "one round alone") {
		t.Errorf("a target below one round: %v", err)
	}
}

func TestPrivacyUsage(t *testing.T) {
	for _, args := range [][]string{
		{"epsilon", "--noise-multiplier", "1", "--rounds", "10", "--delta", "1e-6"},
		{"epsilon", "--sampling-rate", "0.1", "--noise-multiplier", "1", "--rounds", "10"},
		{"epsilon", "--sampling-rate", "1.5", "--noise-multiplier", "1", "--rounds", "10", "--delta", "1e-6"},
		{"epsilon", "--sampling-rate", "0.1", "--noise-multiplier", "-1", "--rounds", "10", "--delta", "1e-6"},
		{"epsilon", "--sampling-rate", "0.1", "--noise-multiplier", "1", "--rounds", "0", "--delta", "1e-6"},
		{"epsilon", "--sampling-rate", "0.1", "--noise-multiplier", "1", "--rounds", "10", "--delta", "0.01", "--population", "1000"},
		{"epsilon", "--sampling-rate", "0.1", "--noise-multiplier", "1", "--rounds", "10", "--delta", "1e-6", "--accountant", "moments"},
		{"epsilon", "--sampling-rate", "0.1", "--noise-multiplier", "1", "--rounds", "10", "--delta", "1e-6", "--curve", "c.pdf"},
		{"noise", "--epsilon", "0", "--sampling-rate", "0.1", "--rounds", "10", "--delta", "1e-6"},
		{"rounds", "--epsilon", "1", "--sampling-rate", "0.1", "--delta", "1e-6"},
		{"rounds", "--epsilon", "1", "--sampling-rate", "0.1", "--noise-multiplier", "0", "--delta", "1e-6"},
		{"rate", "--epsilon", "1", "--noise-multiplier", "1", "--delta", "1e-6"},
		{"epsilon", "--sampling-rate", "0.1", "--noise-multiplier", "1", "--rounds", "10", "--delta", "1e-6", "--provider-rate", "1.5"},
		{"epsilon", "--sampling-rate", "0.1", "--noise-multiplier", "1", "--rounds", "10", "--delta", "1e-6", "--participation-hidden"},
		{"search", "--sampling-rate", "0.1", "--noise-multiplier", "1", "--rounds", "10", "--delta", "1e-6"},
		{"search", "--sampling-rate", "0.1", "--noise-multiplier", "1", "--rounds", "10", "--delta", "1e-6", "--runs", "fixed:10"},
		{"explain", "--population", "10"},
		{"ledger"},
	} {
		if _, err := runPrivacy(t, false, args...); !errors.As(err, &usage.Error{}) {
			t.Errorf("%v: error %v, want wrong usage", args, err)
		}
	}
}

// Numbers of rounds that no event counts are refused, with the limit: they were
// cut to one, and the epsilon of fewer rounds was printed.
func TestPrivacyRefusesTooManyRounds(t *testing.T) {
	for _, args := range [][]string{
		{"epsilon", "--sampling-rate", "1e-6", "--noise-multiplier", "10", "--delta", "1e-6", "--rounds"},
		{"noise", "--epsilon", "2", "--sampling-rate", "1e-6", "--delta", "1e-6", "--rounds"},
		{"rate", "--epsilon", "2", "--noise-multiplier", "10", "--delta", "1e-6", "--rounds"},
		{"explain", "--population", "1000", "--sampling-rate", "0.1", "--noise-multiplier", "10", "--rounds"},
	} {
		for _, rounds := range []string{"8589934590", "1073741825"} {
			_, err := runPrivacy(t, false, append(args, rounds)...)
			if !errors.As(err, &usage.Error{}) || !strings.Contains(err.Error(), "1073741824") || !strings.Contains(err.Error(), rounds) {
				t.Errorf("%v %s: %v", args, rounds, err)
			}
		}
	}
}

func TestPrivacyCurves(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"c.svg", "c.png", "c.csv"} {
		file := filepath.Join(dir, name)
		if _, err := runPrivacy(t, false, "epsilon", "--sampling-rate", "0.1", "--noise-multiplier", "2", "--rounds", "40", "--delta", "1e-6", "--curve", file); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "c.svg":
			if !bytes.Contains(data, []byte("<svg")) || !bytes.Contains(data, []byte("epsilon")) {
				t.Errorf("%s is no plot of epsilon", name)
			}
		case "c.png":
			img, err := png.Decode(bytes.NewReader(data))
			if err != nil || img.Bounds().Dx() < 400 {
				t.Errorf("%s: %v", name, err)
			}
		case "c.csv":
			rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
			if err != nil || len(rows) < 10 || rows[0][0] != "rounds" || rows[len(rows)-1][0] != "40" {
				t.Errorf("%s: %v, rows %v", name, err, rows)
			}
		}
	}
}

func TestPrivacyExplainNamesEveryParty(t *testing.T) {
	out, err := runPrivacy(t, false, "explain", "--population", "1000", "--sampling-rate", "0.1", "--noise-multiplier", "1.1", "--rounds", "100",
		"--simulated-population", "1000000", "--simulated-cohort", "10000")
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"the coordinator", "Shard peers", "SIMULATED", "at delta 2.51e-07", "add/remove adjacency", "Next to nothing"} {
		if !strings.Contains(flat, want) {
			t.Errorf("explain does not say %q:\n%s", want, out)
		}
	}
}

func TestPrivacyExplainProviders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.yaml")
	job := `name: invoices
labels: [a, b]
cohort: {population: 200, sampling_rate: 0.5, floor: 20}
providers: {max: 24, expected: 10, sampling_rate: 0.2}
clipping: {adaptive: true, quantile: 0.7}
`
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := runPrivacy(t, false, "explain", "--job", file)
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"presence of one provider", "zero-out (absent: there, with zeros) of one provider adjacency", "with probability 0.2, by a coin that the device flips", "participation visible", "70 % of the providers"} {
		if !strings.Contains(flat, want) {
			t.Errorf("explain does not say %q:\n%s", want, out)
		}
	}
}

func TestPrivacyLedgerOfNothing(t *testing.T) {
	if _, err := runPrivacy(t, false, "ledger", t.TempDir()); err == nil {
		t.Error("a folder without a ledger was read")
	}
}

// A store written as the coordinator writes it, read back by the command.
func TestPrivacyLedger(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir, store.Options{Task: "invoices", Job: [32]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, cert, err := dp.DrawCohort([][]byte{{1}, {2}, {3}}, 0.5, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		id, err := s.BeginRound(store.Round{Rank: 2, Certificate: cert})
		if err != nil {
			t.Fatal(err)
		}
		ev, err := dp.ReleaseSpec{Round: id, SamplingRate: 0.01, B2: 1_000_000, NoiseMultiplier: 5, NoiseScale: 0.5, SimulatedRate: 0.001, Certificate: cert.Hash()}.Event(100)
		if err != nil {
			t.Fatal(err)
		}
		g, err := accounting.Epsilon([]dp.Event{ev}, 1e-6, dp.Tight)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Charge(ev, store.Note{Reason: "alarm", Guarantees: dp.Guarantees{Delivered: &g}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := runPrivacy(t, true, "ledger", dir)
	if err != nil {
		t.Fatal(err)
	}
	var r spent.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Task != "invoices" || len(r.Entries) != 3 || r.Entries[2].Kind != "charged" || r.Entries[2].Reason != "alarm" || r.Entries[0].Generator != "crypto/rand" || r.Entries[0].Population != 3 || r.Head != r.Entries[2].Hash {
		t.Errorf("%+v", r)
	}
	if r.Delivered == nil || r.Delivered.Rounds != 3 || r.Delivered.Delta != 1e-6 || r.Simulated == nil || !r.Simulated.Simulated ||
		!(r.Simulated.Epsilon < r.Delivered.Epsilon && r.Delivered.Epsilon < r.Visible.Epsilon) {
		t.Errorf("delivered %v, visible %v, simulated %v", r.Delivered, r.Visible, r.Simulated)
	}
	text, err := runPrivacy(t, false, "ledger", dir)
	if err != nil || !strings.Contains(text, "chain verified") || !strings.Contains(text, "SIMULATED") || !strings.Contains(text, "crypto/rand") {
		t.Errorf("%v\n%s", err, text)
	}
}

// What is protected, and by which coins, is the job file's word: no flag and no
// leftover sentence says otherwise.
func TestPrivacyExplainSaysWhatTheJobProtects(t *testing.T) {
	const head = "name: x\nlabels: [a, b]\nrounds: 5\ncohort: {population: 200, sampling_rate: 0.5, floor: 20}\n"
	for _, c := range []struct {
		job, want, not string
		args           []string
	}{
		{"", "presence of one whole device", "provider", []string{"--provider-rate", "0.5", "--participation-hidden"}},
		{"providers: {max: 4}\n", "all its providers are in", "shows nobody", nil},
		{"providers: {max: 1, sampling_rate: 0.5}\n", "the device's coin does nothing", "sampling does nothing", nil},
	} {
		file := filepath.Join(t.TempDir(), "job.yaml")
		if err := os.WriteFile(file, []byte(head+c.job), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := runPrivacy(t, false, append([]string{"explain", "--job", file}, c.args...)...)
		if err != nil {
			t.Fatal(err)
		}
		if flat := strings.Join(strings.Fields(out), " "); !strings.Contains(flat, c.want) || strings.Contains(flat, c.not) {
			t.Errorf("%q %q: does not say %q, or says %q:\n%s", c.job, c.args, c.want, c.not, out)
		}
	}
}

// writeLedger makes a run's store with charged rounds, as a coordinator writes it.
func writeLedger(t *testing.T, task string, job byte, rounds int, z, delta, floor float64) (dir string, events []dp.Event) {
	t.Helper()
	dir = t.TempDir()
	s, err := store.Open(dir, store.Options{Task: task, Job: [32]byte{job}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range rounds {
		_, cert, err := dp.DrawCohort([][]byte{{1}, {2}, {3}}, 0.25, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		id, err := s.BeginRound(store.Round{Rank: 2, Certificate: cert})
		if err != nil {
			t.Fatal(err)
		}
		ev, err := dp.ReleaseSpec{Round: id, SamplingRate: 0.25, B2: 1_000_000, NoiseMultiplier: z, NoiseScale: 1, Certificate: cert.Hash()}.Event(100)
		if err != nil {
			t.Fatal(err)
		}
		g, err := accounting.Epsilon([]dp.Event{ev}, delta-floor, dp.Tight)
		if err != nil {
			t.Fatal(err)
		}
		g = g.Floored(delta)
		if _, err := s.Charge(ev, store.Note{Reason: "test", Guarantees: dp.Guarantees{Delivered: &g}}); err != nil {
			t.Fatal(err)
		}
		events = append(events, ev)
	}
	return dir, events
}

// Several jobs over one population compose: the epsilon is that of all their
// rounds, at the smaller delta, less what the floors of all of them have of it.
func TestPrivacyLedgersCompose(t *testing.T) {
	one, first := writeLedger(t, "one", 1, 3, 3, 1e-6, 1e-8)
	two, second := writeLedger(t, "two", 2, 2, 2, 1e-5, 1e-7)
	out, err := runPrivacy(t, true, "ledger", one, two)
	if err != nil {
		t.Fatal(err)
	}
	var r spent.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	all := append(slices.Clone(first), second...)
	want, err := accounting.Epsilon(all, 1e-6-1e-8-1e-7, dp.Tight)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := accounting.VisibleEpsilon(all, 1e-6-1e-8-1e-7, dp.Tight)
	if err != nil {
		t.Fatal(err)
	}
	if r.Delivered == nil || math.Abs(r.Delivered.Epsilon/want.Epsilon-1) > 1e-6 || r.Delivered.Delta != 1e-6 || r.Delivered.Rounds != 5 ||
		math.Abs(r.Visible.Epsilon/seen.Epsilon-1) > 1e-6 || math.Abs(r.Delivered.FloorDelta-1.1e-7) > 1e-15 {
		t.Errorf("together %v, want %v; seen %v, want %v", r.Delivered, want, r.Visible, seen)
	}
	if len(r.Runs) != 2 || r.Runs[0].Delivered.Epsilon >= r.Delivered.Epsilon || r.Runs[1].Delivered.Delta != 1e-5 || len(r.Runs[0].Entries) != 3 {
		t.Errorf("runs %+v", r.Runs)
	}
	text, err := runPrivacy(t, false, "ledger", one, two, "--delta", "1e-4")
	if err != nil || !strings.Contains(text, "together") || !strings.Contains(text, "at delta 0.0001") || strings.Count(text, "chain verified") != 2 {
		t.Errorf("%v\n%s", err, text)
	}
	for name, args := range map[string][]string{
		"same ledger":    {"ledger", one, one},
		"give more":      {"ledger", one, two, "--delta", "1e-7"},
		"privacy ledger": {"ledger"},
	} {
		if _, err := runPrivacy(t, false, args...); !errors.As(err, &usage.Error{}) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v, want %q", args, err, name)
		}
	}
}
