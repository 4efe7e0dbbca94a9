package audit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The figures are scipy's, by the code of the paper's appendix D.
func TestPValue(t *testing.T) {
	for _, c := range []struct {
		m, r, v        int
		epsilon, delta float64
		want           float64
	}{
		{1000, 1000, 600, 0, 1e-06, 1.51516342774e-05},
		{1000, 1000, 600, .3, 1e-06, 0.0542463013902},
		{1000, 250, 240, 2, 1e-05, 0.000704378918832},
		{100, 100, 100, 3, 1e-06, 0.00778680299135},
		{50, 20, 20, 1, 0.0001, 0.00312296590536},
		{1000, 62, 62, 4, 1e-06, 0.325293649777},
		{24, 24, 22, 1.5, 0, 0.159872248344},
		{5000, 1250, 1100, 1.9, 1e-07, 0.153683971052},
		{1000, 250, 249, 8, 1e-06, 0.99669430855},
	} {
		if got := PValue(c.m, c.r, c.v, c.epsilon, c.delta); math.Abs(got/c.want-1) > 1e-9 {
			t.Errorf("%+v: %.12g", c, got)
		}
	}
	if got := PValue(10, 10, 0, 5, 1e-6); got != 1 {
		t.Errorf("no guess right: %v", got)
	}
}

func TestLowerBound(t *testing.T) {
	for _, c := range []struct {
		m, r, v      int
		delta, level float64
	}{{1000, 100, 100, 1e-6, 0.05}, {1000, 100, 80, 1e-6, 0.05}, {200, 200, 150, 1e-5, 0.001}} {
		e, err := LowerBound(c.m, c.r, c.v, c.delta, c.level)
		if err != nil {
			t.Fatal(err)
		}
		if below, above := PValue(c.m, c.r, c.v, e, c.delta), PValue(c.m, c.r, c.v, e+1e-5, c.delta); e <= 0 || below > c.level || above < c.level {
			t.Errorf("%+v: %v, where the p-value is %v and then %v", c, e, below, above)
		}
	}
	if e, err := LowerBound(100, 40, 22, 1e-6, 0.05); err != nil || e != 0 {
		t.Errorf("about half right: %v, %v", e, err)
	}
	// Without delta it is the one-sided Clopper-Pearson bound: all right, 0.05^(1/n).
	if e, err := LowerBound(60, 60, 60, 0, 0.05); err != nil || math.Abs(1/(1+math.Exp(-e))-math.Pow(0.05, 1./60)) > 1e-6 {
		t.Errorf("all of 60 right: %v, %v", e, err)
	}
	for _, c := range [][3]int{{10, 11, 5}, {10, 5, 6}, {10, 5, -1}, {0, 0, 0}} {
		if _, err := LowerBound(c[0], c[1], c[2], 1e-6, 0.05); err == nil {
			t.Errorf("%v was taken", c)
		}
	}
	for _, c := range [][2]float64{{-1, 0.05}, {1, 0.05}, {math.NaN(), 0.05}, {0, 0}, {0, 1}, {0, math.NaN()}} {
		if _, err := LowerBound(10, 5, 5, c[0], c[1]); err == nil {
			t.Errorf("%v was taken", c)
		}
	}
}

// Randomized response is epsilon-private and no better: of 2,000 audits of it no more
// may err than the level of 1 % says: more than 50 do with probability 3.8e-9.
func TestBoundErrsAsSeldomAsItSays(t *testing.T) {
	const epsilon, level, m, trials = 1.0, 0.01, 100, 2000
	rnd := rand.New(rand.NewChaCha8([32]byte{1}))
	wrong := 0
	for range trials {
		in, scores := make([]bool, m), make([]float64, m)
		for i := range in {
			in[i] = rnd.IntN(2) == 0
			says := in[i] == (rnd.Float64() < 1/(1+math.Exp(-epsilon)))
			if scores[i] = rnd.Float64(); says {
				scores[i]++
			}
		}
		gs, err := guesses("response", scores, in, 0, level/float64(len(shares)))
		if err != nil {
			t.Fatal(err)
		}
		best := 0.0
		for _, g := range gs {
			best = max(best, g.Epsilon)
		}
		if best > epsilon {
			wrong++
		}
	}
	if wrong > 50 {
		t.Errorf("%d of %d lower bounds are above the truth, at a level of %v", wrong, trials, level)
	}
}

// A few facts about sums without a loop between them: the exact posterior, by going
// through all 2^n truths and coins.
func TestDecodeIsExactOnATree(t *testing.T) {
	const n, rate = 5, 0.4
	like := func(f func(sum int) float64) []float64 {
		out := make([]float64, 2*n+1)
		for k := range out {
			out[k] = f(k - n)
		}
		return out
	}
	factors := []factor{
		{[]int8{1, -1, 1, 0, 0}, like(func(s int) float64 { return math.Exp(-float64((s-1)*(s-1)) / 2) })},
		{[]int8{0, 0, 1, 1, -1}, like(func(s int) float64 { return 0.1 + 0.2*float64(s+n) })},
	}
	// Given who is in, the facts are independent: each has coins of its own.
	given := func(f factor, in int) float64 {
		sums := map[int]float64{0: 1}
		for i, a := range f.adds {
			if in>>i&1 == 1 && a != 0 {
				next := map[int]float64{}
				for s, p := range sums {
					next[s] += p * (1 - rate)
					next[s+int(a)] += p * rate
				}
				sums = next
			}
		}
		total := 0.0
		for s, p := range sums {
			total += p * f.like[s+n]
		}
		return total
	}
	got := decode(n, rate, factors)
	for i := range n {
		odds := [2]float64{}
		for in := range 1 << n {
			odds[in>>i&1] += given(factors[0], in) * given(factors[1], in)
		}
		if want := math.Log(odds[1] / odds[0]); math.Abs(got[i]-want) > 1e-5 {
			t.Errorf("canary %d: %v, exactly %v", i, got[i], want)
		}
	}
}

// Exact sums of all that are in show everybody.
func TestDecodeSolvesExactCounts(t *testing.T) {
	const n, rounds = 40, 40
	rnd := rand.New(rand.NewChaCha8([32]byte{2}))
	in := make([]bool, n)
	for i := range in {
		in[i] = rnd.IntN(2) == 0
	}
	var factors []factor
	for range rounds {
		f := factor{adds: make([]int8, n), like: make([]float64, 2*n+1)}
		sum := 0
		for i := range f.adds {
			f.adds[i] = int8(2*rnd.IntN(2) - 1)
			if in[i] {
				sum += int(f.adds[i])
			}
		}
		f.like[sum+n] = 1
		factors = append(factors, f)
	}
	for i, s := range decode(n, 1, factors) {
		if s > 0 != in[i] {
			t.Errorf("canary %d: %v, in: %v", i, s, in[i])
		}
	}
}
