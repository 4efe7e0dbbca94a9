package sweep

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/starling-fl/starling/model/evaluate/linear"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/simulate"
)

// ran is a record of 30 rounds of 30 clients that clip little, hear little noise and rise no more, beside a linear model that
// is as good.
func ran(change func(r *Record, round *simulate.Round)) *Record {
	r := &Record{Accuracy: 0.8, SignalNorm: 1, Validation: 0.8, Settings: Settings{Validation: 400}, References: &References{Tests: 500, Untouched: 0.1, Linear: &linear.Score{Accuracy: 0.8}}}
	for n := range 30 {
		round := simulate.Round{Number: n + 1, Cohort: 30, Values: 10_000, ClipNorm: 3, MeanNorm: 2, SignalNorm: 1, NoiseNorm: 0.1,
			Accuracy: []simulate.RankAccuracy{{Rank: 1, Accuracy: 0.8, Of: 400}}}
		change(r, &round)
		r.Curve = append(r.Curve, round)
		r.Clipped += round.Clipped / 30
		r.NoiseNorm += round.NoiseNorm / 30
	}
	return r
}

// What is said to limit a run is what does, and a run on request that shows otherwise outweighs what is guessed.
func TestLimits(t *testing.T) {
	better, same := 0.9, 0.81
	for want, change := range map[string]func(r *Record, round *simulate.Round){
		"Limit: none":                           func(*Record, *simulate.Round) {},
		"Limit: the grid of nf4. Clip norm 1e":  func(_ *Record, round *simulate.Round) { round.ClipNorm, round.MeanNorm = 1000, 5 },
		"Limit: clipping. 100 %":                func(_ *Record, round *simulate.Round) { round.Clipped, round.MeanNorm = 1, 9 },
		"Limit: noise, which is 3":              func(_ *Record, round *simulate.Round) { round.NoiseNorm = 3 },
		"Limit: rounds":                         func(_ *Record, round *simulate.Round) { round.Accuracy[0].Accuracy = 0.5 + float64(round.Number)/100 },
		"Limit: the base or the learning rates": func(r *Record, _ *simulate.Round) { r.References.Linear.Accuracy = 0.9 },
		"Limit: noise. Without it the same run has 90.0 %": func(r *Record, round *simulate.Round) {
			r.References.Unnoised, r.References.Unclipped, round.Clipped = &better, &better, 1
		},
		"Limit: clipping. Without it (and without noise) the same run has 90.0 %": func(r *Record, round *simulate.Round) {
			r.References.Unnoised, r.References.Unclipped, round.NoiseNorm = &same, &better, 3
		},
		"Limit: none is seen beyond what chance makes of 500": func(r *Record, round *simulate.Round) {
			r.References.Unnoised, r.References.Unclipped, round.NoiseNorm, round.Clipped = &same, &same, 3, 1
		},
	} {
		if got := ran(change).Limit(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (&Record{Accuracy: 1}).Limit(); got != "" {
		t.Errorf("an older record: %q", got)
	}
}

// The cosine that is estimated is what rounding to the lattice leaves of the mean of updates. With a clip norm of 1,000 in
// place of 20 a cosine of .52 was once measured of updates whose norm is about 5.
func TestKept(t *testing.T) {
	const d, n = 4000, 30
	rng := rand.New(rand.NewPCG(1, 2))
	common, updates := make([]float64, d), make([][]float32, n)
	for k := range common {
		common[k] = 3.3 / math.Sqrt(d) * rng.NormFloat64()
	}
	mean, norm := make([]float64, d), 0.0
	for i := range updates {
		updates[i] = make([]float32, d)
		square := 0.0
		for k := range updates[i] {
			x := common[k] + 4/math.Sqrt(d)*rng.NormFloat64()
			updates[i][k], square = float32(x), square+x*x
			mean[k] += x / n
		}
		norm += math.Sqrt(square) / n
	}
	length := func(x []float64) float64 { return math.Sqrt(dot(x, x)) }
	for _, clip := range []float64{20, 200, 1000} {
		lattice, err := quant.NewLattice(quant.NF4, d, clip, [32]byte{1})
		ok(t, err)
		sum, coins := make([]int64, lattice.D()), rand.NewChaCha8([32]byte{2})
		for _, u := range updates {
			symbols, err := lattice.Encode(u, coins)
			ok(t, err)
			for k, x := range symbols {
				sum[k] += int64(x)
			}
		}
		decoded, err := lattice.DecodeMean(sum, n)
		ok(t, err)
		got := make([]float64, d)
		for k, x := range decoded {
			got[k] = float64(x)
		}
		want := dot(got, mean) / length(got) / length(mean)
		estimate := ran(func(_ *Record, round *simulate.Round) {
			round.Values, round.ClipNorm, round.MeanNorm, round.SignalNorm = d, clip, norm, length(mean)
		}).kept()
		if math.Abs(estimate-want) > 0.05 {
			t.Errorf("clip norm %g leaves a cosine of %.3f, estimated is %.3f", clip, want, estimate)
		}
	}
}

func dot(x, y []float64) (sum float64) {
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

// A run has its references, and its controls are runs that can be made.
func TestReferences(t *testing.T) {
	p, err := Parse(strings.NewReader(grid), "")
	ok(t, err)
	l := lab(t)
	data, err := l.Data(Source{})
	ok(t, err)
	l.Data = func(Source) (*Data, error) { return data, nil } // read once, as by the commands
	r, _, err := l.Make(t.Context(), p.Points[0], t.TempDir())
	ok(t, err)
	f := r.References
	if f == nil || f.Tests != 20 || f.Linear == nil || f.Linear.Texts != 80 || f.NoLinear != "" || f.Unnoised != nil {
		t.Fatalf("%+v", f)
	}
	if r.Limit() == "" {
		t.Error("nothing limits it")
	}
	// Another run over the same parts of the file has them too, but no note of the first one's own.
	unnoised := 0.5
	f.Unnoised = &unnoised
	more, err := p.Points[0].Settings.With("server.learning_rate", 0.5)
	ok(t, err)
	again, _, err := l.Make(t.Context(), Point{Settings: more}, t.TempDir())
	ok(t, err)
	if g := again.References; len(l.references) != 1 || g.Untouched != f.Untouched || g.Linear != f.Linear || g.Unnoised != nil {
		t.Errorf("%d kept: %+v, and %+v", len(l.references), g, f)
	}
	longer, err := more.With("adapter.sequence", 12)
	ok(t, err)
	_, _, err = l.Make(t.Context(), Point{Settings: longer}, t.TempDir())
	if ok(t, err); len(l.references) != 2 {
		t.Errorf("%d kept for two lengths of an example", len(l.references))
	}
	for _, unclipped := range []bool{false, true} {
		s := p.Points[0].Settings.WithoutNoise(2, unclipped)
		ok(t, l.Check(s))
		if !s.Unprotected() || s.Unclipped != unclipped {
			t.Errorf("%+v", s)
		}
	}
	if p.Points[0].Settings.Unprotected() {
		t.Error("the settings themselves were changed")
	}
}
