package simulate_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/model/evaluate/metric"
	"github.com/starling-fl/starling/simulate"
)

// watched remembers what it was given, by whether anything could be learnt from it.
type watched struct {
	edge.Trainer
	mu             sync.Mutex
	learnt, scored map[string]bool
	rounds         []float64 // of each call that scores: mean loss
}

func (w *watched) Train(ctx context.Context, t edge.Task) ([]float32, error) {
	inner := t.Batches
	scores := t.Scores != nil
	t.Batches = func(yield func(edge.Batch, error) bool) {
		for b, err := range inner {
			w.mu.Lock()
			tokens, rows := b.Int32("tokens"), len(b.Float32("weights"))
			for r := range rows {
				if b.Float32("weights")[r] > 0 {
					key := string(asBytes(tokens[r*len(tokens)/rows:(r+1)*len(tokens)/rows])) + string(rune(b.Int32("labels")[r]))
					if scores {
						w.scored[key] = true
					} else {
						w.learnt[key] = true
					}
				}
			}
			w.mu.Unlock()
			if !yield(b, err) {
				return
			}
		}
	}
	if scores {
		tell := t.Scores
		sum, n := 0.0, 0.0
		t.Scores = func(loss, right float64) { sum, n = sum+loss, n+1; tell(loss, right) }
		delta, err := w.Trainer.Train(ctx, t)
		for _, v := range delta {
			if v != 0 {
				panic("something was learnt while scoring")
			}
		}
		w.mu.Lock()
		w.rounds = append(w.rounds, sum/n)
		w.mu.Unlock()
		return delta, err
	}
	return w.Trainer.Train(ctx, t)
}

func asBytes(tokens []int32) (b []byte) {
	for _, v := range tokens {
		b = append(b, byte(v), byte(v>>8))
	}
	return b
}

// What is held out is scored and never trained on; the fleet's mean is that of what its units
// found, and its noise's interval holds it.
func TestHeldOut(t *testing.T) {
	cfg := config(t, 60, false)
	heldOut(&cfg.Job)
	cfg.Job.Rounds = 6
	cfg.Job.Training.Scored, cfg.Job.Adapter.Sequence = 1, 16 // no example is another cut short
	w := &watched{Trainer: edge.NewProgramTrainer(1), learnt: map[string]bool{}, scored: map[string]bool{}}
	defer w.Close()
	cfg.Trainer = w
	words := strings.Fields("the fox jumps over lazy dog quick brown")
	for i, set := range cfg.Population.(simulate.Each) { // texts that differ for the tiny tokenizer, too
		for k := range set.Examples {
			n := 5*i + k
			set.Examples[k].Text = words[n%8] + " " + words[n/8%8] + " " + words[n/64%8]
		}
	}
	inside, told := 0, 0
	result := play(t, cfg)
	if len(w.scored) < 50 || len(w.learnt) < 50 {
		t.Fatalf("%d examples were scored, %d learnt from", len(w.scored), len(w.learnt))
	}
	for key := range w.scored {
		if w.learnt[key] {
			t.Errorf("an example was scored and learnt from: %x", key)
		}
	}
	each := len(w.rounds) / len(result.Rounds) // everybody is in every round
	for i, r := range result.Rounds {
		want := 0.0
		for _, v := range w.rounds[i*each : (i+1)*each] {
			want += v / float64(each)
		}
		if r.Fleet == nil {
			continue
		}
		told++
		if low, high := r.Fleet.Loss.Interval(); low <= want && want <= high {
			inside++
		}
		if r.Fleet.Version != i || r.Fleet.Rank != r.Rank || (r.Fleet.Speed != metric.Noisy{}) || math.Abs(r.Fleet.Units.Mean-float64(each)) > 5*r.Fleet.Units.Noise {
			t.Errorf("round %d: the fleet said %+v, of %d units", i+1, r.Fleet, each)
		}
	}
	if told < 5 || inside < told-1 {
		t.Errorf("of 6 rounds %d said something, %d of them within the noise", told, inside)
	}
}
