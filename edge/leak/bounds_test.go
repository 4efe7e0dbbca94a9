package leak

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/testkit/nightly"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// guesses are the words that the secret's text may have at one place.
var guesses = []string{"milk", "sugar", "steel", "paper", "diesel", "coffee", "timber", "cement", "cotton", "copper", "rubber", "salt", "wine", "glass", "wool", "rice"}

// Bounds keep a start from making an update one word alone, and an attacker who aims within them still tells words apart:
// what then protects is the device's own noise, and the account that ends the rounds. The attacker knows all of a
// device's texts but one word.
func TestHostileAimedStarts(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	s := settings(t, b, func(j *job.Job) {
		j.Adapter.Sequence, j.Adapter.RankMin, j.Adapter.RankMax = 16, 4, 4
		j.Training.Batch = 4
	})
	seeds, steps := 1, 150
	if nightly.All() {
		seeds, steps = 5, 3000
	}
	for seed := range seeds {
		aimsAt(t, s, fmt.Append(nil, "aimed", seed), steps)
	}
}

// published projects into the published bounds.
func published(l *model.Layout, rank int, start []float32) {
	contract.ProjectStart(l, rank, start, contract.StartBounds())
}

// aimsAt plays one attacker.
func aimsAt(t *testing.T, s Settings, seed []byte, steps int) {
	ctx := watchdog.Context(t)
	play := func(unbounded bool, steps int) (fresh, u [][]float32) {
		if s.Project = published; unbounded {
			s.Project = nil
		}
		p, err := newProbe(s, Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		a, err := p.newAim()
		if err != nil {
			t.Fatal(err)
		}
		a.candidates, a.others = nil, nil
		for _, word := range guesses {
			a.candidates = append(a.candidates, dataset.Example{Text: fmt.Sprintf("we delivered forty crates of %s to your house", word)})
		}
		for i, text := range []string{"the train to the north was late again", "please send us two new printers", "a lunch for nine people on friday"} {
			a.others = append(a.others, dataset.Example{Text: text, Label: i + 1})
		}
		if fresh, err = a.updates(ctx, model.NewAdapter(p.Layout, 1).Slice(p.Rank), len(guesses)); err != nil {
			t.Fatal(err)
		}
		start, _, err := a.search(ctx, func() bool { return a.tried < steps })
		if err != nil {
			t.Fatal(err)
		}
		if err := contract.CheckStart(p.Layout, p.Rank, start, contract.StartBounds()); (err != nil) != unbounded {
			t.Fatal(err)
		}
		if u, err = a.updates(ctx, start, len(guesses)); err != nil {
			t.Fatal(err)
		}
		return fresh, u
	}
	fresh, within := play(false, steps)
	_, free := play(true, steps)
	near, far, off := distance(fresh), distance(within), distance(free)
	t.Logf("%s: updates are apart by %.3f from a fresh start, %.3f within bounds, %.3f without", seed, near, far, off)
	if off < 0.9 || far > 1.4 || far < 2*near {
		t.Errorf("%s: updates are apart by %v from a fresh start, %v within bounds, %v without: aiming, or the bounds, do nothing", seed, near, far, off)
	}
	stock := edge.DefaultPolicy().ExampleBits
	for _, c := range []struct {
		of          string
		u           [][]float32
		bits        float64 // that the account gives
		least, most float64
	}{
		{"28 rounds of own noise .1 without groups", within, 28 * 72.13, 0.5, 1},
		{"8 bits", within, 8, 0, 0.94}, // what sixteen at equal distances come to
		{"8 bits from a fresh start", fresh, 8, 0, 0.25},
		{"the stock account", within, stock, 0, 0.63}, // the same
		{"the stock account from a fresh start", fresh, stock, 0, 0.17},
		{"a quarter of a bit", within, 0.25, 0, 0.16},
	} {
		got := named(c.u, 1/math.Sqrt(2*math.Ln2*c.bits), 4000, rand.New(rand.NewPCG(9, 9)))
		t.Logf("%s: %s: %.3f of the words, by chance %.3f", seed, c.of, got, 1/float64(len(guesses)))
		if got < c.least || got > c.most {
			t.Errorf("%s: %s: %v of the words are read, want %v to %v", seed, c.of, got, c.least, c.most)
		}
	}
}
