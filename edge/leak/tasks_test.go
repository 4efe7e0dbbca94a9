package leak

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// Every task has examples to be tried on, and something is tried of each.
func TestEveryTask(t *testing.T) {
	small := smallBase(t)
	documents, err := base.Documents()
	if err != nil {
		t.Fatal(err)
	}
	vit, err := model.RandomBase(model.NewViT(32, 1, 8, 4, 1), 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	hears := model.NewHubert(4, 16, 1)
	hears.Speech.Positions, hears.Speech.Groups, hears.Speech.Masked = 4, 2, true
	characters, err := hears.WithCharacters([]string{"abcdefghijklmnopqrstuvwxyz"})
	if err != nil {
		t.Fatal(err)
	}
	hubert, err := model.RandomBase(hears, 3, characters)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		base   *model.Base
		labels []string
		tokens bool
	}{
		"classify": {small, []string{"a", "b", "c"}, true},
		"tag":      {small, []string{"a", "b", "c"}, true},
		"span":     {small, nil, true},
		"pretrain": {small, nil, true},
		"answer":   {documents, nil, true},
		"image":    {vit, []string{"a", "b", "c"}, false},

		"transcribe": {hubert, nil, true}, // its tokens are characters
	} {
		s := settings(t, c.base, func(j *job.Job) { j.Task, j.Labels, j.Training.Batch = name, c.labels, 4 })
		r := tries(t, s, Options{Trials: 2, Tries: 2})
		if a, tried := r.Worst(Tokens); tried != c.tokens || tried && a.All == 0 {
			t.Errorf("%s: tokens %v: %+v", name, tried, a)
		}
		if a, tried := r.Worst(Labels); tried != (c.labels != nil) || tried && a.All < 8 {
			t.Errorf("%s: labels %v: %+v", name, tried, a)
		}
	}
}

// A table that is that of the scores, too, moves in every row; those that are in a text
// are told from the others all the same.
func TestTiedTable(t *testing.T) {
	documents, err := base.Documents()
	if err != nil {
		t.Fatal(err)
	}
	for _, optimizer := range []string{"sgd", "adamw"} {
		s := settings(t, documents, func(j *job.Job) {
			full(j)
			j.Task, j.Labels, j.Adapter.Sequence, j.Training.Optimizer = "answer", nil, 64, optimizer
		})
		if a := found(t, tries(t, s, Options{Trials: 4}), "token rows"); a.Low < 0.3 {
			t.Errorf("%s: %+v", optimizer, a)
		}
	}

	// Noise beside a step that all rows have taken hides no row that took another.
	const n, width = 3000, 8
	rng := rand.New(rand.NewPCG(1, 2))
	rows := make([]float32, n*width)
	for i := range rows {
		rows[i] = 5 + 0.1*float32(rng.NormFloat64())
	}
	there := map[int32]bool{3: true, 700: true, 2999: true}
	for v := range there {
		rows[int(v)*width] = -5
	}
	for v := range best(apart(rows, width), len(there)) {
		if !there[v] {
			t.Errorf("row %d is found", v)
		}
	}
}

// A check that is called off ends.
func TestCalledOff(t *testing.T) {
	s := settings(t, smallBase(t), func(*job.Job) {})
	ctx, cancel := context.WithCancel(watchdog.Context(t))
	o := Options{Tries: 20, Trials: 1000, Progress: func(int, int) { cancel() }}
	if r, err := Check(ctx, s, o); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", r, err)
	}
}
