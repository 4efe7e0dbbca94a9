package sweep

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
	"github.com/starling-fl/starling/simulate"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const grid = `
name: small
set:
  population: 2000
  sampling_rate: 0.5
  cohort: 40
  examples: 4
  every: 2
  rounds: 3
  adapter.sequence: 8
  training.steps: 1
  training.batch: 2
  privacy.delta: 1.0e-4
vary:
  method:
    DyLoRA: {adapter.rank_min: 1, adapter.rank_max: 2}
    LoRA: {adapter.rank_min: 2, adapter.rank_max: 2}
  privacy.epsilon: [2, 8]
compare: {method: LoRA}
seeds: [1, 2]
`

func TestParseMultipliesAxes(t *testing.T) {
	p, err := Parse(strings.NewReader(grid), "here")
	ok(t, err)
	if len(p.Points) != 8 || len(p.Axes) != 3 {
		t.Fatalf("%d points over %d axes, want 2 x 2 x 2 over 3", len(p.Points), len(p.Axes))
	}
	at := p.Points[0]
	if want := map[string]string{"method": "DyLoRA", "privacy.epsilon": "2", "seed": "1"}; fmt.Sprint(at.On) != fmt.Sprint(want) {
		t.Errorf("first point is %v, want %v", at.On, want)
	}
	job, err := at.Settings.JobOf("x", []string{"a", "b"})
	ok(t, err)
	if job.Adapter.RankMin != 1 || job.Adapter.RankMax != 2 || job.Privacy.Epsilon != 2 || job.Rounds != 3 {
		t.Errorf("%+v", job)
	}
	if job.Privacy.SimulatedCohort != 1000 || job.Cohort.SamplingRate != 40.0/2000 {
		t.Errorf("simulates %d at rate %v", job.Privacy.SimulatedCohort, job.Cohort.SamplingRate)
	}
	last, err := p.Points[7].Settings.JobOf("x", []string{"a", "b"})
	ok(t, err)
	if last.Adapter.RankMin != 2 || last.Privacy.Epsilon != 8 || p.Points[7].Settings.Seed != 2 {
		t.Errorf("last point is %+v", p.Points[7])
	}
	if first, err := at.Settings.JobOf("x", []string{"a", "b"}); err != nil || first.Privacy.Epsilon != 2 {
		t.Error("points share their settings")
	}
}

func TestSweepFilesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"vary: {population: []}":           "no values",
		"vary: {population: 7}":            "neither a list",
		"vary: {method: {a: 1}}":           "not a group",
		"vary: {populatoin: [1000, 2000]}": "populatoin",
		"colour: red":                      "colour",
		"set: {popultion: 100}":            "popultion is not a setting; did you mean population?",
		"set: {cohort: 6.5}":               `cohort: "6.5" is not a whole number`,
		"set: {ranks: [1, 2.5]}":           `ranks: "2.5" is not a whole number`,
		"seeds: [1.5]":                     `seeds: "1.5" is not a whole number`,
		"set: {population: 1}":             "population is 1",
		"set: {population: 100, cohort: 100, sampling_rate: 0.1}": "nothing is left to scale",
		"set: {population: 10, cohort: 4, cohort.sampling: fixe}": "must be poisson or fixed",
		"set: {alpha: 0}":                                      "alpha is 0",
		"vary: {alpha: [1, 1]}":                                "same simulation",
		"vary: {alpha: [1, 2]}\ncompare: {alpha: 3}":           "want one of 1, 2",
		"compare: {method: x}":                                 "not an axis",
		"vary: {a.b: [" + strings.Repeat("1,", 10_001) + "1]}": "more than",
	} {
		_, err := Parse(strings.NewReader(text), "")
		if !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
	// What the job file refuses is refused with its words, before anything runs.
	s := DefaultSettings()
	s.Job = map[string]any{"adapter": map[string]any{"rank_max": 0}}
	if _, err := s.JobOf("x", []string{"a", "b"}); err == nil || !strings.Contains(err.Error(), "adapter.rank_max is 0") {
		t.Errorf("a rank of 0: %v", err)
	}
	s.Job = map[string]any{"training": map[string]any{"memory": 64.9}}
	if _, err := s.JobOf("x", []string{"a", "b"}); err == nil || err.Error() != `settings: training.memory: "64.9" is not a whole number` {
		t.Errorf("a fraction: %v", err)
	}
	s.Job = map[string]any{"cohort": map[string]any{"population": 3}}
	if _, err := s.JobOf("x", []string{"a", "b"}); !errors.Is(err, ErrSettings) {
		t.Errorf("a population in the job: %v", err)
	}
	s.Job["trainning"] = map[string]any{"steps": 3} // a mistyped key comes first: it may be meant
	if _, err := s.JobOf("x", []string{"a", "b"}); !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), "trainning") {
		t.Errorf("a mistyped key beside it: %v", err)
	}
}

