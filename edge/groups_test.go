//go:build !js || full

package edge

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
)

// reader is a trainer whose update, far beyond any clip norm, follows from what it is given to
// read and from nothing else: the worst that a crafted start can make of texts.
type reader struct {
	calls int
	fails func(label int32) bool // an update that is not finite, of who has an example of the label
}

func (r *reader) Train(_ context.Context, t Task) ([]float32, error) {
	r.calls++
	h, bad := fnv.New64a(), false
	seen := map[string]bool{}
	for batch, err := range t.Batches {
		if err != nil {
			return nil, err
		}
		width := len(batch.Int32(task.Tokens)) / len(batch.Int32(task.Labels))
		for row, w := range batch.Float32(task.Weights) {
			if w != 0 {
				label := batch.Int32(task.Labels)[row]
				bad = bad || r.fails != nil && r.fails(label)
				seen[fmt.Sprint(label, batch.Int32(task.Tokens)[row*width:(row+1)*width])] = true
			}
		}
	}
	texts := make([]string, 0, len(seen))
	for text := range seen {
		texts = append(texts, text)
	}
	slices.Sort(texts)
	h.Write([]byte(strings.Join(texts, "\n")))
	rnd := rand.New(rand.NewPCG(h.Sum64(), 1))
	delta := make([]float32, len(t.Start))
	for i := range delta {
		delta[i] = float32(rnd.NormFloat64())
		if bad {
			delta[i] = float32(math.NaN())
		}
	}
	return delta, nil
}

func (*reader) Close() error { return nil }

// grouped is a job's task and a lattice of a unit's clip norm 1 in k groups, of d values.
func grouped(t *testing.T, k int) (task.Task, contract.Vector, []float32) {
	t.Helper()
	b := tinyBase(t)
	layout, err := model.NewLayout(b.Config, model.Method{RMax: 2, Alpha: 4}, 24)
	ok(t, err)
	kind, err := task.New(b, layout, 8)
	ok(t, err)
	const d = 1000
	l, err := contract.Lattice("nf4", d, 1, k, [32]byte{3})
	ok(t, err)
	return kind, contract.Vector{Lattice: l, Groups: k}, make([]float32, d)
}

// unlike are n examples none of which is like another, labelled by their numbers.
func unlike(n int) *dataset.Set {
	s := &dataset.Set{}
	for i := range 24 {
		s.Labels = append(s.Labels, fmt.Sprint("label", i))
	}
	for i := range n {
		s.Examples = append(s.Examples, dataset.Example{Text: distinctText(i), Label: i % 24, Line: i + 1})
	}
	return s
}

func contributed(t *testing.T, tr Trainer, set *dataset.Set, providers, k int, change func(*Contribution)) []int32 {
	t.Helper()
	kind, v, start := grouped(t, k)
	rate := 0.0
	if providers > 0 {
		rate = 1
	}
	seed := []byte("seed")
	data, err := NewGroupedData(set, kind, providers, rate, k, seed)
	ok(t, err)
	c := Contribution{Round: 1, Lattice: v.Lattice, Groups: k, Units: max(1, providers), Seed: seed,
		Task: Task{Start: start, Spec: training.Spec{Steps: 4, Batch: 16}, Sequence: 8}}
	if change != nil {
		change(&c)
	}
	sum, err := Contribute(t.Context(), tr, data, c)
	ok(t, err)
	return sum
}

func distance2(a, b []int32) (n int64) {
	for i := range a {
		n += int64(a[i]-b[i]) * int64(a[i]-b[i])
	}
	return n
}

// Whatever training makes of texts, one of them moves what its device sends within twice the norm
// of one group, and all of them within the norm of the device.
func TestOneExampleMovesOneGroup(t *testing.T) {
	const n = 32
	for _, k := range []int{1, 4, 8, 16} {
		_, v, _ := grouped(t, k)
		before := contributed(t, &reader{}, unlike(n), 0, k, nil)
		if got := distance2(before, make([]int32, len(before))); got > v.B2() || got == 0 {
			t.Errorf("%d groups: a device's vector has squared norm %d, bound %d", k, got, v.B2())
		}
		for _, i := range []int{0, 13, n - 1} {
			other := unlike(n)
			other.Examples[i].Text = distinctText(1000 + i)
			got := distance2(before, contributed(t, &reader{}, other, 0, k, nil))
			if got > 4*v.PartB2() || got == 0 {
				t.Errorf("%d groups: example %d moves its device's vector by %.1f, bound %.1f", k, i, math.Sqrt(float64(got)), 2*math.Sqrt(float64(v.PartB2())))
			}
			if k > 1 && got > v.B2() {
				t.Errorf("%d groups: one example moves the vector as all together may", k)
			}
		}
	}
}

