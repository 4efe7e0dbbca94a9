package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/job"
)

func shown(width int, live bool, ps ...coordinator.Status) string {
	var out bytes.Buffer
	job := job.Default()
	job.Privacy.SimulatedPopulation = 1_000_000
	v := newProgressView(&out, job, "accuracy: on 128 of the 800 validation texts while rounds run, on all of them at the end")
	v.width, v.live = width, live
	for _, p := range ps {
		v.show(p)
	}
	return out.String()
}

func widest(text string) (n int) {
	for line := range strings.Lines(text) {
		for part := range strings.SplitSeq(line, "\r") {
			n = max(n, utf8.RuneCountInString(strings.TrimRight(part, "\n")))
		}
	}
	return n
}

// The table fits its terminal, and its epsilons are those of a delta and an
// accountant, of nobody here where they are simulated, and never seconds.
func TestProgressFits(t *testing.T) {
	g := &dp.Guarantee{Epsilon: 1.2789, Delta: 2.51e-7, Accountant: dp.Tight, Simulated: true}
	p := coordinator.Status{Turnout: coordinator.Turnout{Cohort: 10_000, Dropped: 1000}, Traffic: coordinator.Traffic{BytesUp: 999_900_000, BytesDown: 999_900_000}}
	p.Version, p.Rounds, p.Rank, p.State = 100, 999, 64, coordinator.StateCommitted
	p.Validation, p.Simulated, p.Delivered = []coordinator.RankAccuracy{{Rank: 1, Accuracy: 1}}, g, g
	lost := p
	lost.State, lost.Reason = coordinator.StateAbandoned, strings.Repeat("a long reason ", 20)
	running := p
	running.State = "collecting"
	for _, width := range []int{60, 80, 100, 200} {
		for _, live := range []bool{false, true} {
			out := shown(width, live, p, running, lost)
			if n := widest(out); n >= width {
				t.Errorf("%d columns of %d:\n%s", n, width, out)
			}
			flat := strings.Join(strings.Fields(out), " ")
			for _, want := range []string{"1.279", "SIMULATED for a population of 1000000, at delta 2.51e-07, tight accountant", "committed", "because: a long",
				"on 128 of the 800"} {
				if !strings.Contains(flat, want) {
					t.Errorf("width %d: no %q in\n%s", width, want, out)
				}
			}
			if strings.Contains(flat, "1.279 s") {
				t.Errorf("an epsilon in seconds:\n%s", out)
			}
			if (width >= 80) != strings.Contains(out, "down") {
				t.Errorf("width %d:\n%s", width, out)
			}
		}
	}
	p.Simulated = nil
	if out := shown(60, false, p); !strings.Contains(out, "epsilon: at delta 2.51e-07") || strings.Contains(out, "SIMULATED") {
		t.Errorf("delivered:\n%s", out)
	}
}

// Whoever waits for devices is told for how many.
func TestProgressSaysWhatIsWaitedFor(t *testing.T) {
	waiting := func(enrolled, connected int) coordinator.Status {
		s := coordinator.Status{Enrolled: enrolled, Connected: connected}
		s.State = coordinator.StateWaiting
		return s
	}
	for _, live := range []bool{false, true} {
		out := shown(60, live, waiting(3, 2), waiting(24, 2))
		for _, want := range []string{"waiting for devices: 3 of 24 enrolled", fmt.Sprintf("waiting for devices: 2 connected, %d needed for a round", job.Default().LeastConnected())} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in %q", want, out)
			}
		}
	}
	if out := shown(60, false, waiting(24, 24)); out != "" {
		t.Errorf("all are there, and it says %q", out)
	}
}

func TestReportFits(t *testing.T) {
	head := 0.7468
	r := report{Task: "invoices", RankAccuracy: map[string]float64{"8": 0.8}, RankMacroF1: map[string]float64{"8": 0.79},
		Validation: map[string]float64{"7": 0.7, "8": 0.71}, ranks: []int{7, 8}, BestRank: 8, HeadOnly: &head, majority: math.Pi / 20,
		Simulated: strings.Repeat("a long guarantee ", 10), Delivered: "short", BytesUp: 7900, BytesOnceDown: 2_000_000, Checkpoint: "run/checkpoint"}
	var table strings.Builder
	r.printAccuracy(&table, 60)
	r.printPrivacy(&table, 60)
	if n := widest(table.String()); n > 60 {
		t.Errorf("%d columns:\n%s", n, table.String())
	}
	var out bytes.Buffer
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"adapter at rank 7          –        –     70.0 %\n", "adapter at rank 8     80.0 %   79.0 %     71.0 % chosen\n",
		"Once, all devices together: 0 B up, 2.0 MB down", "--test-every-rank"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// The recorded figure of the head alone is quoted for the settings that it was
// measured under, and for no others.
func TestHeadOnlyIsOfItsSettings(t *testing.T) {
	run := func(args ...string) *headOnlyRecord {
		t.Helper()
		var f demoFlags
		fl := demoFlagSet(&f)
		if err := fl.Parse(args); err != nil {
			t.Fatal(err)
		}
		r, err := findHeadOnly(generatedTask("starling-text/1", f.seed), f.settings())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := run(); r == nil || r.Accuracy < 0.5 {
		t.Errorf("the defaults have %+v", r)
	}
	for _, args := range []string{"--rounds=5", "--clients=8", "--epsilon=8", "--vanish=0", "--privacy-unit=provider", "--adaptive-clip", "--base=x", "--seed=2"} {
		if r := run(args); r != nil {
			t.Errorf("%s has a figure that was measured without it", args)
		}
	}
}

// TestDeliveredMeaning: a number that no reader can place is called what it is,
// and the simulated one is not called so twice.
func TestDeliveredMeaning(t *testing.T) {
	for epsilon, protects := range map[float64]bool{1.2: true, 20: true, 5.7e6: false} {
		r := report{Simulated: "SIMULATED epsilon 2 at delta 1e-6", Delivered: "epsilon X", EpsilonDelivered: &epsilon}
		var b strings.Builder
		r.printPrivacy(&b, 100)
		if out := b.String(); strings.Contains(out, "no protection at this size") == protects || strings.Contains(out, "SIMULATED") ||
			!strings.Contains(out, "Simulated  epsilon 2") {
			t.Errorf("epsilon %v:\n%s", epsilon, out)
		}
	}
}
