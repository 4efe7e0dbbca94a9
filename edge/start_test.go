package edge

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// untouched is a trainer that no start beyond its bounds may reach.
type untouched struct{ t *testing.T }

func (u untouched) Train(context.Context, Task) ([]float32, error) {
	u.t.Error("trained on a start beyond the bounds")
	return nil, ErrDiverged
}
func (untouched) Close() error { return nil }

// begins has a device with the default policy's bounds assigned a round that begins with an adapter
// that change has made of a fresh one, and returns its refusal; nil: it takes part.
func begins(t *testing.T, tr Trainer, data int, change func(l *model.Layout, rank int, start []float32)) (*wire.Refuse, Event) {
	t.Helper()
	h := production(t)
	cfg := h.config(tr)
	cfg.Policy, cfg.Data = central(), Examples(examples(data))
	d := h.start(cfg)
	p := h.admit(false)
	plan := h.plan(1)
	start := model.NewAdapter(h.layout, 7).Slice(int(plan.Rank))
	change(h.layout, int(plan.Rank), start)
	packed, heard, err := quant.PackUpdate(start, nil, "f32", "none")
	ok(t, err)
	plan.Seed, plan.Slice = nil, wire.Slice{Blob: h.blob(packed), Digest: quant.Digest(heard), Format: "f32", Codec: "none"}
	p.assign(plan)
	want[*wire.Turn](p)
	if _, honest := tr.(*constant); honest {
		return nil, Event{}
	}
	m := want[*wire.Refuse](p)
	e, _ := d.saw(Refused)
	return m, e
}

// A start that is made to have an update hold one text is refused before anything is trained on it:
// each factor by itself, whatever the other does. The refusal follows from the start alone, and is
// the same whatever the device holds, so that it answers no question about data.
func TestHostileStart(t *testing.T) {
	entries := func(kind model.Kind, x float32) func(*model.Layout, int, []float32) {
		return func(l *model.Layout, rank int, start []float32) {
			for _, s := range l.Spans(rank) {
				if s.Kind == kind && s.Len > 0 {
					start[s.Offset] = x
					return
				}
			}
		}
	}
	for what, change := range map[string]func(*model.Layout, int, []float32){
		"an enormous B behind an A of zeros": func(l *model.Layout, rank int, start []float32) {
			for _, s := range l.Spans(rank) {
				if s.Kind == model.KindA {
					clear(start[s.Offset : s.Offset+s.Len])
				}
			}
			entries(model.KindB, 2.6e6)(l, rank, start)
		},
		"an enormous A": entries(model.KindA, -5e3),
		"a head that picks one label": func(l *model.Layout, rank int, start []float32) {
			for _, s := range l.Spans(rank) {
				if s.Kind == model.KindHead && len(s.Shape) == 1 {
					start[s.Offset] = -120
				}
			}
		},
		"a head's row": entries(model.KindHead, 1e3),
	} {
		var codes []uint16
		for _, data := range []int{2, 40} {
			m, e := begins(t, untouched{t}, data, change)
			codes = append(codes, m.Code)
			if !strings.Contains(e.Text, "bounds.") || !strings.Contains(e.Text, "beyond the bounds that the job announced") || len(e.Limits) > 0 {
				t.Errorf("%s: the owner is told %q, and asked about %v", what, e.Text, e.Limits)
			}
		}
		if !slices.Equal(codes, []uint16{wire.CodePlan, wire.CodePlan}) {
			t.Errorf("%s: refused with %d", what, codes)
		}
	}
}

// What training and its noise come to is not refused: as far as the bounds go.
func TestStartsWithinBounds(t *testing.T) {
	begins(t, &constant{}, 40, func(l *model.Layout, rank int, start []float32) {
		for i := range start {
			start[i] += float32(i%7-3) * 1000
		}
		if !contract.ProjectStart(l, rank, start, contract.StartBounds()) {
			t.Error("it was within them")
		}
	})
}

// Bounds that a job announces wider than the owner's are asked about before it is joined, by the
// widest; narrower ones hold.
func TestHostileBounds(t *testing.T) {
	p := DefaultPolicy()
	for _, c := range []struct {
		bounds wire.Bounds
		want   string
	}{
		{wire.Bounds{}, ""}, {wire.Bounds{B: 3, Head: 3}, ""}, {contract.StartBounds(), ""},
		{wire.Bounds{A: 800}, "bounds.a"}, {wire.Bounds{B: 1e300}, "bounds.b"}, {wire.Bounds{Head: 251}, "bounds.head"},
		{wire.Bounds{Bias: 76, Modules: 300}, "bounds.modules"}, {wire.Bounds{Whole: 61}, "bounds.whole"},
	} {
		found := p.checkBounds(&wire.Job{Bounds: c.bounds})
		if (len(found) > 0) != (c.want != "") || len(found) > 0 && !strings.Contains(found[0].Error(), c.want) {
			t.Errorf("%+v: %v", c.bounds, found)
		}
		if len(found) > 0 {
			wide := p
			limit := PolicyErrors(found[0])[0]
			ok(t, wide.Allow(limit.Key, limit.Have))
			if again := wide.checkBounds(&wire.Job{Bounds: c.bounds}); len(again) > 0 {
				t.Errorf("%+v: asked about again: %v", c.bounds, again)
			}
		}
	}
}

// What the announced job already exceeds is said at once, all of it together, and not in its rounds.
func TestAnnouncedPlans(t *testing.T) {
	p := DefaultPolicy()
	for want, j := range map[string]wire.Job{
		"":                   {Steps: 4, ClipNorm: 2},
		"steps":              {Steps: 101, ClipNorm: 2},
		"clip_norm":          {Steps: 100, ClipNorm: 1001},
		"steps,clip_norm":    {Steps: 101, ClipNorm: 1001},
		"examples":           {Steps: 1, ClipNorm: 2},
		"clip_norm,examples": {Steps: 1, ClipNorm: 1e300},
	} {
		j.Batch = 8
		var keys []string
		for _, err := range p.checkPlanned(&j) {
			keys = append(keys, PolicyErrors(err)[0].Key)
		}
		if got := strings.Join(keys, ","); got != want {
			t.Errorf("%d steps, clip norm %v: %q, want %q", j.Steps, j.ClipNorm, got, want)
		}
	}
}
