package leak

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// guesses are the words that the secret's text may have at one place.
var guesses = []string{"milk", "sugar", "steel", "paper", "diesel", "coffee", "timber", "cement", "cotton", "copper", "rubber", "salt", "wine", "glass", "wool", "rice"}

// aimed is an attacker who knows all of a device's texts but one word, and aims the start at it.
type aimed struct {
	t      *testing.T
	p      *probe
	others []dataset.Example // of the same group as the secret
	bounds wire.Bounds
}

// updates are what the device's group sends, clipped to norm 1, for each word that the secret may have.
func (a *aimed) updates(words []string, start []float32) [][]float32 {
	a.t.Helper()
	a.p.start = start
	var out [][]float32
	for _, word := range words {
		text := fmt.Sprintf("we delivered forty crates of %s to your house", word)
		set := append([]dataset.Example{{Text: text, Label: 0}}, a.others...)
		u, err := a.p.trains(watchdog.Context(a.t), set, [32]byte{1})
		if err != nil { // a start beyond what floats hold
			return nil
		}
		if n := norm(u); n > 0 {
			for i := range u {
				u[i] = float32(float64(u[i]) / n)
			}
		}
		out = append(out, u)
	}
	return out
}

// apartBy is the mean distance between the first words' updates: what there is to see.
func apartBy(u [][]float32) float64 {
	sum, n := 0.0, 0
	for i := range u {
		for j := range i {
			d := 0.0
			for k := range u[i] {
				d += float64(u[i][k]-u[j][k]) * float64(u[i][k]-u[j][k])
			}
			sum, n = sum+math.Sqrt(d), n+1
		}
	}
	if n == 0 || math.IsNaN(sum) {
		return 0
	}
	return sum / float64(n)
}

// aim looks for a start by steps that chance proposes, each projected into the bounds, and keeps what shows more.
func (a *aimed) aim(steps int, bounded bool) (start []float32, shows float64) {
	a.t.Helper()
	rnd := rand.New(rand.NewPCG(3, 1))
	project := func(v []float32) []float32 {
		if bounded {
			contract.ProjectStart(a.p.Layout, a.p.Rank, v, a.bounds)
		}
		return v
	}
	start = project(append([]float32{}, a.p.start...))
	shows = apartBy(a.updates(guesses[:3], start))
	scale := 2.0
	if !bounded {
		scale = 30
	}
	for range steps {
		next := append([]float32{}, start...)
		for _, s := range a.p.Layout.Spans(a.p.Rank) {
			part := next[s.Offset : s.Offset+s.Len]
			by := float32(math.Exp(rnd.NormFloat64() * math.Log(scale)))
			for i := range part {
				part[i] *= by
				if s.Kind == model.KindHead && len(s.Shape) == 1 { // which labels count
					part[i] += float32(rnd.NormFloat64() * scale)
				}
			}
		}
		project(next)
		if now := apartBy(a.updates(guesses[:3], next)); now > shows {
			start, shows = next, now
		}
	}
	return start, shows
}

// reads is how often the word is right if all rounds together have noise of so many group norms once: sigma is
// k v over the root of their number.
func reads(u [][]float32, sigma float64, tries int) float64 {
	rnd := rand.New(rand.NewPCG(9, 9))
	right := 0
	for n := range tries {
		is := n % len(u)
		score := make([]float64, len(u))
		for i := range u[is] {
			x := float64(u[is][i]) + sigma*rnd.NormFloat64()
			for w := range u {
				score[w] += (x - float64(u[w][i])/2) * float64(u[w][i])
			}
		}
		best := 0
		for w := range score {
			if score[w] > score[best] {
				best = w
			}
		}
		if best == is {
			right++
		}
	}
	return float64(right) / float64(tries)
}

// Bounds keep a start from making an update one word alone, and an attacker who aims within them still tells words apart:
// what then protects is the device's own noise, and the account that ends the rounds. The attacker knows all else.
func TestHostileAimedStarts(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	s := settings(t, b, func(j *job.Job) {
		j.Adapter.Sequence, j.Adapter.RankMin, j.Adapter.RankMax = 16, 4, 4
		j.Training.Batch = 4
	})
	p, err := newProbe(s, Options{Seed: []byte("aimed")})
	if err != nil {
		t.Fatal(err)
	}
	a := &aimed{t: t, p: p, bounds: contract.StartBounds()}
	for i, text := range []string{"the train to the north was late again", "please send us two new printers", "a lunch for nine people on friday"} {
		a.others = append(a.others, dataset.Example{Text: text, Label: i + 1})
	}
	first := append([]float32{}, p.start...)
	fresh := apartBy(a.updates(guesses[:3], model.NewAdapter(p.Layout, 1).Slice(p.Rank)))
	p.start = first
	within, shown := a.aim(300, true)
	if err := contract.CheckStart(p.Layout, p.Rank, within, a.bounds); err != nil {
		t.Fatal(err)
	}
	u := a.updates(guesses, within)
	p.start = first
	_, free := a.aim(24, false)
	chance := 1 / float64(len(u))
	t.Logf("updates are apart by %.3f from a fresh start, %.3f within bounds, %.3f without", fresh, shown, free)
	if free < 1.35 || shown > 1.2 || shown < 2*fresh {
		t.Errorf("updates are apart by %v from a fresh start, %v within bounds, %v without: aiming, or the bounds, do nothing", fresh, shown, free)
	}
	for _, c := range []struct {
		v, k, rounds float64
		least, most  float64
	}{
		{0.1, 1, 28, 0.95, 1},        // without bits: one job
		{0.1, 16, 28, 0, 0.5},        // what an account of 8 bits about one example lets begin
		{2.37, 1, 62, 0, 0.5},        // the same without groups
		{1, 16, 28, 0, 2.5 * chance}, // ten times the noise
	} {
		got := reads(u, c.k*c.v/math.Sqrt(c.rounds), 400)
		t.Logf("own noise %v in %v groups, %v rounds: %.3f of the words, by chance %.3f", c.v, c.k, c.rounds, got, chance)
		if got < c.least || got > c.most {
			t.Errorf("own noise %v in %v groups, %v rounds: %v of the words are read, want %v to %v", c.v, c.k, c.rounds, got, c.least, c.most)
		}
	}
}
