package leak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/leaf/l2"
	"github.com/starling-fl/starling/model"
)

// Aimed is the result of a search for a start that tells a device's examples apart. The searcher knows all examples of a
// group but one, and a few candidates for that one; every round begins with the same start.
type Aimed struct {
	NotTried string  `json:"not_tried,omitempty"` // why; "": it was tried
	Bounded  bool    `json:"bounded"`             // the search kept within the job's bounds
	Starts   int     `json:"starts"`              // tried
	Of       int     `json:"of"`                  // examples that the one may be
	Fresh    float64 `json:"fresh"`               // mean distance of two of their updates from a fresh start, over a group's norm bound
	Apart    float64 `json:"apart"`               // and from the best start found
	Named    float64 `json:"named"`               // share of them that all rounds announced name; chance is 1/Of
	Seconds  float64 `json:"seconds"`
}

// Limits of the search.
const (
	candidates  = 16
	judged      = 3       // of them, by whose updates a start is judged
	mostValues  = 1 << 24 // of all candidates' updates, 64 MiB
	aimTries    = 2000    // of naming one with noise
	leastStarts = 8       // fewer say nothing
)

// aim is a search for a start.
type aim struct {
	p          *probe
	others     []dataset.Example // of the same group
	candidates []dataset.Example
	rnd        *rand.Rand
	tried      int
}

// newAim is a search with made-up examples: all of one label, where they have one, or labels would tell them apart.
func (p *probe) newAim() (*aim, error) {
	a := &aim{p: p, rnd: rand.New(p.source("aim", 0))}
	n := max(2, min(candidates, mostValues/max(1, len(p.start))))
	with := max(1, p.examples/max(1, p.Groups)) - 1
	var all []dataset.Example
	for trial := 0; len(all) < n+with && trial < n+with; trial++ {
		more, err := p.madeUp("aim", trial)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	n = min(n, len(all))
	a.candidates, a.others = all[:n:n], all[n:min(len(all), n+with)]
	for i := range a.candidates {
		a.candidates[i].Label = a.candidates[0].Label
	}
	return a, nil
}

// updates are what the group sends from a start with each of the first n candidates, of norm 1: a coordinator
// chooses a clip norm that is below. nil where training fails.
func (a *aim) updates(ctx context.Context, start []float32, n int) ([][]float32, error) {
	was := a.p.start
	a.p.start = start
	defer func() { a.p.start = was }()
	out := make([][]float32, 0, n)
	for _, one := range a.candidates[:n] {
		u, err := a.p.trains(ctx, append([]dataset.Example{one}, a.others...), [32]byte{1})
		if errors.Is(err, ErrNotTried) { // beyond what floats hold
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if n := l2.Norm(u); n > 0 {
			for i := range u {
				u[i] = float32(float64(u[i]) / n)
			}
		}
		out = append(out, u)
	}
	return out, nil
}

// shows is the mean distance of the judged candidates' updates.
func (a *aim) shows(ctx context.Context, start []float32) (float64, error) {
	a.tried++
	u, err := a.updates(ctx, start, min(judged, len(a.candidates)))
	return distance(u), err
}

// distance is the mean distance of two different vectors; 0 of fewer, or where one is not finite.
func distance(u [][]float32) float64 {
	sum, n := 0.0, 0
	for i := range u {
		for j := range i {
			d := 0.0
			for k := range u[i] {
				x := float64(u[i][k] - u[j][k])
				d += x * x
			}
			sum, n = sum+math.Sqrt(d), n+1
		}
	}
	if n == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return 0
	}
	return sum / float64(n)
}

// search tries starts until more says no, and returns the best with what it shows. It begins with a fresh one, with the check's
// own and with ones whose head is sure of all labels but the candidates', so that other examples move nothing; then chance
// changes some tensors of the best one. Each is projected into the bounds.
func (a *aim) search(ctx context.Context, more func() bool) (best []float32, shows float64, err error) {
	try := func(start []float32) error {
		if a.p.Project != nil {
			a.p.Project(a.p.Layout, a.p.Rank, start)
		}
		now, err := a.shows(ctx, start)
		if err == nil && (best == nil || now > shows) {
			best, shows = start, now
		}
		return err
	}
	for _, sure := range []float32{0, 6, 1000} {
		for _, by := range []float32{0, 1, 100, 1e4} { // 0: a fresh one; the last: the robbery's size, where no bound takes it back
			if best != nil && !more() {
				return best, shows, nil
			}
			if err := try(a.gate(a.larger(by), sure)); err != nil {
				return nil, 0, err
			}
		}
	}
	for more() {
		if err := try(a.changed(best)); err != nil {
			return nil, 0, err
		}
	}
	return best, shows, nil
}

// larger is the check's own start with larger factors B, or a fresh one by 0.
func (a *aim) larger(by float32) []float32 {
	if by == 0 {
		return model.NewAdapter(a.p.Layout, 1).Slice(a.p.Rank)
	}
	start := append([]float32{}, a.p.start...)
	for _, s := range a.p.Layout.Spans(a.p.Rank) {
		for i := s.Offset; i < s.Offset+s.Len && s.Kind == model.KindB; i++ {
			start[i] *= by
		}
	}
	return start
}

// gate makes a start's head sure of every label but the candidates', and returns it.
func (a *aim) gate(start []float32, sure float32) []float32 {
	for _, s := range a.p.Layout.Spans(a.p.Rank) {
		if s.Kind == model.KindHead && len(s.Shape) == 1 {
			for i := range s.Len {
				start[s.Offset+i] += sure
				if i == a.candidates[0].Label {
					start[s.Offset+i] -= 2 * sure
				}
			}
		}
	}
	return start
}

// changed is a start of which chance scales some tensors, moves others, or moves which labels count.
func (a *aim) changed(from []float32) []float32 {
	next := append([]float32{}, from...)
	share := []float64{0.1, 0.3, 1}[a.rnd.IntN(3)]
	wide := []float64{1.3, 2, 8, 30}[a.rnd.IntN(4)]
	moves := a.rnd.IntN(3) == 0
	for _, s := range a.p.Layout.Spans(a.p.Rank) {
		if s.Len == 0 || a.rnd.Float64() > share {
			continue
		}
		part := next[s.Offset : s.Offset+s.Len]
		by := float32(math.Exp(a.rnd.NormFloat64() * math.Log(wide)))
		size := float32(0)
		if n := l2.Norm(part); n == 0 {
			size = float32(math.Exp(a.rnd.NormFloat64()*2) / 10)
		} else if moves {
			size = float32(n/math.Sqrt(float64(len(part)))) * by / 2
		}
		if s.Kind == model.KindHead && len(s.Shape) == 1 {
			size = max(size, float32(wide))
		}
		for i := range part {
			if !moves {
				part[i] *= by
			}
			if size > 0 {
				part[i] += size * float32(a.rnd.NormFloat64())
			}
		}
	}
	return next
}

// named is how often the nearest of unit vectors is the one that was sent, with noise of deviation sigma in each value. Where
// there is none it is how many differ.
func named(u [][]float32, sigma float64, tries int, rnd *rand.Rand) float64 {
	n := len(u)
	gram := make([][]float64, n)
	for i := range u {
		gram[i] = make([]float64, n)
		for j := range i + 1 {
			dot := 0.0
			for k := range u[i] {
				dot += float64(u[i][k]) * float64(u[j][k])
			}
			gram[i][j] = dot
			gram[j][i] = dot
		}
	}
	root := cholesky(gram)
	right := 0
	noise := make([]float64, n)
	for try := range tries {
		for i := range noise {
			noise[i] = rnd.NormFloat64()
		}
		is, best, at := try%n, math.Inf(-1), -1
		for w := range n {
			score := gram[is][w] - gram[w][w]/2
			for k := range w + 1 {
				score += sigma * root[w][k] * noise[k]
			}
			if score > best {
				best, at = score, w
			}
		}
		if at == is {
			right++
		}
	}
	return float64(right) / float64(max(1, tries))
}

// cholesky is the lower triangular root of a matrix that is positive but for rounding.
func cholesky(m [][]float64) [][]float64 {
	root := make([][]float64, len(m))
	for i := range m {
		root[i] = make([]float64, len(m))
		for j := range i + 1 {
			x := m[i][j]
			for k := range j {
				x -= root[i][k] * root[j][k]
			}
			switch {
			case i == j:
				root[i][i] = math.Sqrt(max(0, x))
			case root[j][j] > 1e-6:
				root[i][j] = x / root[j][j]
			}
		}
	}
	return root
}

// tryAimed searches for so long, and says what the start found shows over all rounds announced. Of a search that fails
// or takes too long it says so: the attacks that are done by then count without it. Only its user's interrupt is an error.
func (p *probe) tryAimed(ctx context.Context, lasts time.Duration) (*Aimed, error) {
	limit := max(2*lasts, 10*time.Second)
	within, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the search takes more than %v", limit))
	defer stop()
	r := &Aimed{Bounded: p.Project != nil}
	if err := p.aims(within, r, lasts); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, err
		}
		r.NotTried = edge.Escape(cmp.Or(context.Cause(within), err).Error(), false)
	}
	return r, nil
}

