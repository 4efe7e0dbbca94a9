package leak

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/model/base/llama"
)

// The check finds a start that robs, where nothing defends: which text it was is named in 28 rounds at own noise of .1. With
// the noise that the stock account asks for the same search seldom names it, and an owner is told either.
func TestAimFindsTheRobbery(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	s := settings(t, b, func(j *job.Job) { j.Training.Batch, j.Adapter.Sequence = 16, 16 })
	s.Rounds = 22
	for _, c := range []struct {
		own         float64
		groups      int
		unbounded   bool
		least, most float64
		says        string
	}{
		{0.1, 1, true, 0.95, 1, "without bounds"},
		{0.1, 25, false, 0, 0.6, "within the job's bounds"},
	} {
		s.Own, s.Groups, s.Called, s.Project = c.own, c.groups, 27, published
		if c.unbounded {
			s.Project = nil
		}
		r := tries(t, s, Options{Trials: 1, Tries: 1, Starts: 30, Lasts: 1 << 40})
		if a := r.Aimed; a == nil || a.NotTried != "" || a.Starts != 30 || a.Of != candidates || a.Named < c.least || a.Named > c.most || !strings.Contains(r.Line(), c.says) {
			t.Errorf("own noise %v in %d groups: %+v, %s", c.own, c.groups, a, r.Line())
		}
	}
}

// Every method's start is searched, a decoder's too: none is beyond the bounds, and the best shows no less than a fresh one.
func TestAimAtEveryMethod(t *testing.T) {
	small := smallBase(t)
	commands, err := llama.Commands()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		base   *model.Base
		change func(*job.Job)
	}{
		"lora":      {small, func(*job.Job) {}},
		"full":      {small, full},
		"head":      {small, func(j *job.Job) { j.Adapter.Method = "head" }},
		"bitfit":    {small, func(j *job.Job) { j.Adapter.Method = "bitfit" }},
		"adapter":   {small, func(j *job.Job) { j.Adapter.Method, j.Adapter.Bottleneck = "adapter", 4 }},
		"compacter": {small, func(j *job.Job) { j.Adapter.Method, j.Adapter.Bottleneck, j.Adapter.Blocks = "compacter", 4, 2 }},
		"decoder":   {commands, func(j *job.Job) { j.Task, j.Labels, j.Training.LearningRate = "causal", nil, 0.01 }},
	} {
		s := settings(t, c.base, func(j *job.Job) { c.change(j); j.Training.Batch = 4 })
		s.Project = published
		p, err := newProbe(s, Options{Seed: []byte("aim")})
		if err != nil {
			t.Fatal(name, err)
		}
		a, err := p.newAim()
		if err != nil {
			t.Fatal(name, err)
		}
		ctx := watchdog.Context(t)
		fresh := model.NewAdapter(p.Layout, 1).Slice(p.Rank)
		plain, err := a.shows(ctx, fresh)
		if err != nil {
			t.Fatal(name, err)
		}
		start, shows, err := a.search(ctx, func() bool { return a.tried < 24 })
		if err != nil {
			t.Fatal(name, err)
		}
		if err := contract.CheckStart(p.Layout, p.Rank, start, contract.StartBounds()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if shows < plain || shows == 0 || shows > 2 || len(a.others) != 3 {
			t.Errorf("%s: %v from the start found, %v from a fresh one, %d others", name, shows, plain, len(a.others))
		}
	}
}

// A base whose training takes too long for a search is not searched over: it is said.
func TestAimTooSlow(t *testing.T) {
	s := settings(t, smallBase(t), func(*job.Job) {})
	s.Rounds = 20
	counted := &counts{Trainer: s.Trainer}
	s.Trainer = counted
	tries(t, s, Options{Trials: 2, Lasts: 1, Starts: -1})
	without := counted.n
	counted.n = 0
	r := tries(t, s, Options{Trials: 2, Lasts: 1, Starts: 400})
	if counted.n != without {
		t.Errorf("%d trainings, %d of them the search's: it has no time for one", counted.n, counted.n-without)
	}
	if r.Aimed == nil || !strings.HasPrefix(r.Aimed.NotTried, "a training takes") || !strings.Contains(r.Line(), "no start was searched") {
		t.Errorf("%+v: %s", r.Aimed, r.Line())
	}
}

