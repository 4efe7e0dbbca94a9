package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/app/guarantee"
	"github.com/starling-fl/starling/internal/app/spent"
)

// TestExplainSaysWhoseNoise: with devices' noise explain states epsilon with trust in the
// coordinator and without, with central noise that without it there is none.
func TestExplainSaysWhoseNoise(t *testing.T) {
	for noise, c := range map[string]struct {
		says      string
		untrusted bool
	}{
		"central": {"without trust in it no epsilon holds", false},
		"devices": {"counts that of 90 honest devices and none of the coordinator's", true},
		"silo":    {"counts that of 1 honest devices and none of the coordinator's", true},
	} {
		path := filepath.Join(t.TempDir(), "job.yaml")
		text := "name: x\nlabels: [a, b]\ncohort: {population: 200}\nprivacy: {noise: " + noise + "}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs strings.Builder
		if code := run(t.Context(), []string{"privacy", "explain", "--job", path, "--json"}, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("%s: %d, %s", noise, code, errs.String())
		}
		var e guarantee.Explained
		if err := json.Unmarshal([]byte(out.String()), &e); err != nil {
			t.Fatal(err)
		}
		if (e.Untrusted != nil) != c.untrusted || !strings.Contains(out.String(), c.says) || e.Delivered.Epsilon > 2 {
			t.Errorf("%s: %+v, want %q", noise, e.Untrusted, c.says)
		}
		if c.untrusted && e.Untrusted.Epsilon < 0.9999*e.Delivered.Epsilon {
			t.Errorf("%s: %v without trust, %v with", noise, e.Untrusted.Epsilon, e.Delivered.Epsilon)
		}
	}
}

// TestLedgerSaysWhoseNoise: the same of what was spent, event by event.
func TestLedgerSaysWhoseNoise(t *testing.T) {
	event := func(own dp.OwnNoise) dp.Event {
		e, err := dp.ReleaseSpec{Round: 1, SamplingRate: 1, B2: 100_000, NoiseMultiplier: 8, NoiseScale: 1, Own: own}.Event(1000)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for _, own := range []dp.OwnNoise{{}, {Multiplier: 1, Honest: 64, Apart: 9}} {
		l := store.Ledger{Private: true, Entries: []store.Entry{{Event: event(own)}}}
		r, _, err := spent.NewReport(l, 1e-6, dp.Tight)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := r.Print(&out); err != nil {
			t.Fatal(err)
		}
		if own == (dp.OwnNoise{}) {
			if r.Untrusted != nil || r.Entries[0].Own != nil || !strings.Contains(out.String(), "no bound") {
				t.Errorf("central: %+v\n%s", r.Untrusted, out.String())
			}
			continue
		}
		if r.Untrusted == nil || r.Untrusted.Epsilon <= r.Delivered.Epsilon || *r.Entries[0].Own != own || !strings.Contains(out.String(), "without trust in the coordinator, for a device in every round") {
			t.Errorf("devices: %+v\n%s", r.Untrusted, out.String())
		}
	}
}

// TestPublishedBaselines: the jobs of examples/ have the published noise and the epsilons that
// stand in them.
func TestPublishedBaselines(t *testing.T) {
	for name, want := range map[string]struct {
		own, delivered, untrusted float64
		says                      []string
	}{
		"group-dp":    {0.7714845, 25.20, 10.30, []string{"25.20", "10.30"}},
		"provider-dp": {0.272761, 25.20, 40.78, []string{"25.20", "40.78", "0.2728"}},
	} {
		path := "../../../examples/" + name + ".yaml"
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range want.says {
			if !strings.Contains(string(text), s) {
				t.Errorf("%s does not say %s", path, s)
			}
		}
		var out, errs strings.Builder
		if code := run(t.Context(), []string{"privacy", "explain", "--job", path, "--json"}, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("%s: %d, %s", name, code, errs.String())
		}
		var e guarantee.Explained
		if err := json.Unmarshal([]byte(out.String()), &e); err != nil {
			t.Fatal(err)
		}
		near := func(have, want float64) bool { return have > want*0.999 && have < want*1.001 }
		if !near(e.OwnNoise, want.own) || !near(e.Delivered.Epsilon, want.delivered) || !near(e.Untrusted.Epsilon, want.untrusted) || e.NoiseMultiplier != 0.7714844 {
			t.Errorf("%s: own noise %v, epsilon %v, without trust %v", name, e.OwnNoise, e.Delivered.Epsilon, e.Untrusted.Epsilon)
		}
	}
}