// The bound in units of the clip norm: k groups each clipped to C/k, all in one direction, come to C.
func TestGroupsShareTheClipNorm(t *testing.T) {
	for _, k := range []int{1, 2, 16} {
		_, v, _ := grouped(t, k)
		sum := contributed(t, &constant{value: 5}, unlike(32), 0, k, nil)
		mean, err := v.Lattice.DecodeMean(widen(sum), 1)
		ok(t, err)
		along := 0.0
		for _, x := range mean {
			along += float64(x)
		}
		if along /= math.Sqrt(float64(len(mean))); math.Abs(along-1) > 0.03 {
			t.Errorf("%d groups come to %v along their common direction, want the clip norm 1", k, along)
		}
	}
}

// A group that fails sends zeros alone; what the others send stays as it is.
func TestAFailingGroupAloneIsZeros(t *testing.T) {
	const n, k = 24, 8
	_, v, _ := grouped(t, k)
	sound := contributed(t, &reader{}, unlike(n), 0, k, nil)
	failures := 0
	hurt := contributed(t, &reader{fails: func(label int32) bool { return label == 5 }}, unlike(n), 0, k, func(c *Contribution) {
		c.Failed = func(error) { failures++ }
	})
	if failures != 1 {
		t.Errorf("%d groups failed, the label is in one", failures)
	}
	if got := distance2(sound, hurt); got > v.PartB2() || got == 0 {
		t.Errorf("a failing group moves its device's vector by %.1f, bound %.1f", math.Sqrt(float64(got)), math.Sqrt(float64(v.PartB2())))
	}
	if slices.Max(hurt) == 0 {
		t.Error("the whole device sends zeros")
	}
}

// Every example is trained in one group, in groups of one size but for one.
func TestGroupsAreDealt(t *testing.T) {
	kind, _, _ := grouped(t, 1)
	for _, n := range []int{3, 16, 67} {
		data, err := NewGroupedData(unlike(n), kind, 0, 0, 8, []byte("a"))
		ok(t, err)
		ok(t, data.HoldOut(0.2))
		rows := map[int]int{}
		for g, p := range data.units[0].parts {
			if got := p.trained() + len(p.held); got < n/8-1 || got > n/8+2 { // a few texts are like others
				t.Errorf("group %d of 8 has %d of %d examples", g, got, n)
			}
			order, err := p.order(random([]byte("order"), forBatches, 1))
			ok(t, err)
			for _, row := range append(slices.Clone(order), p.held...) {
				rows[row]++
			}
			for _, row := range order {
				if slices.Contains(data.units[0].data.held, row) {
					t.Errorf("row %d is held out and trained on in group %d", row, g)
				}
			}
			for _, row := range p.held {
				if !slices.Contains(data.units[0].data.held, row) || slices.Contains(order, row) {
					t.Errorf("row %d is held out of a group and not of the device, or trained on", row)
				}
			}
		}
		if len(rows) != n {
			t.Errorf("%d of %d examples are in groups", len(rows), n)
		}
		for row, times := range rows {
			if times != 1 {
				t.Errorf("row %d is in %d groups", row, times)
			}
		}
	}
	of := func(seed string) []int {
		data, err := NewGroupedData(unlike(40), kind, 0, 0, 4, []byte(seed))
		ok(t, err)
		return data.units[0].group
	}
	if !slices.Equal(of("a"), of("a")) || slices.Equal(of("a"), of("b")) {
		t.Error("groups do not follow from the device's seed, or from it alone")
	}
}

// Texts that say the same are in one group, and so are one sender's; who is in one because of
// another's likeness brings nobody else along.
func TestNearDuplicatesAreInOneGroup(t *testing.T) {
	const letter = "dear sir or madam, the account number is %d and the amount due on the third of march is four hundred euros; please pay it soon"
	var e []dataset.Example
	for i := range 12 {
		e = append(e, dataset.Example{Text: fmt.Sprintf(letter, 4711+i)})
		e = append(e, dataset.Example{Text: distinctText(i)})
		e = append(e, dataset.Example{Text: distinctText(100 + i), Provider: "one sender"})
		e = append(e, dataset.Example{Words: []string{"invoice", "of", "acme", "for", "four", "wheels"}, Question: fmt.Sprint("question ", i)})
		e = append(e, dataset.Example{Text: distinctText(200 + i), Continued: true}, dataset.Example{Text: distinctText(300 + i)})
	}
	of := func(bySender bool) []int {
		g, err := dealExamples(e, 16, bySender, random([]byte("x"), forGroups, 0), nil)
		ok(t, err)
		return g
	}
	g := of(true)
	groups := func(g []int, from int) int {
		seen := map[int]bool{}
		for i := from; i < len(e); i += 6 {
			seen[g[i]] = true
		}
		return len(seen)
	}
	for from, want := range map[int]int{0: 1, 2: 1, 3: 1} {
		if got := groups(g, from); got != want {
			t.Errorf("examples like %q are in %d groups", e[from].Text, got)
		}
	}
	if groups(g, 1) < 5 {
		t.Error("texts that are not alike are in few groups")
	}
	for i := 4; i < len(e); i += 6 {
		if g[i] != g[i+1] {
			t.Error("a text and its continuation are in two groups")
		}
	}
	if groups(of(false), 2) < 5 {
		t.Error("where providers are the unit, they decide about groups")
	}
}

