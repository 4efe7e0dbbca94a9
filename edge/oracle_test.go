//go:build !js || full

package edge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// A refusal is in the clear and of one device. Asked anything that it refuses, a device of few short texts of one label sends
// what one of many long texts of the other sends, message for message: a coordinator that asks on purpose learns of the
// data nothing, not even how much there is.
func TestHostileRefusalsAreNoOracle(t *testing.T) {
	few, many := &dataset.Set{Labels: testLabels}, &dataset.Set{Labels: testLabels}
	for i := range 4 {
		few.Examples = append(few.Examples, dataset.Example{Text: distinctText(i)[:9], Label: 0})
	}
	for i := range 80 {
		many.Examples = append(many.Examples, dataset.Example{Text: strings.Repeat(distinctText(i)+" ", 40), Label: 1})
	}
	plan := func(change func(*wire.Plan)) func(*house, *peer) {
		return func(h *house, p *peer) {
			pl := h.plan(1)
			change(pl)
			p.assign(pl)
		}
	}
	for name, ask := range map[string]func(*house, *peer){
		"steps beyond the limit":      plan(func(p *wire.Plan) { p.Steps = 101 }),
		"one example at a time":       plan(func(p *wire.Plan) { p.Steps = 1 }),
		"a clip norm":                 plan(func(p *wire.Plan) { p.ClipNorm = 1e9 }),
		"another rank":                plan(func(p *wire.Plan) { p.Rank = 5 }),
		"values of another layout":    plan(func(p *wire.Plan) { p.Values++ }),
		"less noise than announced":   plan(func(p *wire.Plan) { p.OwnNoise = 0.5 }),
		"a slice that is not there":   func(h *house, p *peer) { h.withSlice(p, func(s *wire.Slice) { s.Blob.SHA256[0]++ }) },
		"a slice of other values":     func(h *house, p *peer) { h.withSlice(p, func(s *wire.Slice) { s.Digest[0]++ }) },
		"a slice longer than it says": func(h *house, p *peer) { h.withSlice(p, func(s *wire.Slice) { s.Blob.Size-- }) },
		"a turn of another round":     func(_ *house, p *peer) { p.send(&wire.Turn{Round: 7, Number: 1}) },
		"a resumption of nothing":     func(_ *house, p *peer) { p.send(&wire.Resume{Round: 7}) },
		"two plans of one round": func(h *house, p *peer) {
			plan(func(*wire.Plan) {})(h, p)
			want[*wire.Turn](p)
			plan(func(p *wire.Plan) { p.Rate *= 2 })(h, p)
		},
	} {
		var said [2][]string
		for i, set := range []*dataset.Set{few, many} {
			h := newHouse(t)
			cfg := h.config(&constant{value: 0.01})
			cfg.Data, cfg.Policy.ClipNorm, cfg.Policy.Examples = Examples(set), 1000, 4
			h.start(cfg)
			p := h.admit(false)
			ask(h, p)
			for {
				m := p.next()
				line := fmt.Sprintf("%T", m)
				refused, over := m.(*wire.Refuse)
				if over {
					line += fmt.Sprintf(" %d %d %s", refused.Round, refused.Code, refused.Reason)
				} else if turn, is := m.(*wire.Turn); is {
					line += fmt.Sprintf(" %d %d of %d bytes", turn.Round, turn.Number, len(turn.Payload))
				}
				if said[i] = append(said[i], line); over {
					break
				}
			}
		}
		if !slices.Equal(said[0], said[1]) {
			t.Errorf("%s: few examples say %q, many %q", name, said[0], said[1])
		}
	}
}
