package edge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// providersOf makes examples of n providers; a provider's label is its number
// modulo 2.
func providersOf(n int) *dataset.Set {
	s := &dataset.Set{Labels: testLabels}
	for i := range 3 * n {
		p := i % n
		s.Examples = append(s.Examples, dataset.Example{Text: "fox fox", Label: p % 2, Provider: fmt.Sprint("p", p), User: "device", Line: i + 1})
	}
	return s
}

// byLabel is a trainer whose update depends on the label of the examples it is
// given: what each provider's own training comes to.
type byLabel struct{ value [2]float32 }

func (b *byLabel) Train(_ context.Context, t Task) ([]float32, error) {
	label := int32(-1)
	for batch, err := range t.Batches {
		if err != nil {
			return nil, err
		}
		if label < 0 {
			label = batch.Int32(task.Labels)[0]
		}
		for row, w := range batch.Float32(task.Weights) {
			if w != 0 && batch.Int32(task.Labels)[row] != label {
				return nil, errors.New("two providers' examples in one training")
			}
		}
	}
	delta := make([]float32, len(t.Start))
	for i := range delta {
		delta[i] = b.value[label]
	}
	t.Progress(t.Steps, t.Steps)
	return delta, nil
}

func (*byLabel) Close() error { return nil }

// providerHouse announces a job that protects providers.
func providerHouse(t *testing.T, most int, rate float64) *house {
	h := newHouse(t)
	h.job.Providers, h.job.ProviderRate = uint32(most), rate
	h.announce()
	return h
}

// fleet starts three devices with the same data and trainer.
func (h *house) fleet(tr Trainer, data *dataset.Set) (devices []*device, peers []*peer) {
	for range 3 {
		cfg := h.config(tr)
		cfg.Data = Examples(data)
		devices = append(devices, h.start(cfg))
		peers = append(peers, h.admit(false))
	}
	return devices, peers
}

// Every provider is clipped and counted by itself: a device's vector is the sum.
func TestEachProviderIsClippedByItself(t *testing.T) {
	h := providerHouse(t, 8, 1)
	// The first kind is far beyond the clip norm of 1, the second far within.
	devices, peers := h.fleet(&byLabel{value: [2]float32{5, 0.01}}, providersOf(5))
	plan := h.plan(1)
	plan.CountCoordinates, plan.CountSymbol = 3, 255
	mean := h.round(plan, peers, nil)
	// Three providers of the first kind, two of the second.
	checkMean(t, mean, 3/math.Sqrt(float64(plan.Values))+2*0.01)
	if h.counted != 3*(2*0.5-3*0.5) {
		t.Errorf("count %v of three devices with 2 providers within and 3 beyond", h.counted)
	}
	if e, _ := devices[0].saw(Preparing); !strings.Contains(e.Text, "protects each provider in this device's data: epsilon up to 2 at delta 1e-06") {
		t.Errorf("the owner is told %q", e.Text)
	}
	if e, _ := devices[0].saw(Training); e.Total != 5*int64(plan.Steps) || e.Done != e.Total {
		t.Errorf("progress %+v", e)
	}
}

// One provider's data must not decide over its device's others.
func TestADivergedProviderIsAbsent(t *testing.T) {
	h := providerHouse(t, 8, 1)
	_, peers := h.fleet(&byLabel{value: [2]float32{float32(math.NaN()), 0.02}}, providersOf(4))
	plan := h.plan(1)
	plan.CountCoordinates, plan.CountSymbol = 2, 100
	checkMean(t, h.round(plan, peers, nil), 2*0.02)
	if h.counted != 3*2*0.5 {
		t.Errorf("count %v, want that of two providers of three devices", h.counted)
	}
}

// The sum of a device's providers may leave the symbols of one: the ring has room.
func TestProvidersFillTheRing(t *testing.T) {
	h := providerHouse(t, 5, 1)
	h.job.Uplink = "int4"
	h.announce()
	_, peers := h.fleet(&byLabel{value: [2]float32{9, 9}}, providersOf(5))
	mean := h.round(h.plan(1), peers, nil)
	// Every one of the five is cut to norm 1, all in one direction.
	sum := 0.0
	for _, v := range mean {
		sum += float64(v)
	}
	n := math.Sqrt(float64(len(mean)))
	if got := sum / n; math.Abs(got-5) > 0.25 { // 15 roundings of 162 coordinates: a standard deviation of about 0.05
		t.Errorf("the mean of devices has %v along the common direction, want 5", got)
	}
}

