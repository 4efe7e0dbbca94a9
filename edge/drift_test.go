//go:build !js || full

package edge

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job/training"
)

// The robbery by repeated and by drifting starts, against all of the device's own arithmetic: clip, groups, rounding, noise
// and account. Training is the attacker's dream: the update of who has the secret text is that text and nothing else, 16
// words at their places, each a direction of its own; of all other texts nothing comes. A drifting start turns the
// directions of each round anew, so that no two rounds begin alike; who made the starts turns them back.
const (
	robbedPlaces = 16
	robbedWords  = 256
	sharp        = 4 // a place is read where one word is so many sigmas above all others
)

// dream is the trainer that a crafted start makes of a program. secret is the label of the example with the text.
type dream struct {
	secret int32
	words  [robbedPlaces]int
}

func (th *dream) Train(_ context.Context, t Task) ([]float32, error) {
	delta := make([]float32, len(t.Start))
	for batch, err := range t.Batches {
		if err != nil {
			return nil, err
		}
		for row, w := range batch.Float32(task.Weights) {
			if w != 0 && batch.Int32(task.Labels)[row] == th.secret {
				for place, word := range th.words {
					code(place, word, func(i int, x float32) { delta[i] += 1000 * x * t.Start[i] })
				}
			}
		}
	}
	return delta, nil
}

func (*dream) Close() error { return nil }

// code is the direction of a word at a place, of 1,000 signs that chance draws.
func code(place, word int, each func(i int, x float32)) {
	rnd := rand.New(rand.NewPCG(uint64(place), uint64(word)+1))
	for i := 0; i < 1000; i += 64 {
		bits := rnd.Uint64()
		for b := range min(64, 1000-i) {
			each(i+b, 2*float32(bits>>b&1)-1)
		}
	}
}

// robbedRounds is how many rounds of the job the account of a device with that policy lets begin.
func robbedRounds(t *testing.T, v float64, k int, p Policy, most int) int {
	t.Helper()
	a, err := NewAccount(nil, nil)
	ok(t, err)
	for n := range most {
		// One round a job, each of another coordinator: what is promised is promised over all of them.
		j := &job{Job: wire.Job{Rounds: 20, Groups: uint32(k), Privacy: wire.Privacy{Private: true, NoiseMultiplier: 1, Delta: 1e-6, OwnNoise: v}}}
		binary.LittleEndian.PutUint64(j.task[:], uint64(n))
		if a.afford(j, &p) != nil || a.begin(j, 1, most+1, time.Now()) != nil || a.contribute(j, &p, traffic{}) != nil {
			return n
		}
	}
	return most
}

// robbed plays the rounds, and returns the share of the secret's words that the attacker reads.
func robbed(t *testing.T, v float64, k, rounds int, drifts bool) float64 {
	t.Helper()
	if rounds == 0 {
		return 0
	}
	kind, vector, start := grouped(t, k)
	th := &dream{secret: 3}
	rnd := rand.New(rand.NewPCG(5, 5))
	for i := range th.words {
		th.words[i] = rnd.IntN(robbedWords)
	}
	own, err := dp.OwnNoise{Multiplier: v}.Variance(vector.B2())
	ok(t, err)
	seed := []byte("robbed")
	data, err := NewGroupedData(unlike(16), kind, 0, 0, k, seed)
	ok(t, err)
	sum := make([]float64, len(start))
	for round := range rounds {
		for i := range start {
			start[i] = 1
			if drifts && rnd.IntN(2) == 0 {
				start[i] = -1
			}
		}
		got, err := Contribute(t.Context(), th, data, Contribution{Round: uint64(round + 1), Lattice: vector.Lattice, Groups: k, Units: 1, Seed: seed, Own: own,
			Noise: dp.NewSampler(rand.NewChaCha8([32]byte{byte(round), byte(round >> 8), 1})),
			Task:  Task{Start: start, Spec: training.Spec{Steps: 1, Batch: 16}, Sequence: 8}})
		ok(t, err)
		mean, err := vector.Lattice.DecodeMean(widen(got), 1)
		ok(t, err)
		for i := range sum {
			sum[i] += float64(mean[i]) * float64(start[i])
		}
	}
	// What other words score is the noise, however much there is.
	read := 0
	for place, word := range th.words {
		best, at, squares := 0.0, -1, 0.0
		for w := range robbedWords {
			score := 0.0
			code(place, w, func(i int, x float32) { score += sum[i] * float64(x) })
			squares += score * score
			if score > best {
				best, at = score, w
			}
		}
		if at == word && best > sharp*math.Sqrt((squares-best*best)/(robbedWords-1)) {
			read++
		}
	}
	return float64(read) / robbedPlaces
}

func TestHostileDriftingStarts(t *testing.T) {
	off := Policy{}
	for _, drifts := range []bool{false, true} {
		// Without defences: all of the text, in the rounds of one job.
		if got := robbed(t, 0.1, 1, robbedRounds(t, 0.1, 1, off, 28), drifts); got < 0.95 {
			t.Errorf("drifts %v: without defences the robbery reads %v of the words: it is none", drifts, got)
		}
		if got := robbed(t, 0.005, 16, robbedRounds(t, 0.005, 16, off, 28), drifts); got < 0.95 {
			t.Errorf("drifts %v: of groups with little noise it reads %v of the words", drifts, got)
		}
		for _, c := range []struct {
			v float64
			k int
		}{{0.1, 1}, {0.1, 16}, {0.3, 8}, {1.21, 4}} {
			rounds := robbedRounds(t, c.v, c.k, DefaultPolicy(), 2000)
			if got := robbed(t, c.v, c.k, rounds, drifts); got > 0.02 {
				t.Errorf("drifts %v: own noise %v in %d groups: %d rounds read %v of the words", drifts, c.v, c.k, rounds, got)
			}
		}
	}
}
