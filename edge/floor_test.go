package edge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/known"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
)

// A coordinator elsewhere that adds the noise itself is joined by nobody who has not said
// so: what it is told is all that a lying one would need to keep from adding it.
func TestHostileCentralNoise(t *testing.T) {
	join := func(change func(*Policy)) error {
		h := production(t)
		cfg := h.config(&constant{})
		p := DefaultPolicy()
		p.Bases, p.Unlogged = []string{"any"}, true
		change(&p)
		cfg.Policy, cfg.Data = &p, Examples(examples(16))
		d := h.start(cfg)
		peer := h.admit(false)
		plan := h.plan(1)
		plan.Steps = 8
		if p.OwnNoise == 0 && p.Bits == 0 && p.ExampleBits == 0 && p.ExampleNoise == 0 {
			peer.assign(plan)
			want[*wire.Turn](peer)
			return nil
		}
		return d.wait(t)
	}
	for name, change := range map[string]func(*Policy){
		"defaults":      func(*Policy) {},
		"own_noise":     func(p *Policy) { p.Bits, p.ExampleBits = 0, 0 },
		"bits":          func(p *Policy) { p.OwnNoise, p.ExampleBits = 0, 0 },
		"example_bits":  func(p *Policy) { p.OwnNoise, p.Bits = 0, 0 },
		"example_noise": func(p *Policy) { p.OwnNoise, p.Bits, p.ExampleBits, p.ExampleNoise = 0, 0, 0, 0.5 },
	} {
		err := join(change)
		var keys []string
		for _, l := range PolicyErrors(err) {
			keys = append(keys, l.Key)
		}
		want := []string{name}
		if name == "defaults" {
			want = []string{"own_noise", "example_bits", "bits"}
		}
		if !errors.Is(err, ErrPolicy) || !fatal(err) || !slices.Equal(keys, want) || !strings.Contains(err.Error(), "Nothing but this coordinator's honesty") {
			t.Errorf("%s: refused for %q: %v", name, keys, err)
		}
	}
	ok(t, join(func(p *Policy) { // what they say is enough
		for _, l := range []PolicyError{{Key: "own_noise", Have: "0"}, {Key: "example_bits", Have: "0"}, {Key: "bits", Have: "0"}} {
			ok(t, p.Allow(l.Key, l.Have))
		}
	}))
}

// What a job's devices add themselves counts, and no less than the owner's least will do.
func TestHostileLittleNoise(t *testing.T) {
	for name, c := range map[string]struct {
		own    float64
		groups uint32
		rounds uint64
		want   []string
	}{
		"enough":        {0.1, 13, 2, nil},
		"too little":    {0.05, 26, 2, []string{"own_noise"}},
		"few groups":    {0.1, 12, 2, []string{"example_bits"}},
		"no groups":     {0.1, 1, 28, []string{"example_bits"}},
		"too long":      {0.1, 64, 112, []string{"bits"}}, // with a quarter more that may be called lost
		"as long as":    {0.1, 64, 110, nil},
		"of an example": {1, 1, 10, []string{"example_bits"}},
		"none":          {0, 1, 3, []string{"own_noise", "example_bits", "bits"}},
	} {
		p := DefaultPolicy()
		j := wire.Job{Rounds: c.rounds, Groups: c.groups, Privacy: wire.Privacy{Noise: wire.NoiseDevices, OwnNoise: c.own, Honest: 100}}
		var keys []string
		for _, err := range p.checkNoise(&j, Shown{}) {
			keys = append(keys, PolicyErrors(err)[0].Key)
		}
		if !slices.Equal(keys, c.want) {
			t.Errorf("%s: %q, want %q", name, keys, c.want)
		}
	}
	h := production(t)
	h.job.Privacy.Noise, h.job.Privacy.OwnNoise, h.job.Privacy.Honest = wire.NoiseDevices, 1.5, 25
	h.announce()
	cfg := h.config(&constant{})
	p := DefaultPolicy()
	p.Bases, p.Unlogged = []string{"any"}, true
	cfg.Policy, cfg.Data = &p, Examples(examples(16))
	h.start(cfg)
	peer := h.admit(false)
	plan := h.plan(1)
	plan.Steps, plan.OwnNoise, plan.Honest = 8, 1.5, 25
	peer.assign(plan)
	want[*wire.Turn](peer)
}