// aims is tryAimed's search. It begins only where there is time for the fewest starts, by the trainings so far: the
// coordinator chooses base and job, and so how long one takes.
func (p *probe) aims(ctx context.Context, r *Aimed, lasts time.Duration) error {
	began := time.Now()
	a, err := p.newAim()
	if err != nil {
		return err
	}
	if r.Of = len(a.candidates); r.Of < 2 {
		return errors.New("there are no two examples to tell apart")
	}
	one, of := p.step*time.Duration(p.steps(1+len(a.others))), 2*r.Of+leastStarts*min(judged, r.Of)
	if one*time.Duration(of) > lasts {
		return fmt.Errorf("a training takes %.3g s here, and a search needs %d in %.3g s", one.Seconds(), of, lasts.Seconds())
	}
	u, err := a.updates(ctx, model.NewAdapter(p.Layout, 1).Slice(p.Rank), r.Of)
	if err != nil {
		return err
	}
	if len(u) == 0 {
		return errors.New("a fresh start cannot be trained")
	}
	r.Fresh = distance(u)
	until := began.Add(lasts - time.Since(began)) // the last step judges all candidates
	start, _, err := a.search(ctx, func() bool { return a.tried < p.Starts && time.Now().Before(until) && ctx.Err() == nil })
	if err != nil {
		return err
	}
	if a.tried < min(leastStarts, p.Starts) {
		return fmt.Errorf("there was time for %d starts, want %d or more", a.tried, leastStarts)
	}
	if u, err = a.updates(ctx, start, r.Of); err != nil {
		return err
	}
	if len(u) == 0 {
		return errors.New("the start found cannot be trained")
	}
	r.Starts, r.Apart = a.tried, distance(u)
	sigma := p.Own * float64(max(1, p.Groups)) / math.Sqrt(p.Called)
	r.Named = named(u, sigma, aimTries, a.rnd)
	r.Seconds = time.Since(began).Seconds()
	return nil
}