func TestProvidersThatTheJobCannotTake(t *testing.T) {
	for name, c := range map[string]struct {
		data *dataset.Set
		want string
	}{
		"too many":  {providersOf(4), "4 providers, the job takes at most 3"},
		"nameless":  {&dataset.Set{Name: "mine.tsv", Labels: testLabels, Examples: []dataset.Example{{Text: "fox", Line: 7}}}, "mine.tsv:7: names no provider"},
		"one is ok": {providersOf(3), ""},
	} {
		h := providerHouse(t, 3, 0.5)
		cfg := h.config(&constant{})
		cfg.Data = Examples(c.data)
		d := h.start(cfg)
		p := h.admit(false)
		if c.want == "" {
			p.assign(h.plan(1))
			want[*wire.Turn](p)
			continue
		}
		if err := d.wait(t); !errors.Is(err, ErrData) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestACountThatDoesNotFitIsRefused(t *testing.T) {
	h := newHouse(t)
	h.start(h.config(&constant{}))
	p := h.admit(false)
	plan := h.plan(1)
	plan.CountCoordinates, plan.CountSymbol = 1, 256 // fixed16 has symbols up to 255
	p.assign(plan)
	if m := want[*wire.Refuse](p); m.Code != wire.CodePlan {
		t.Errorf("%+v", m)
	}
}

// Every provider has a coin of its own with the job's probability: over 4,000
// rounds a rate of 0.3 is met within 5 standard deviations, and pairs are
// independent.
func TestProviderCoins(t *testing.T) {
	j := &Data{rate: 0.3}
	for i := range 3 {
		j.units = append(j.units, unit{name: fmt.Sprint("p", i)})
	}
	const n = 4000
	single, pair := map[string]int{}, map[string]int{}
	for range n {
		drawn, err := j.draw(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		for a, u := range drawn {
			single[u.name]++
			for _, v := range drawn[:a] {
				pair[v.name+u.name]++
			}
		}
	}
	near := func(what string, got int, p float64) {
		if sd := math.Sqrt(n * p * (1 - p)); math.Abs(float64(got)-n*p) > 5*sd {
			t.Errorf("%s was in %d of %d rounds, want %v +- %v", what, got, n, n*p, sd)
		}
	}
	for _, u := range j.units {
		near(u.name, single[u.name], 0.3)
	}
	for _, two := range []string{"p0p1", "p0p2", "p1p2"} {
		near(two, pair[two], 0.09)
	}
}

// The bug to keep out: a device clips the sum of its providers, so that one of
// them can move it by up to twice the norm, and its integer vector past B2.
func TestMutationClipPerDevice(t *testing.T) {
	scheme, err := quant.Lookup("nf4")
	ok(t, err)
	const d = 4000
	lattice, err := quant.NewLattice(scheme, d, 1, [32]byte{3})
	ok(t, err)
	direction := func(at int) []float32 { // orthogonal for different at, far beyond the norm
		x := make([]float32, d)
		for i := at; i < d; i += 4 {
			x[i] = 1
		}
		return x
	}
	norm2 := func(x, y []int32) (n int64) {
		for i := range x {
			n += int64(x[i]-y[i]) * int64(x[i]-y[i])
		}
		return n
	}
	add := func(u *update, x []float32) {
		_, err := u.add(x, 1, nil, 0)
		ok(t, err)
	}
	// Ours: with and without the provider at 0, everything else equal.
	ours := func(with bool) []int32 {
		u := newUpdate(contract.Vector{Lattice: lattice}, zeros{})
		for at := 1; at < 4; at++ {
			add(u, direction(at))
		}
		if with {
			add(u, direction(0))
		}
		return u.sum
	}
	if got := norm2(ours(true), ours(false)); got > lattice.B2() {
		t.Errorf("one provider moves its device's vector by %d, bound %d", got, lattice.B2())
	}
	// The mutation: the providers' sum is clipped instead. One that outweighs and
	// opposes the others turns the whole vector round.
	mutant := func(weight float32) []int32 {
		x := direction(1)
		for i := range x {
			x[i] *= weight
		}
		u := newUpdate(contract.Vector{Lattice: lattice}, zeros{})
		add(u, x)
		return u.sum
	}
	if got := norm2(mutant(1), mutant(1-2)); got <= lattice.B2() {
		t.Errorf("clipping the device's sum moves it by %d: the check does not see the bug", got)
	}
}

// limited is a trainer that does nothing beyond a limit of work, and notes what it
// was allowed.
type limited struct {
	allowed []float64
	refuse  bool
}

func (l *limited) Train(_ context.Context, t Task) ([]float32, error) {
	l.allowed = append(l.allowed, t.Work)
	if l.refuse {
		return nil, checkWork(2, 1)
	}
	return make([]float32, len(t.Start)), nil
}

func (*limited) Close() error { return nil }

// A coordinator chooses steps such that so many providers and no more are within an
// owner's limit of work, and counts by the refusals how many each device holds, or
// has in the round: what a device refuses does not depend on that.
func TestHostileCountOfProviders(t *testing.T) {
	scheme, err := quant.Lookup("nf4")
	ok(t, err)
	lattice, err := quant.NewLattice(scheme, 64, 1, [32]byte{})
	ok(t, err)
	b := tinyBase(t)
	layout, err := model.NewLayout(b.Config, model.Method{RMax: 2, Alpha: 4}, len(testLabels))
	ok(t, err)
	kind, err := task.New(b, layout, 8)
	ok(t, err)
	contribute := func(l *limited, providers int, rate float64) error {
		data, err := NewData(providersOf(providers), kind, 8, rate)
		ok(t, err)
		_, err = Contribute(t.Context(), l, data, Contribution{Round: 1, Lattice: lattice, Work: 80, Units: 8,
			Task: Task{Start: make([]float32, 64), Spec: training.Spec{Steps: 2, Batch: 4}, Sequence: 8}})
		return err
	}
	for _, providers := range []int{1, 8} {
		var l limited
		ok(t, contribute(&l, providers, 1))
		if len(l.allowed) != providers || l.allowed[0] != 10 {
			t.Errorf("%d providers of at most 8 are allowed %v each, 80 in all", providers, l.allowed)
		}
		none := limited{refuse: true}
		if err := contribute(&none, providers, 1e-12); !errors.As(err, new(*PolicyError)) {
			t.Errorf("a device none of whose %d providers is in the round does not refuse what others refuse: %v", providers, err)
		}
	}
}
