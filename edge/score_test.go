//go:build !js || full

package edge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/testkit/reference"
	"github.com/starling-fl/starling/job/training"
)

// A program that scores tells the loss and what is right as GoMLX does on the host, in pieces
// too, and learns nothing from it; one of a job that scores nothing is what it always was.
func TestProgramScores(t *testing.T) {
	base := tinyBase(t)
	for _, rows := range []int{2, 1} {
		s := step(base, 2, "adamw")
		s.HeldOut = 0.1
		if rows < 2 {
			s.MicroBatch = rows
		}
		type score struct{ loss, right float64 }
		run := func(tr Trainer) (all []score) {
			defer tr.Close()
			work := assigned(t, base, 2, compile(t, s, false))
			work.Spec = s.Spec
			work.Steps, work.LearningRate = 4, 0
			work.Scores = func(loss, right float64) { all = append(all, score{loss, right}) }
			delta, err := tr.Train(t.Context(), work)
			ok(t, err)
			if slices.ContainsFunc(delta, func(v float32) bool { return v != 0 }) {
				t.Error("something was learnt")
			}
			return all
		}
		got, want := run(NewProgramTrainer(1)), run(reference.New())
		if len(got) != 4 || len(want) != 4 {
			t.Fatalf("%d scores and %d of 4 batches", len(got), len(want))
		}
		for i := range want {
			if math.Abs(got[i].loss-want[i].loss) > 1e-4 || math.Abs(got[i].right-want[i].right) > 1e-6 {
				t.Errorf("in pieces of %d, batch %d: %+v, want %+v", rows, i, got[i], want[i])
			}
		}
	}
	plain := assigned(t, base, 2, compile(t, step(base, 2, "sgd"), false))
	told := 0
	plain.Scores = func(loss, right float64) {
		if told++; !math.IsNaN(right) || !(loss > 0) {
			t.Errorf("a step that judges nothing says %v, %v", loss, right)
		}
	}
	tr := NewProgramTrainer(1)
	defer tr.Close()
	if _, err := tr.Train(t.Context(), plain); err != nil || told != 4 {
		t.Errorf("%d scores of 4, %v", told, err)
	}
}

// distinctText is another one for each number up to 511, in words that the tiny tokenizer has.
func distinctText(i int) string {
	w := strings.Fields("the fox jumps over lazy dog quick brown")
	return w[i%8] + " " + w[i/8%8] + " " + w[i/64%8]
}

// What is in an example decides whether it is held out: not where it stands, what else is
// there, nor how rows are kept.
func TestHoldOut(t *testing.T) {
	base := tinyBase(t)
	layout := assigned(t, base, 2, nil).Layout
	kind, err := task.New(base, layout, 8)
	ok(t, err)
	var all []dataset.Example
	for i := range 300 {
		all = append(all, dataset.Example{Text: distinctText(i), Label: i % 2})
	}
	held := func(examples []dataset.Example, lazy bool) map[string]bool {
		data, err := NewData(&dataset.Set{Examples: examples, Labels: []string{"a", "b"}}, kind, 0, 0)
		ok(t, err)
		l := data.units[0].data
		if lazy {
			l.rows, l.task, l.examples = nil, kind, examples
		}
		ok(t, data.HoldOut(0.2))
		order, err := l.order(rand.Reader)
		ok(t, err)
		if len(order)+len(l.held) != len(examples) || l.trained() != len(order) {
			t.Errorf("%d are trained on and %d held out, of %d", len(order), len(l.held), len(examples))
		}
		out := map[string]bool{}
		for _, i := range l.held {
			if slices.Contains(order, i) {
				t.Errorf("row %d is trained on and held out", i)
			}
			out[examples[i].Text] = true
		}
		return out
	}
	first := held(all, false)
	if n := len(first); n < 30 || n > 95 { // 60 expected, five standard deviations
		t.Errorf("%d of 300 are held out, the share is 0.2", n)
	}
	turned := slices.Clone(all)
	slices.Reverse(turned)
	if again := held(turned, true); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Error("others are held out in another order")
	}
	for text := range held(all[:100], false) {
		if !first[text] {
			t.Errorf("%s is held out of 100 and not of 300", text)
		}
	}
	one := all[:1]
	for range 60 { // a unit of which nothing would be left keeps what it has
		if h := held(one, false); len(h) != 0 {
			t.Errorf("a device with one example holds it out")
		}
		one = all[len(one):][:1]
		all = all[1:]
	}
}

// A unit says what it found and no more: nothing where nothing is held out, where scoring
// fails, or where it is absent.
func TestWhatIsSaid(t *testing.T) {
	layout, data, lattice := foxes(t, 24)
	code := dp.FigureCode{Coordinates: 2, Symbol: 7}
	say := func(share float64, tr Trainer, least int) dp.Figures {
		for _, u := range data.units {
			u.data.held = nil
		}
		ok(t, data.HoldOut(share))
		sum, err := Contribute(t.Context(), tr, data, Contribution{
			Round: 1, Lattice: lattice, Figures: code, Labels: 24, MinExamples: least,
			Task: Task{Layout: layout, Start: make([]float32, layout.Size(0)), Spec: specOf(8, 2, share)},
		})
		ok(t, err)
		wide := widen(sum[lattice.D():])
		return code.Sums(wide)
	}
	found := &finds{loss: 1, right: 0.75}
	got := say(0.5, found, 0)
	want := contract.Metrics{Loss: 1, Right: 0.75, Speed: math.NaN()}.Figures(24)
	for k := range 3 {
		if math.Abs(got[k]-want[k]) > 1.0/14 {
			t.Errorf("figure %d is %v, want %v", k, got[k], want[k])
		}
	}
	if found.rate != 0 || found.scored == 0 || found.scored > 4 {
		t.Errorf("%d batches were scored at a rate of %v", found.scored, found.rate)
	}
	for name, f := range map[string]dp.Figures{
		"nothing is held out": say(0, &finds{loss: 1}, 0),
		"scoring fails":       say(0.5, &finds{err: errors.New("a trap")}, 0),
		"no number comes out": say(0.5, &finds{loss: math.Inf(1)}, 0),
		"too few examples":    say(0.5, &finds{loss: 1}, 1000),
	} {
		if f != (dp.Figures{}) {
			t.Errorf("%s, and it says %v", name, f)
		}
	}
}

func specOf(steps, scored int, share float64) training.Spec {
	s := training.Spec{Steps: steps, Batch: 4, LearningRate: 1, HeldOut: share}
	if share > 0 {
		s.Scored = scored
	}
	return s
}

// finds is a trainer that finds the same in every batch.
type finds struct {
	loss, right float64
	err         error

	scored int
	rate   float64
}

func (f *finds) Train(_ context.Context, t Task) ([]float32, error) {
	for _, err := range t.Batches {
		if err != nil {
			return nil, err
		}
		if t.Scores != nil {
			f.scored, f.rate = f.scored+1, t.LearningRate
			t.Scores(f.loss, f.right)
		}
	}
	if t.Scores != nil {
		return make([]float32, len(t.Start)), f.err
	}
	return sloped(len(t.Start)), nil
}

func (*finds) Close() error { return nil }