// A grid costs what it has of points: what asks for too many is refused before the
// first is made, however the axes multiply, and a value is read once, not once a point.
func TestHostileGrid(t *testing.T) {
	axis := "[" + strings.Repeat("1, ", 99) + "1]"
	for _, text := range []string{
		"vary: {a.b: " + axis + ", a.c: " + axis + ", a.d: " + axis + "}",
		"vary: {a.b: " + axis + ", a.c: " + axis + "}\nseeds: [1, 2]",
		"vary: {a.b: " + axis + ", a.c: " + axis + ", populatoin: [1, 2]}",
	} {
		made := testing.AllocsPerRun(1, func() {
			if _, err := Parse(strings.NewReader(text), ""); !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), "more than") {
				t.Errorf("%.60s: %v", text, err)
			}
		})
		if made > 20_000 { // reading the text takes 5,000; 10,000 points would take 7 each
			t.Errorf("%.60s was refused after %.0f allocations", text, made)
		}
	}
	reads := func(population string) float64 {
		text := "set: {cohort: 0}\nvary: {a.b: " + axis + ", population: " + population + "}\nseeds: [1]"
		return testing.AllocsPerRun(1, func() {
			if p, err := Parse(strings.NewReader(text), ""); err == nil || p != nil && len(p.Points) < 100 {
				t.Errorf("%.60s: %v", text, err) // two points are the same
			}
		})
	}
	if one, ten := reads("[1000]"), reads("[1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009]"); ten-one > 900*20 {
		t.Errorf("900 points more take %.0f allocations", ten-one)
	}
}

func FuzzParse(f *testing.F) {
	const most = 100 // points: each is work, and a thousand find no more than these
	f.Add(grid)
	f.Add("vary: {x: [1, [2], {a: b}]}")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parse(strings.NewReader(text), "", most)
		if err == nil && len(p.Points) > most {
			t.Errorf("%d points", len(p.Points))
		}
	})
}

// labelOf scores an adapter by its bytes: it needs no model.
type labelOf struct{ n int }

func (e labelOf) Evaluate(ctx context.Context, a *model.Adapter, ranks []int) ([]metric.Score, error) {
	out := make([]metric.Score, len(ranks))
	for i, r := range ranks {
		s, _ := e.Score(ctx, a, r)
		out[i].Accuracy = s.Accuracy
	}
	return out, nil
}

func (e labelOf) Score(_ context.Context, a *model.Adapter, rank int) (Score, error) {
	sum := 0.0
	for _, v := range a.Slice(rank) {
		sum += float64(v) * float64(v)
	}
	return Score{Accuracy: sum / (1 + sum), MacroF1: float64(rank) / float64(e.n)}, nil
}

func lab(t testing.TB) *Lab {
	t.Helper()
	base := tiny.Base(t, 16, 2, 16)
	set := func(n int) *dataset.Set {
		s := &dataset.Set{Labels: []string{"a", "b"}}
		for i := range n {
			s.Examples = append(s.Examples, dataset.Example{Text: fmt.Sprintf("fox %d", i), Label: i % 2})
		}
		return s
	}
	return &Lab{
		Base: base, Workers: 2, Engine: "program", Version: "test",
		Data: func(Source) (*Data, error) {
			return &Data{Name: "foxes", SHA256: "f0", Labels: []string{"a", "b"}, Train: set(80), Validation: set(10), Test: set(20)}, nil
		},
		Evaluators: func(_ *model.Base, _ *model.Layout, _ int, sets ...*dataset.Set) (out []Evaluator, err error) {
			for _, s := range sets {
				out = append(out, labelOf{len(s.Examples)})
			}
			return out, nil
		},
	}
}

