package prospect

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/lab/sweep"
	"github.com/starling-fl/starling/model/base"
)

// Of fleets of every size, against everybody, there is a job that a coordinator takes, in at most 15 lines; and a
// simulation of it that is no other fleet's.
func TestEveryFleetHasAJob(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, devices := range []int{2, 3, 4, 5, 7, 8, 12, 24, 40, 64, 100, 500, 1000, 2000, 20_000, 1_000_000} {
		for _, of := range Adversaries {
			if devices > 100 && of.Mechanism == job.NoiseSilo || devices > 2000 && of.Mechanism != job.NoiseCentral {
				continue // devices' noise of large fleets takes long to find
			}
			f := Fleet{Name: "mail", Labels: []string{"yes", "travel & hotel", "3"}, Task: "classify", Base: "some/model", Devices: devices, Examples: 20, Rounds: 20, From: of.Name}
			at := fmt.Sprintf("%d devices, from %s", devices, of.Name)
			j, keys, err := f.Job(2, of, "simulated: 90.0 %")
			if err != nil {
				t.Errorf("%s: %v", at, err)
				continue
			}
			made++
			text := f.file(keys)
			if n := strings.Count(text, "\n"); n > mostLines {
				t.Errorf("%s: %d lines:\n%s", at, n, text)
			}
			if strings.Join(j.Labels, "|") != "yes|travel & hotel|3" || j.Cohort.Population != devices || j.Privacy.None != (of.Mechanism == "") {
				t.Errorf("%s: read as %+v", at, j)
			}
			if j.Base = ""; devices <= 100 {
				if _, err := core.NewTerms(j, b); err != nil {
					t.Errorf("%s: %v", at, err)
				}
			}
			s, err := f.Settings("mail.tsv", keys, 1, 0)
			if err == nil {
				_, err = s.JobOf("mail", j.Labels)
			}
			if err != nil {
				t.Errorf("%s: its simulation: %v", at, err)
			}
		}
	}
	if made < 40 {
		t.Errorf("%d jobs were made", made)
	}
}