// counts counts trainings, and fails from one on where it is told to.
type counts struct {
	edge.Trainer
	n, from int
	fails   func() error
}

func (c *counts) Train(ctx context.Context, t edge.Task) ([]float32, error) {
	if c.n++; c.fails != nil && c.n >= c.from {
		return nil, c.fails()
	}
	return c.Trainer.Train(ctx, t)
}

// expired is a context whose end is a deadline's.
type expired struct{ context.Context }

func (e expired) Err() error {
	if e.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// Of a search that fails, at whatever training, it is said why: the attacks that were done count. A user's interrupt ends all.
func TestAimFails(t *testing.T) {
	s := settings(t, smallBase(t), func(*job.Job) {})
	s.Rounds = 20
	counted := &counts{Trainer: s.Trainer}
	s.Trainer = counted
	o := Options{Trials: 2, Tries: 20, Lasts: 1 << 40, Starts: -1, Seed: []byte("fails")}
	want := tries(t, s, o)
	without := counted.n
	late := errors.New("too late")
	for name, c := range map[string]struct {
		at          int // of the search's trainings
		fails       error
		interrupted bool
		says        string
	}{
		"first":       {1, errors.New("broke"), false, "broke"},
		"search":      {candidates + 5, errors.New("broke"), false, "broke"},
		"diverges":    {candidates + 1 + judged*20, edge.ErrDiverged, false, "the start found cannot be trained"},
		"deadline":    {candidates + 1, late, false, late.Error()},
		"interrupted": {candidates + 1, context.Canceled, true, ""},
	} {
		ctx, cancel := context.WithCancelCause(watchdog.Context(t))
		counted.n, counted.from, counted.fails = 0, without+c.at, func() error {
			if c.interrupted || errors.Is(c.fails, late) {
				cancel(late)
			}
			return c.fails
		}
		var given context.Context = expired{ctx}
		if c.interrupted {
			given = ctx
		}
		o.Starts = 20
		r, err := Check(given, s, o)
		cancel(nil)
		if c.interrupted {
			if r != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
			continue
		}
		if err != nil || r.Aimed == nil || !strings.Contains(r.Aimed.NotTried, c.says) || !slices.Equal(r.Attacks, want.Attacks) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// The fixed starts end with the time, too: the first is tried in any case.
func TestAimEndsWithinFixedStarts(t *testing.T) {
	p, err := newProbe(settings(t, smallBase(t), func(*job.Job) {}), Options{Seed: []byte("ends")})
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.newAim()
	if err != nil {
		t.Fatal(err)
	}
	for want, more := range map[int]func() bool{1: func() bool { return false }, 5: func() bool { return a.tried < 5 }} {
		a.tried = 0
		if best, _, err := a.search(watchdog.Context(t), more); err != nil || best == nil || a.tried != want {
			t.Errorf("%d starts, want %d: %v", a.tried, want, err)
		}
	}
}

// How often one of sixteen at right angles is named with noise is what the integral says, and without noise always.
func TestNamed(t *testing.T) {
	u := make([][]float32, 16)
	for i := range u {
		u[i] = make([]float32, 20)
		u[i][i] = 1
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, signal := range []float64{0.3, 1, 2, 4} {
		want := 0.0
		for x := -8.0; x < 8; x += 0.01 {
			want += 0.01 * math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) * math.Pow(math.Erfc(-(x+signal)/math.Sqrt2)/2, 15)
		}
		if got := named(u, 1/signal, 20_000, rnd); math.Abs(got-want) > 0.015 {
			t.Errorf("signal %v: %v are named, want %v", signal, got, want)
		}
	}
	if got := named(u, 0, 100, rnd); got != 1 {
		t.Errorf("without noise %v", got)
	}
}
