package leak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/program"
)

// smallBase is an encoder of two layers over the words of invoices that are not those of
// the check: another seed's.
func smallBase(t testing.TB) *model.Base {
	t.Helper()
	set, err := dataset.Invoices(dataset.InvoiceConfig{Seed: 99, Split: "train", Clients: 4, PerClient: 20})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range set.Examples {
		texts = append(texts, e.Text)
	}
	tok, err := tokenizer.Train(slices.Values(texts), 500)
	if err != nil {
		t.Fatal(err)
	}
	text, err := tok.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	base, err := model.RandomBase(model.BERT(tok.VocabSize(), 32, 2, 2, 32), 7, text)
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// settings are a job's, with its program.
func settings(t testing.TB, base *model.Base, change func(*job.Job)) Settings {
	t.Helper()
	j := job.Default()
	j.Name, j.Labels = "tried", []string{"a", "b", "c", "d"}
	j.Adapter.Sequence, j.Adapter.RankMax = 32, 4
	j.Training.Optimizer, j.Training.LearningRate, j.Training.HeadLearningRate = "sgd", 0.1, 0.1
	j.Training.Steps, j.Training.Batch, j.Training.MicroBatch = 1, 1, 0
	change(&j)
	j = j.ForBase(base.Config)
	layout, err := model.NewLayout(base.Config, j.Method(), len(j.Labels))
	if err != nil {
		t.Fatal(err)
	}
	rank := slices.Max(j.Ranks())
	code, err := program.Step(program.Spec{Job: j, Base: base, Rank: rank, Host: program.Hosts[0]})
	if err != nil {
		t.Fatal(err)
	}
	trainer := edge.NewProgramTrainer(1)
	t.Cleanup(func() {
		if err := trainer.Close(); err != nil {
			t.Error(err)
		}
	})
	return Settings{Base: base, Layout: layout, Rank: rank, Sequence: j.Adapter.Sequence, Spec: j.Training,
		Uplink: j.Wire.Uplink, Own: j.Privacy.OwnNoise, Program: code, Trainer: trainer}
}

func tries(t testing.TB, s Settings, o Options) *Report {
	t.Helper()
	if o.Seed == nil {
		o.Seed = []byte("a check's seed")
	}
	if o.Tries == 0 {
		o.Tries = 20
	}
	if o.Starts == 0 {
		o.Starts = -1
	}
	r, err := Check(watchdog.Context(t), s, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Attacks {
		t.Logf("%s: %d of %d %s, others %d of %d, share %.3f in %.3f..%.3f %s", a.Name, a.Found, a.All, a.Of, a.OtherFound, a.OtherAll, a.Share, a.Low, a.High, a.NotTried)
	}
	t.Log(r.Line(), r.Seconds)
	return r
}

func found(t testing.TB, r *Report, name string) Attack {
	t.Helper()
	for _, a := range r.Attacks {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("no attack is called %s", name)
	return Attack{}
}

func full(j *job.Job) { j.Adapter.Method = "full" }

// What leaks is found: with every tensor trained, one example a round and noise that
// nobody but the coordinator adds, an update's embedding rows are its text's tokens. A
// device's own noise of a tenth of the clip norm leaves none of them, in the same update.
func TestPlantedLeak(t *testing.T) {
	base := smallBase(t)
	for _, optimizer := range []string{"sgd", "adamw"} {
		s := settings(t, base, func(j *job.Job) { full(j); j.Training.Optimizer = optimizer })
		rows := found(t, tries(t, s, Options{}), "token rows")
		if rows.Share < 0.95 || rows.Low < 0.9 || rows.All < 100 {
			t.Errorf("%s: of %d tokens a share of %v is found, from %v", optimizer, rows.All, rows.Share, rows.Low)
		}
		s.Own = 0.1
		worst, ok := tries(t, s, Options{}).Worst(Tokens)
		if !ok || worst.Share > 0.05 || worst.High > 0.1 {
			t.Errorf("%s, with own noise: %+v", optimizer, worst)
		}
	}
	many := settings(t, base, func(j *job.Job) { full(j); j.Training.Steps, j.Training.Batch = 2, 8 })
	if worst, _ := tries(t, many, Options{Trials: 3}).Worst(Tokens); worst.Share < 0.9 {
		t.Errorf("of 16 examples: %+v", worst)
	}
}

// deaf comes to an update that its batches have no part in.
type deaf struct{ n uint64 }

func (d *deaf) Train(_ context.Context, t edge.Task) ([]float32, error) {
	d.n++
	rng := rand.New(rand.NewPCG(1, d.n))
	delta := make([]float32, len(t.Start))
	for i := range delta {
		delta[i] = float32(0.01 * rng.NormFloat64())
	}
	return delta, nil
}

func (d *deaf) Close() error { return nil }

// Where nothing can leak nothing is found, whatever attack reads it.
func TestNothingLeaks(t *testing.T) {
	base := smallBase(t)
	for name, change := range map[string]func(*job.Job){"full": full, "lora": func(*job.Job) {}, "labels": func(j *job.Job) { j.Training.Batch = 16 }} {
		s := settings(t, base, change)
		s.Trainer = &deaf{}
		r := tries(t, s, Options{Trials: 20})
		for _, a := range r.Attacks {
			if a.NotTried == "" && (a.Low > 0 || a.Of == Tokens && a.Share > 0.05) {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
}

// Low-rank factors of the first layer's maps show some of the tokens that it reads, where
// an update is of one example; of the second layer's none are looked for.
func TestLayerInputs(t *testing.T) {
	base := smallBase(t)
	s := settings(t, base, func(j *job.Job) {
		j.Wire.Uplink = "fixed32"
		j.Adapter.RankMax = 8
		j.Adapter.Targets = []string{"query", "key", "value"}
	})
	if a := found(t, tries(t, s, Options{Trials: 16}), "layer inputs"); a.Low < 0.1 {
		t.Errorf("nothing is found: %+v", a)
	}
	s = settings(t, base, func(j *job.Job) { j.Adapter.Targets = []string{"output.dense"} })
	if a := found(t, tries(t, s, Options{Trials: 1}), "layer inputs"); a.NotTried == "" {
		t.Errorf("tried: %+v", a)
	}
}

// The head's gradient counts labels, exactly where it is rounded little, and its own noise
// of a tenth of the clip norm does not hide how many there are of each.
func TestLabelCounts(t *testing.T) {
	base := smallBase(t)
	s := settings(t, base, func(j *job.Job) { j.Adapter.Method = "head"; j.Training.Batch = 16 })
	if a := found(t, tries(t, s, Options{}), "label counts"); a.Found < a.All*95/100 || a.All != 8*16 || a.OtherFound > a.All*3/4 {
		t.Errorf("counted: %+v", a)
	}
	s.Layout, _ = model.NewLayout(base.Config, model.Method{RMax: 1, Alpha: 1, Task: model.TaskSpan}, 0)
	p := &probe{Settings: s}
	if a := p.labelCounts(); a.why == "" {
		t.Error("a task without labels is tried")
	}
}

// A base that has no words for made-up texts shows nothing of them, and all of its owner's
// texts: the one is said, and trying it on the owner's is for the other.
func TestOwnData(t *testing.T) {
	words := strings.Fields("άλφα βήτα γάμμα δέλτα έψιλον ζήτα ήτα θήτα ιώτα κάππα λάμδα μι νι ξι όμικρον πι ρο σίγμα ταυ ύψιλον φι χι ψι ωμέγα")
	tok, err := tokenizer.Train(slices.Values([]string{strings.Repeat(strings.Join(words, " ")+" ", 20)}), 200)
	if err != nil {
		t.Fatal(err)
	}
	text, err := tok.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	base, err := model.RandomBase(model.BERT(tok.VocabSize(), 32, 1, 1, 32), 7, text)
	if err != nil {
		t.Fatal(err)
	}
	own := &dataset.Set{}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		var said []string
		for range 6 {
			said = append(said, words[rng.IntN(len(words))])
		}
		own.Examples = append(own.Examples, dataset.Example{Text: strings.Join(said, " "), Label: i % 4})
	}
	s := settings(t, base, full)
	r := tries(t, s, Options{Data: own, Trials: 12})
	if a, _ := r.Worst(Tokens); !r.Own || a.Share < 0.95 || a.All < 12*3 {
		t.Errorf("the owner's: %+v", a)
	}
	if r, err := Check(watchdog.Context(t), s, Options{Trials: 2, Tries: 5}); !errors.Is(err, ErrNotTried) || !strings.Contains(err.Error(), "vocabulary lacks") {
		t.Errorf("made-up ones: %+v, %v", r, err)
	}
	if _, err := Check(watchdog.Context(t), s, Options{Data: own.Pick([]int{0})}); err == nil || !strings.Contains(err.Error(), "2 or more") {
		t.Errorf("one example: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	s := settings(t, smallBase(t), func(*job.Job) {})
	for name, change := range map[string]func(*Settings, *Options){
		"trials":   func(_ *Settings, o *Options) { o.Trials = -1 },
		"uplink":   func(s *Settings, _ *Options) { s.Uplink = "none" },
		"steps":    func(s *Settings, _ *Options) { s.Steps = 0 },
		"sequence": func(s *Settings, _ *Options) { s.Sequence = 1000 },
	} {
		s, o := s, Options{}
		change(&s, &o)
		if r, err := Check(watchdog.Context(t), s, o); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// The same seed gives the same report, another one other texts.
func TestSeed(t *testing.T) {
	s := settings(t, smallBase(t), full)
	var all []string
	for _, seed := range []string{"one", "one", "two"} {
		r := tries(t, s, Options{Seed: []byte(seed), Trials: 2})
		r.Seconds = 0
		all = append(all, fmt.Sprintf("%+v", *r))
	}
	if all[0] != all[1] || all[0] == all[2] {
		t.Errorf("reports %q", all)
	}
}