// Each provider has groups of its own, each clipped to its share.
func TestGroupsOfProviders(t *testing.T) {
	const k, providers = 4, 3
	set := unlike(48)
	for i := range set.Examples {
		set.Examples[i].Provider = fmt.Sprint("p", i%providers)
	}
	tr := &reader{}
	_, v, _ := grouped(t, k)
	before := contributed(t, tr, set, providers, k, nil)
	if tr.calls != k*providers {
		t.Errorf("%d trainings of %d providers in %d groups", tr.calls, providers, k)
	}
	set.Examples[7].Text = distinctText(4000)
	if got := distance2(before, contributed(t, &reader{}, set, providers, k, nil)); got > 4*v.PartB2() || got == 0 {
		t.Errorf("one example moves its device's vector by %d, bound %d", got, 4*v.PartB2())
	}
	var l limited
	contributed(t, &l, set, providers, k, func(c *Contribution) { c.Work = 120 })
	if l.allowed[0] != 10 {
		t.Errorf("a group is allowed %v of 120 in %d trainings", l.allowed[0], k*providers)
	}
}

// A dual variable is what a device's sum lacks: with k groups each gets a k-th of it.
func TestGroupsShareTheDual(t *testing.T) {
	kind, _, _ := grouped(t, 1)
	layout, err := model.NewLayout(tinyBase(t).Config, model.Method{RMax: 2, Alpha: 4}, 24)
	ok(t, err)
	start := make([]float32, layout.Size(2))
	lambda := func(k int) float64 {
		l, err := contract.Lattice("fixed32", len(start), 100, k, [32]byte{3})
		ok(t, err)
		data, err := NewGroupedData(unlike(32), kind, 0, 0, k, []byte("seed"))
		ok(t, err)
		dual, total := &Dual{Units: 1}, 0.0
		for round := range 5 {
			r := dual.Round()
			sum, err := Contribute(t.Context(), &constant{value: 0.01 / float32(k)}, data, Contribution{Round: uint64(round + 1), Lattice: l, Groups: k, Seed: []byte("seed"), Dual: r,
				Task: Task{Layout: layout, Rank: 2, Start: start, Spec: training.Spec{Steps: 1, Batch: 4}, Sequence: 8}})
			ok(t, err)
			r.Keep()
			mean, err := l.DecodeMean(widen(sum), 1)
			ok(t, err)
			total = 0
			for _, x := range mean {
				total += float64(x)
			}
		}
		return total / float64(len(start))
	}
	if one, four := lambda(1), lambda(4); math.Abs(one-four) > 1e-3*math.Abs(one)+1e-4 {
		t.Errorf("after five rounds a device sends %v, with four groups %v", one, four)
	}
}

// Groups refuse what would make their number wrong.
func TestGroupsThatDoNotFit(t *testing.T) {
	kind, v, start := grouped(t, 4)
	data, err := NewData(unlike(8), kind, 0, 0)
	ok(t, err)
	_, err = Contribute(t.Context(), &reader{}, data, Contribution{Round: 1, Lattice: v.Lattice, Groups: 4,
		Task: Task{Start: start, Spec: training.Spec{Steps: 1, Batch: 1}, Sequence: 8}})
	if err == nil || !strings.Contains(err.Error(), "groups") {
		t.Errorf("data without groups in a round of four: %v", err)
	}
	p := DefaultPolicy()
	p.Steps = 16
	j := newHouse(t).job
	j.Groups = 4
	plan := newHouse(t).plan(1)
	plan.Steps = 5
	if err := p.checkPlan(j, plan); err == nil || !strings.Contains(err.Error(), "takes 20 local steps") {
		t.Errorf("5 steps in each of 4 groups, 16 allowed: %v", err)
	}
	plan.Steps = 2
	if err := p.checkPlan(j, plan); err != nil {
		t.Errorf("8 steps in groups of 2 examples each average 16: %v", err)
	}
}