// A grid is made once: what is done is read again, and what was interrupted goes
// on to the same record.
func TestGridIsMadeOnce(t *testing.T) {
	p, err := Parse(strings.NewReader(grid), "")
	ok(t, err)
	p.Points = p.Points[:3]
	dir, l := t.TempDir(), lab(t)
	ok(t, l.Keep(p, dir))
	runs := filepath.Join(dir, RunsFolder)
	var first []*Record
	for _, at := range p.Points {
		r, done, err := l.Make(t.Context(), at, runs)
		ok(t, err)
		if done {
			t.Error("done before it was made")
		}
		first = append(first, r)
	}
	ok(t, KeepTable(dir))
	table, err := os.ReadFile(filepath.Join(dir, TableFile))
	ok(t, err)
	rows, err := csv.NewReader(strings.NewReader(string(table))).ReadAll()
	ok(t, err)
	if len(rows) != 4 {
		t.Fatalf("%d rows, want a header and 3", len(rows))
	}
	for _, column := range []string{"on:method", "privacy.epsilon", "seed", "version", "engine", "rho", "signal_norm", "clipped", "bytes_up", "seconds", "test_accuracy"} {
		if !slices.Contains(rows[0], column) {
			t.Errorf("the table has no column %s", column)
		}
	}
	for i, at := range p.Points {
		r, done, err := l.Make(t.Context(), at, runs)
		ok(t, err)
		if !done || r.Accuracy != first[i].Accuracy {
			t.Errorf("point %d: done %v, accuracy %v, was %v", i, done, r.Accuracy, first[i].Accuracy)
		}
		if left, err := otherStates(filepath.Join(runs, r.ID), ""); err != nil || len(left) > 0 {
			t.Errorf("the states of a run that is done: %q, %v", left, err)
		}
	}
	again := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	broken := *l
	broken.Progress = func(Point, simulate.Round, int) { cancel() }
	if _, _, err := broken.Make(ctx, p.Points[0], again); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	r, _, err := l.Make(t.Context(), p.Points[0], again)
	ok(t, err)
	if r.Accuracy != first[0].Accuracy || r.SignalNorm != first[0].SignalNorm || r.Epsilon != first[0].Epsilon {
		t.Errorf("interrupted and taken up: %+v, want %+v", r, first[0])
	}
	// A sweep that changed keeps what it came to before, and does not count it.
	changed := &Plan{Name: p.Name, Axes: p.Axes, Points: p.Points[1:]}
	ok(t, l.Keep(changed, dir))
	x, records, err := Read(dir)
	ok(t, err)
	if strays, err := Strays(dir, x); err != nil || len(records) != 2 || !slices.Equal(strays, []string{first[0].ID}) {
		t.Errorf("%d records beside %q, want 2 beside %s: %v", len(records), strays, first[0].ID, err)
	}
	other := *l
	other.Engine = "another"
	if _, _, err := other.Make(t.Context(), p.Points[0], runs); !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), ": engine: program in the folder, another now; use") {
		t.Errorf("another engine: %v", err)
	}
	other = *l
	other.Data = func(of Source) (*Data, error) {
		d, err := l.Data(of)
		if err != nil {
			return nil, err
		}
		changed := *d
		changed.SHA256 = strings.Repeat("ee", 32)
		return &changed, nil
	}
	if _, _, err := other.Make(t.Context(), p.Points[0], runs); !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), "data: ") || strings.Contains(err.Error(), "engine") {
		t.Errorf("a file that changed: %v", err)
	}
}