// The bound is a Gaussian channel's capacity: below half the dimension's logarithm of one
// and signal over noise for every dimension, and close to it for a large one.
func TestRoundBits(t *testing.T) {
	for _, v := range []float64{0.0094, 0.1, 1, 3} {
		bound := roundBits(v, 0)
		for _, d := range []float64{1, 100, 1e6, 1e10} {
			capacity := d / 2 * math.Log1p(1/(v*v*d)) / math.Ln2
			if capacity > bound || d == 1e10 && capacity < 0.999*bound {
				t.Errorf("v = %v, dimension %v: capacity %v, bound %v", v, d, capacity, bound)
			}
		}
		if got := roundBits(v, 8); math.Abs(got-64*bound) > 1e-9*got { // eight clip norms of signal
			t.Errorf("eight providers: %v, want %v", got, 64*bound)
		}
	}
	if got := roundBits(0.1, 1); math.Abs(got-72.13) > 0.01 {
		t.Errorf("at v = 0.1: %v bits", got)
	}
	if !math.IsInf(roundBits(0, 1), 1) {
		t.Error("no noise bounds nothing")
	}
}

// What is trained is what the tensors are: whatever a coordinator calls its method,
// embeddings and whole matrices are refused where the owner has not named them.
func TestHostileTensors(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*wire.Job)
		refused string // classes, in the message
		named   []string
	}{
		"lora":             {func(*wire.Job) {}, "", nil},
		"head":             {func(j *wire.Job) { j.HeadOnly, j.Method = true, "head" }, "", nil},
		"biases":           {func(j *wire.Job) { j.HeadOnly, j.Method = true, "bitfit" }, "", nil},
		"bottlenecks":      {func(j *wire.Job) { j.HeadOnly, j.Method = true, "adapter" }, "", nil},
		"whole":            {func(j *wire.Job) { j.HeadOnly, j.Method = true, "full" }, "norms,matrices,embeddings", nil},
		"whole, but asked": {func(j *wire.Job) { j.HeadOnly, j.Method = true, "full" }, "", []string{"norms", "matrices", "embeddings"}},
		"words beside it":  {func(j *wire.Job) { j.Also = "word_embeddings" }, "embeddings", nil},
		"a norm beside it": {func(j *wire.Job) { j.Also = "output.LayerNorm.weight" }, "norms", nil},
		"named":            {func(j *wire.Job) { j.Also = "output.LayerNorm.weight" }, "", []string{"attention.output.LayerNorm.weight", "output.LayerNorm.weight"}},
		"another is named": {func(j *wire.Job) { j.Also = "word_embeddings" }, "embeddings", []string{"embeddings.position_embeddings.weight"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := production(t)
			c.change(h.job)
			h.announce()
			cfg := h.config(&constant{})
			cfg.Policy = central()
			cfg.Policy.Tensors = append(slices.Clone(cfg.Policy.Tensors), c.named...)
			if c.refused == "" {
				ok(t, cfg.Policy.checkTensors(layoutFor(t, h.job), int(h.job.RankMax)))
				return
			}
			d := h.start(cfg)
			h.admit(false)
			err := d.wait(t)
			found := PolicyErrors(err)
			if !errors.Is(err, ErrPolicy) || !fatal(err) || len(found) != 1 || found[0].Key != "tensors" || !strings.HasSuffix(found[0].Have, ","+c.refused) {
				t.Fatalf("%v", err)
			}
			if err := cfg.Policy.Allow(found[0].Key, found[0].Have); err != nil {
				t.Fatal(err)
			}
			if err := cfg.Policy.checkTensors(layoutFor(t, h.job), int(h.job.RankMax)); err != nil {
				t.Errorf("what was allowed is refused: %v", err)
			}
		})
	}
}

func layoutFor(t *testing.T, j *wire.Job) *model.Layout {
	t.Helper()
	layout, err := layoutOf(j, tinyBase(t))
	ok(t, err)
	return layout
}