func TestFleetsThatCannotBe(t *testing.T) {
	good := Fleet{Devices: 40, Examples: 20, Rounds: 20, From: "public"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for flag, change := range map[string]func(*Fleet){
		"--devices":      func(f *Fleet) { f.Devices = 1 },
		"--examples":     func(f *Fleet) { f.Examples = 0 },
		"--rounds":       func(f *Fleet) { f.Rounds = 0 },
		"--protect-from": func(f *Fleet) { f.From = "friends" },
		"--task":         func(f *Fleet) { f.Task = "guess" },
	} {
		f := good
		change(&f)
		if err := f.Check(); err == nil || !strings.HasPrefix(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// A trial adds the noise that the deployment's terms ask for, against the job's own observer: also where a hundred
// clients stand for a cohort, coins hide nobody from a coalition, or devices add the noise.
func TestTrialsHaveTheFleetsNoise(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		devices int
		from    string
	}{{8, "public"}, {40, "public"}, {40, "coordinator"}, {40, "everyone"}, {300, "public"}, {300, "coordinator"}, {20_000, "public"}} {
		at := fmt.Sprintf("%d devices, from %s", c.devices, c.from)
		f := Fleet{Name: "mail", Labels: []string{"yes", "no"}, Devices: c.devices, Examples: 20, Rounds: 5, From: c.from}
		row, err := Trial{Fleet: f}.weigh(2, &sweep.Lab{Base: b})
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		_, keys, err := f.Job(2, f.adversary(), "")
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.Settings("mail.tsv", keys, 1, row.Multiplier)
		if err != nil {
			t.Fatal(err)
		}
		j, err := s.JobOf("mail", f.Labels)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		terms, err := core.NewTerms(j, b)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		if got := terms.Rho(); math.Abs(got-row.Rho) > 0.01*row.Rho || row.Rho <= 0 {
			t.Errorf("%s: a trial's noise is %.3f times what clipping bounds a mean by, the deployment's %.3f", at, got, row.Rho)
		}
	}
}

// answer is one whose simulations came to these accuracies, without noise and at epsilon 2, 8 and 30.
func answer(from string, accuracies ...float64) *Answer {
	a := &Answer{Fleet: Fleet{Devices: 40, Rounds: 20, From: from}}
	rho := []float64{0, 17, 5, 1.7}
	for i, epsilon := range []float64{0, 2, 8, 30}[:max(1, len(accuracies))] {
		row := Row{Epsilon: epsilon, Cell: Cell{Rho: rho[i]}}
		if epsilon > 0 {
			row.Others = map[string]*Cell{"coordinator": {Rho: 2 * rho[i], Ratio: 4 * rho[i], Accuracy: 0.5, Tried: true}}
		}
		if i < len(accuracies) && accuracies[i] >= 0 {
			r := &sweep.Record{Accuracy: accuracies[i], MajorityAccuracy: 0.5, SignalNorm: 0.5, NoiseNorm: rho[i]}
			a.take(&row.Cell, r)
		}
		a.Rows = append(a.Rows, row)
	}
	return a
}

// The advice is the least epsilon that leaves most of what can be learnt, and says when none does.
func TestAdvice(t *testing.T) {
	for _, c := range []struct {
		of     *Answer
		says   string
		chosen float64
	}{
		{answer("public", 0.9, 0.4, 0.45, 0.88), "the noise is 34 times the signal: 40.0 %, less than by always saying the commonest label (50.0 %), and 90.0 % without noise; " +
			"use epsilon 30 (88.0 %), or some 400 devices for epsilon 2.", 30},
		{answer("public", 0.9, 0.88, 0.89, 0.9), "use epsilon 2.", 2},
		{answer("public", 0.9, 0.4, 0.45, 0.6), "no epsilon that was tried leaves most of it. Use some 680 devices, or --protect-from nobody", 2},
		{answer("public", 0.52, 0.4, 0.45, 0.5), "Nothing is learnt even without noise", 2},
		{answer("public", 0.9, 0.4, 0.45, 0.88), "for epsilon 2. Fewer rounds need less noise: see what --rounds 3 comes to.", 30},
		{answer("public", 0.9, -1, -1, -1), "Too little was tried", 2},
		{answer("public", 0.9, 0.6, 0.85, 0.88), "use epsilon 8 (85.0 %)", 8},
		{answer("public", 0.56, 0.4, 0.45, 0.56), "Without noise it is 56.0 %, too: the base, the rounds or the examples limit it", 30},
		{answer("nobody", -1), "Too little was tried", 2},
		{answer("nobody", 0.9), "Without noise 40 devices come to 90.0 %", 0},
	} {
		c.of.choose(2)
		if !strings.Contains(c.of.Advice, c.says) || c.of.Chosen != c.chosen || c.of.Partial != strings.HasPrefix(c.says, "Too little") {
			t.Errorf("epsilon %v: %s\nwant %v: %s", c.of.Chosen, c.of.Advice, c.chosen, c.says)
		}
		var text strings.Builder
		if err := c.of.Print(&text); err != nil || !strings.Contains(text.String(), c.of.Advice) {
			t.Error(err, text.String())
		}
	}
	var text strings.Builder
	a := answer("public", 0.9, 0.4, -1, -1)
	a.choose(2)
	if err := a.Print(&text); err != nil || strings.Count(text.String(), "not tried") != 2 || !strings.Contains(text.String(), "68") {
		t.Errorf("%v: %s", err, &text)
	}
}

// Few rounds, which need less noise, are tried where no epsilon is useful, and taken where one is useful there or the
// one that was asked for comes further.
func TestFewRounds(t *testing.T) {
	for name, c := range map[string]struct {
		few    []float64
		taken  bool
		chosen float64
		says   string
	}{
		"useful":      {[]float64{0.8, 0.6, 0.75, 0.79}, true, 8, "In 20 rounds no epsilon that was tried leaves most of it; fewer need less noise. In 3: "},
		"further":     {[]float64{0.8, 0.55, 0.57, 0.6}, true, 2, "In 20 rounds no epsilon"},
		"no further":  {[]float64{0.8, 0.39, 0.4, 0.45}, false, 2, "leaves most of it, also in 3 rounds"},
		"not tried":   {[]float64{0.8, -1, -1, -1}, false, 2, "no epsilon that was tried"},
		"not learned": {[]float64{0.51, 0.5, 0.5, 0.5}, false, 2, "leaves most of it, also in 3 rounds"},
	} {
		a, few := answer("public", 0.9, 0.4, 0.45, 0.6), answer("public", c.few...)
		few.Rounds = fewRounds
		a.choose(2)
		few.choose(2)
		if !a.noisy {
			t.Fatal("the first answer is taken for a useful one")
		}
		got := a.against(few)
		if (got == few) != c.taken || got.Chosen != c.chosen || !strings.Contains(got.Advice, c.says) {
			t.Errorf("%s: epsilon %v in %d rounds: %s", name, got.Chosen, got.Rounds, got.Advice)
		}
		var text strings.Builder
		if err := got.Print(&text); err != nil || strings.Contains(text.String(), "in 3 rounds\n") == (name == "not tried") || !strings.Contains(text.String(), "in 20 rounds\n") {
			t.Errorf("%s: %v: %s", name, err, &text)
		}
	}
}