// A run that names one before it starts from what that one came to, as if it had been told
// of its checkpoint; what both share is made once; no privacy is counted over both.
func TestRunsBeforeRuns(t *testing.T) {
	l, dir := lab(t), t.TempDir()
	l.Start = func(j job.Job, _ *model.Base) (*model.Adapter, error) {
		ck, err := model.ReadCheckpoint(j.Adapter.Start)
		if err != nil {
			return nil, err
		}
		return ck.Adapter, nil
	}
	p, err := Parse(strings.NewReader(strings.Replace(strings.Replace(grid, "privacy.delta: 1.0e-4", "privacy.none: true\n  first: {rounds: 2}", 1), "  privacy.epsilon: [2, 8]\n", "", 1)), "")
	ok(t, err)
	s := p.Points[0].Settings
	ok(t, l.Check(s))
	got, _, err := l.Make(t.Context(), Point{Settings: s}, dir)
	ok(t, err)
	alone, err := s.Before()
	ok(t, err)
	before, done, err := l.Make(t.Context(), Point{Settings: alone}, filepath.Join(dir, firstFolder))
	ok(t, err)
	if !done || len(before.Curve) != 2 || len(got.Curve) != 3 || got.Start == "" {
		t.Fatalf("the run before: done %v, %d rounds; then %d from %q", done, len(before.Curve), len(got.Curve), got.Start)
	}
	told := s
	told.First, told.Job = nil, clone(s.Job)
	set(told.Job, "adapter.start", filepath.Join(dir, firstFolder, before.ID, CheckpointFolder))
	want, _, err := l.Make(t.Context(), Point{Settings: told}, dir)
	ok(t, err)
	if got.Start != want.Start || got.Accuracy != want.Accuracy || got.SignalNorm != want.SignalNorm {
		t.Errorf("%v after %s, want %v after %s", got.Accuracy, got.Start, want.Accuracy, want.Start)
	}
	if again, done, err := l.Make(t.Context(), Point{Settings: s}, dir); err != nil || !done || again.ID != got.ID {
		t.Errorf("made once more: %v, %v", done, err)
	}
	flat, err := s.Flat()
	ok(t, err)
	if flat["first.rounds"] != "2" {
		t.Errorf("the table says %v", flat)
	}
	for want, bad := range map[string]func(*Settings){
		"not counted together":    func(s *Settings) { s.Job = clone(s.Job); drop(s.Job, "privacy") },
		"roundz is not a setting": func(s *Settings) { s.First = map[string]any{"roundz": 2} },
		"given too":               func(s *Settings) { s.Job = clone(s.Job); set(s.Job, "adapter.start", "x") },
		"ranks up to 5":           func(s *Settings) { s.First = map[string]any{"adapter.rank_max": 5} },
	} {
		s := s
		bad(&s)
		if err := l.Check(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// What was interrupted under another engine, or by a program with other defaults, stands
// in nobody's way: the run begins anew, says so, and leaves the other's rounds alone.
func TestStatesOfOtherSettings(t *testing.T) {
	p, err := Parse(strings.NewReader(grid), "")
	ok(t, err)
	dir, l := t.TempDir(), lab(t)
	interrupt := func(engine string) (done int, others []string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		broken := *l
		broken.Engine = engine
		broken.Begin = func(_ Point, d int, o []string) { done, others = d, o }
		broken.Progress = func(Point, simulate.Round, int) { cancel() }
		if _, _, err := broken.Make(ctx, p.Points[0], dir); !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted under %s: %v", engine, err)
		}
		return done, others
	}
	for _, c := range []struct {
		engine       string
		done, others int
	}{{"one", 0, 0}, {"two", 0, 1}, {"one", 1, 1}, {"two", 1, 1}} {
		if done, others := interrupt(c.engine); done != c.done || len(others) != c.others {
			t.Errorf("%s: %d rounds taken up beside %q, want %d beside %d", c.engine, done, others, c.done, c.others)
		}
	}
	l.Engine = "one"
	r, done, err := l.Make(t.Context(), p.Points[0], dir)
	ok(t, err)
	if done || len(r.Curve) != 3 {
		t.Errorf("done before: %v, %d rounds", done, len(r.Curve))
	}
	if left, err := otherStates(filepath.Join(dir, r.ID), ""); err != nil || len(left) != 1 {
		t.Errorf("left are %q, %v: want the state of engine two", left, err)
	}
}

// The bytes of a run are those of its rounds: a rank's values in the encoding of their way, here
// NF4 up and bfloat16 down, beside what the wire carries, for each member of the cohort, both ways.
func TestBytesOfARun(t *testing.T) {
	p, err := Parse(strings.NewReader(grid), "")
	ok(t, err)
	dir, l := t.TempDir(), lab(t)
	r, _, err := l.Make(t.Context(), p.Points[0], dir)
	ok(t, err)
	f, err := os.Open(filepath.Join(dir, r.ID, bytesFile))
	ok(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	ok(t, err)
	if len(rows) != 1+2*3 {
		t.Fatalf("%d rows, want a header and two for each of 3 rounds", len(rows))
	}
	j, err := p.Points[0].Settings.JobOf("x", []string{"a", "b"})
	ok(t, err)
	layout, err := model.NewLayout(l.Base.Config, j.ForBase(l.Base.Config).Method(), 2)
	ok(t, err)
	for i, round := range r.Curve {
		down, up := rows[1+2*i], rows[2+2*i]
		n := layout.Size(round.Rank)
		want := fmt.Sprintf("[%d server client slice %d %d %d]", i+1, round.Cohort, 2*n, round.BytesDown)
		if fmt.Sprint(down) != want {
			t.Errorf("%v, want %s", down, want)
		}
		want = fmt.Sprintf("[%d client server update %d %d %d]", i+1, round.Cohort, (n+1)/2+4*((n+63)/64), round.BytesUp)
		if fmt.Sprint(up) != want {
			t.Errorf("%v, want %s", up, want)
		}
	}
}

// Of each uplink a value has so many bits before it is masked.
func TestBytesOfUplinks(t *testing.T) {
	for scheme, want := range map[string]int{"fixed32": 4096, "fixed16": 2048, "nf4": 512 + 64, "int4": 512 + 64, "int5": 640, "int3": 384, "tern": 256} {
		if got, err := updateBytes(scheme, 1024); err != nil || got != want {
			t.Errorf("%s: %d bytes, want %d: %v", scheme, got, want, err)
		}
	}
	if _, err := updateBytes("none", 1); err == nil {
		t.Error("an encoding that is none")
	}
	if _, err := slicedBytes("none", 1); err == nil {
		t.Error("a format that is none")
	}
}

func TestReadRefusesStrangers(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Read(dir); err == nil {
		t.Error("an empty folder was read")
	}
	ok(t, os.WriteFile(filepath.Join(dir, IndexFile), []byte(`{"runs":[{"id":"../../etc"}]}`), 0o600))
	if _, _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "no name of ours") {
		t.Errorf("a run outside of the folder: %v", err)
	}
}

// Every preset is a grid of distinct, possible settings over a labelled file.
func TestPresets(t *testing.T) {
	if len(Presets()) < 5 {
		t.Fatalf("presets %v", Presets())
	}
	for _, name := range Presets() {
		_, p, err := Preset(name)
		ok(t, err)
		ok(t, p.Over("r8.txt", "", ""))
		seeds := map[uint64]bool{}
		for _, at := range p.Points {
			if at.Settings.Data != "r8.txt" {
				t.Fatalf("%s: data %q", name, at.Settings.Data)
			}
			seeds[at.Settings.Seed] = true
		}
		if len(seeds) < 3 {
			t.Errorf("%s: %d seeds, want at least 3", name, len(seeds))
		}
	}
	for name, want := range map[string]string{"../plan": "plan\": starling sweep --presets", "paper004-table4-smal": "did you mean paper004-table4-small?",
		"paper004-tab": "did you mean paper004-tab"} {
		if _, _, err := Preset(name); !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), want) || len(err.Error()) > 160 {
			t.Errorf("preset %s, which is none: %v", name, err)
		}
	}
}

// A table says a million, not 1e+06.
func TestNumbersAsOneWritesThem(t *testing.T) {
	s, err := DefaultSettings().With("privacy.delta", 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	flat, err := s.Flat()
	if err != nil || flat["population"] != "1000000" || flat["sampling_rate"] != "0.01" || flat["privacy.delta"] != "1e-06" {
		t.Errorf("population %s, rate %s, delta %s: %v", flat["population"], flat["sampling_rate"], flat["privacy.delta"], err)
	}
}

// A table can be handed on: it names a file by its hash, not by its place here.
func TestTableHasNoPlaces(t *testing.T) {
	s := DefaultSettings()
	s.Data = "/home/somebody/r8.txt"
	text, err := Table(&Index{}, []*Record{{ID: "a", Settings: s, Data: "f337 over 10 by Dirichlet(1)"}})
	if err != nil || bytes.Contains(text, []byte("somebody")) || !bytes.Contains(text, []byte(",r8.txt,")) || !bytes.Contains(text, []byte("f337 over 10")) {
		t.Errorf("%s: %v", text, err)
	}
}