// A round of few examples is refused by what it plans, whatever the device holds.
func TestHostileFewExamples(t *testing.T) {
	for _, n := range []int{16, 100} {
		h := production(t) // two examples a step
		cfg := h.config(&constant{})
		cfg.Policy, cfg.Data = central(), Examples(examples(n))
		cfg.Policy.Examples = 15
		h.start(cfg)
		p := h.admit(false)
		plan := h.plan(1)
		plan.Steps = 7
		p.assign(plan)
		if m := want[*wire.Refuse](p); m.Code != wire.CodePolicy || strings.ContainsAny(m.Reason, "0123456789") {
			t.Errorf("%+v", m)
		}
		plan = h.plan(2)
		plan.Steps = 8
		p.assign(plan)
		want[*wire.Turn](p)
	}
}

// A device that has too few is not heard of: its owner is, before it enrols.
func TestHostileCountOfExamples(t *testing.T) {
	h := production(t)
	h.offer()
	cfg := h.config(&constant{})
	cfg.Policy = central()
	cfg.Policy.Examples = 6
	cfg.Dial = func(context.Context, string) (Conn, error) { t.Error("it dials"); return nil, io.EOF }
	d := h.start(cfg)
	err := d.wait(t)
	if l := PolicyErrors(err); !errors.Is(err, ErrPolicy) || len(l) != 1 || l[0].Key != "examples" || l[0].Have != "5" {
		t.Errorf("%v", err)
	}
}

// long is a task that cuts an example into as many rows as it has letters.
type long struct{ ruled }

func (long) Split(e *dataset.Example) (parts []dataset.Example, err error) {
	for i := range e.Text {
		parts = append(parts, dataset.Example{Text: e.Text[i : i+1], Line: e.Line})
	}
	return parts, nil
}

// The rows of one long example are one example: a device whose steps came upon no others
// sends zeros, and trains as long as it would otherwise. So does a provider with too few
// beside one that has enough.
func TestHostileLongExamples(t *testing.T) {
	kind := &long{ruled{columns: []task.Column{{Name: task.Tokens, Type: task.I32, Shape: []int{1}}, {Name: task.Weights, Type: task.F32}}}}
	scheme, err := quant.Lookup("nf4")
	ok(t, err)
	lattice, err := quant.NewLattice(scheme, 64, 1, [32]byte{})
	ok(t, err)
	for name, c := range map[string]struct {
		examples  []dataset.Example
		providers int
		steps     int
		least     int
		trained   int
		zeros     bool
	}{
		"one in twenty rows":        {[]dataset.Example{{Text: strings.Repeat("a", 20)}}, 0, 20, 2, 1, true},
		"one, and none is wanted":   {[]dataset.Example{{Text: strings.Repeat("a", 20)}}, 0, 20, 1, 1, false},
		"three of a row":            {[]dataset.Example{{Text: "a"}, {Text: "b"}, {Text: "c"}}, 0, 3, 3, 1, false},
		"three of a row, two steps": {[]dataset.Example{{Text: "a"}, {Text: "b"}, {Text: "c"}}, 0, 2, 3, 1, true},
		"two providers": {[]dataset.Example{{Text: "a", Provider: "p", User: "u"}, {Text: "b", Provider: "q", User: "u"}, {Text: "c", Provider: "q", User: "u"}},
			2, 4, 2, 2, false},
		"two providers with too few": {[]dataset.Example{{Text: "a", Provider: "p", User: "u"}, {Text: "b", Provider: "q", User: "u"}}, 2, 4, 2, 2, true},
	} {
		rate := 0.0
		if c.providers > 0 {
			rate = 1
		}
		data, err := NewData(&dataset.Set{Examples: c.examples}, kind, c.providers, rate)
		ok(t, err)
		tr := &tally{}
		told := 0
		sum, err := Contribute(t.Context(), tr, data, Contribution{Round: 1, Lattice: lattice, Count: dp.CountCode{}, Units: c.providers, MinExamples: c.least,
			Task: Task{Start: make([]float32, 64), Spec: training.Spec{Steps: c.steps, Batch: 1}}, Failed: func(error) { told++ }})
		ok(t, err)
		if zeros := !slices.ContainsFunc(sum, func(x int32) bool { return x != 0 }); zeros != c.zeros || tr.trained != c.trained || (told > 0) != (c.least > 1 && c.zeros || name == "two providers") {
			t.Errorf("%s: zeros %v, trained %d times, told %d times", name, zeros, tr.trained, told)
		}
	}
}

// tally is a trainer that returns the same whatever it is given.
type tally struct{ trained int }

