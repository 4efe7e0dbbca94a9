package optimizer

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-fl/starling/job"
)

func must(t *testing.T, cfg job.Server, n int) *Optimizer {
	t.Helper()
	o, err := New(cfg, n)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func near(t *testing.T, what string, got []float32, want ...float64) {
	t.Helper()
	for i := range want {
		if math.Abs(float64(got[i])-want[i]) > 1e-6*(1+math.Abs(want[i])) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
}

func TestFedAvg(t *testing.T) {
	o := must(t, job.Server{Optimizer: job.FedAvg, LearningRate: 0.5}, 3)
	x := []float32{1, 2, 3}
	if err := o.Step(x, []float32{2, -4, 0}, nil); err != nil {
		t.Fatal(err)
	}
	near(t, "x", x, 2, 0, 3)
}

func TestFedAvgM(t *testing.T) {
	o := must(t, job.Server{Optimizer: job.FedAvgM, LearningRate: 1, Momentum: 0.5}, 1)
	x := []float32{0}
	for range 3 { // m = 1, 1.5, 1.75
		if err := o.Step(x, []float32{1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	near(t, "x", x, 4.25)
}

// TestFedAdam works algorithm 2 of Reddi et al. by hand: v0 = eps^2, no bias
// correction.
func TestFedAdam(t *testing.T) {
	const b1, b2, eps, lr, d = 0.9, 0.99, 0.1, 0.3, 2.0
	o := must(t, job.Server{Optimizer: job.FedAdam, LearningRate: lr, Beta1: b1, Beta2: b2, Epsilon: eps}, 1)
	x := []float32{1}
	m, v, want := 0.0, eps*eps, 1.0
	for range 4 {
		m = b1*m + (1-b1)*d
		v = b2*v + (1-b2)*d*d
		want += lr * m / (math.Sqrt(v) + eps)
		if err := o.Step(x, []float32{d}, nil); err != nil {
			t.Fatal(err)
		}
		near(t, "x", x, want)
	}
	first := 1 + lr*(1-b1)*d/(math.Sqrt(b2*eps*eps+(1-b2)*d*d)+eps)
	corrected := 1 + lr*d/(math.Sqrt(d*d)+eps)
	if math.Abs(first-corrected) < 0.1 {
		t.Fatal("the case does not tell bias correction apart")
	}
}

// TestFedAdagradAndFedYogi work their lines of algorithm 2 by hand, over steps that
// shrink, so that Yogi's second moment has to fall.
func TestFedAdagradAndFedYogi(t *testing.T) {
	const b1, b2, eps, lr = 0.9, 0.99, 0.1, 0.3
	deltas := []float64{2, -1, 0.5, 0.01}
	for name, second := range map[string]func(v, square float64) float64{
		job.FedAdagrad: func(v, square float64) float64 { return v + square },
		job.FedYogi: func(v, square float64) float64 {
			sign := 0.0
			if v != square {
				sign = (v - square) / math.Abs(v-square)
			}
			return v - (1-b2)*square*sign
		},
	} {
		o := must(t, job.Server{Optimizer: name, LearningRate: lr, Beta1: b1, Beta2: b2, Epsilon: eps}, 1)
		x := []float32{1}
		m, v, want := 0.0, eps*eps, 1.0
		for _, d := range deltas {
			m = b1*m + (1-b1)*d
			v = second(v, d*d)
			want += lr * m / (math.Sqrt(v) + eps)
			if err := o.Step(x, []float32{float32(d)}, nil); err != nil {
				t.Fatal(err)
			}
			near(t, name, x, want)
		}
	}
}

// TestSubsetKeepsTheRest: coordinates outside the round's rank keep value and
// state, so that training them later is as if the round had not been.
func TestSubsetKeepsTheRest(t *testing.T) {
	for _, name := range []string{job.FedAvg, job.FedAvgM, job.FedAdagrad, job.FedAdam, job.FedYogi} {
		cfg := job.Server{Optimizer: name, LearningRate: 0.7, Momentum: 0.9, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-3}
		whole, parts := must(t, cfg, 4), must(t, cfg, 4)
		x := []float32{1, 2, 3, 4}
		y := slices.Clone(x)
		for i := range 3 {
			d := []float32{1, float32(i), -2, 0.5}
			if err := whole.Step(x, d, nil); err != nil {
				t.Fatal(err)
			}
			for _, idx := range [][]int{{3, 0}, {1, 2}} {
				sub, sd := []float32{y[idx[0]], y[idx[1]]}, []float32{d[idx[0]], d[idx[1]]}
				if err := parts.Step(sub, sd, idx); err != nil {
					t.Fatal(err)
				}
				y[idx[0]], y[idx[1]] = sub[0], sub[1]
			}
		}
		if !slices.Equal(x, y) || !bytes.Equal(whole.State(), parts.State()) {
			t.Errorf("%s: %v in parts, %v whole", name, y, x)
		}
	}
}

func TestStateSurvives(t *testing.T) {
	cfg := job.Server{Optimizer: job.FedAdam, LearningRate: 1, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-3}
	a := must(t, cfg, 2)
	x := []float32{1, 2}
	if err := a.Step(x, []float32{1, -1}, nil); err != nil {
		t.Fatal(err)
	}
	b := must(t, cfg, 2)
	if err := b.Restore(a.State()); err != nil {
		t.Fatal(err)
	}
	y := slices.Clone(x)
	if err := errors.Join(a.Step(x, []float32{0.5, 2}, nil), b.Step(y, []float32{0.5, 2}, nil)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(x, y) {
		t.Errorf("restored %v, kept %v", y, x)
	}
	if err := b.Restore(make([]byte, 15)); !errors.Is(err, ErrState) {
		t.Errorf("a short state: %v", err)
	}
	if len(must(t, job.Server{Optimizer: job.FedAvg, LearningRate: 1}, 5).State()) != 0 {
		t.Error("FedAvg has state")
	}
}

func TestRefusals(t *testing.T) {
	good := job.Server{Optimizer: job.FedAdam, LearningRate: 1, Momentum: 0.9, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-3}
	for name, edit := range map[string]func(*job.Server){
		"name":          func(c *job.Server) { c.Optimizer = "sgd" },
		"learning rate": func(c *job.Server) { c.LearningRate = 0 },
		"nan":           func(c *job.Server) { c.LearningRate = math.NaN() },
		"momentum":      func(c *job.Server) { c.Optimizer, c.Momentum = job.FedAvgM, 1 },
		"beta1":         func(c *job.Server) { c.Beta1 = -0.1 },
		"beta2":         func(c *job.Server) { c.Beta2 = 1 },
		"epsilon":       func(c *job.Server) { c.Epsilon = 0 },
	} {
		c := good
		edit(&c)
		if _, err := New(c, 1); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if _, err := New(good, -1); err == nil {
		t.Error("a negative length was taken")
	}
	o := must(t, good, 2)
	x := []float32{1, 2}
	for name, err := range map[string]error{
		"lengths": o.Step(x, []float32{1}, nil),
		"size":    o.Step(x[:1], []float32{1}, nil),
		"index":   o.Step(x, []float32{1, 1}, []int{0}),
		"range":   o.Step(x, []float32{1, 1}, []int{0, 2}),
		"nan":     o.Step(x, []float32{1, float32(math.NaN())}, nil),
		"inf":     o.Step(x, []float32{float32(math.Inf(1)), 1}, nil),
	} {
		if err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if x[0] != 1 || x[1] != 2 {
		t.Errorf("a refused step changed the parameters: %v", x)
	}
}