func (c *tally) Train(_ context.Context, t Task) ([]float32, error) {
	c.trained++
	for _, err := range t.Batches {
		if err != nil {
			return nil, err
		}
	}
	delta := make([]float32, len(t.Start))
	for i := range delta {
		delta[i] = 0.5
	}
	return delta, nil
}

func (*tally) Close() error { return nil }

// A base that no list has is one that a coordinator may have made for this device: it is
// not so much as fetched, unless the owner names it, has a list with it or has it.
func TestHostileUnknownBase(t *testing.T) {
	h := production(t)
	sum := h.job.Base.SHA256
	name := fmt.Sprintf("%x", sum)
	for what, c := range map[string]struct {
		change  func(*Config)
		refused bool
		fetched bool
	}{
		"unknown":    {func(*Config) {}, true, false},
		"named":      {func(cfg *Config) { cfg.Policy.Bases = []string{name} }, false, true},
		"any":        {func(cfg *Config) { cfg.Policy.Bases = []string{"any"} }, false, true},
		"another is": {func(cfg *Config) { cfg.Policy.Bases = []string{strings.Repeat("00", 32)} }, true, false},
		"listed":     {func(cfg *Config) { cfg.Known = known.List{{Name: "x", SHA256: sum}} }, false, true},
		"listed, unasked": {func(cfg *Config) {
			cfg.Known, cfg.Policy.Bases = known.List{{Name: "x", SHA256: sum}}, []string{strings.Repeat("00", 32)}
		}, true, false},
		"own": {func(cfg *Config) { cfg.Base = tinyBase(t) }, false, false},
	} {
		cfg := h.config(&constant{})
		cfg.Policy = central()
		cfg.Policy.Bases = []string{"known"}
		c.change(&cfg)
		h.mu.Lock()
		h.gets = nil
		h.mu.Unlock()
		d := h.start(cfg)
		err := refusal(t, h.admit(false), d)
		found := PolicyErrors(err)
		if refused := len(found) == 1 && found[0].Key == "bases" && found[0].Have == name; refused != c.refused || err != nil && !c.refused {
			t.Errorf("%s: %v", what, err)
		}
		d.cancel()
		h.mu.Lock()
		if fetched := len(h.gets) > 1; fetched != c.fetched { // the first asks for the job
			t.Errorf("%s: %d requests", what, len(h.gets))
		}
		h.mu.Unlock()
	}
	other := tiny.Base(t, 16, 2, 8)
	other.Tokenizer = append(slices.Clone(other.Tokenizer), ' ')
	cfg := h.config(&constant{})
	cfg.Policy, cfg.Base = central(), other
	d := h.start(cfg)
	h.admit(false)
	if err := d.wait(t); !errors.Is(err, ErrBase) || !fatal(err) {
		t.Errorf("another tokenizer: %v", err)
	}
}

// A device trains over its own copy of the base as over the coordinator's, in whichever
// form the job has it.
func TestOwnBaseInBothForms(t *testing.T) {
	b := tinyBase(t)
	own, err := newOwnBase(b)
	ok(t, err)
	packed, err := b.Pack()
	ok(t, err)
	for _, form := range []*model.Base{b, packed} {
		sum, err := form.SHA256()
		ok(t, err)
		if own[sum] == nil || own[sum].Packed() != form.Packed() {
			t.Errorf("packed %v: not there", form.Packed())
		}
	}
	if again, err := newOwnBase(packed); err != nil || len(again) != 1 {
		t.Errorf("a base that is 4-bit codes has %d forms: %v", len(again), err)
	}
}

func TestFloorThatMeansNothing(t *testing.T) {
	for key, change := range map[string]func(*Policy){
		"own_noise": func(p *Policy) { p.OwnNoise = math.NaN() },
		"shard":     func(p *Policy) { p.Shard = secagg.MaxShard + 1 },
		"bits":      func(p *Policy) { p.Bits = -1 },
		"examples":  func(p *Policy) { p.Examples = 0 },
		"tensors":   func(p *Policy) { p.Tensors = []string{"embedings"} },
		"bases":     func(p *Policy) { p.Bases = []string{"knwon"} },
	} {
		p := DefaultPolicy()
		change(&p)
		if err := p.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, p := range []Policy{DefaultPolicy(), LocalPolicy(), TrustingPolicy()} {
		ok(t, p.Validate())
	}
}
