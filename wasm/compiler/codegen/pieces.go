package codegen

import (
	"github.com/starling-fl/starling/wasm/compiler/emit"
	"github.com/starling-fl/starling/wasm/compiler/plan"
)

// maxPieces of one cut; pieces that are still too dear are cut again.
const maxPieces = 1 << 10

// Pieces cuts a stage whose call would cost more than g.Most, until none does or nothing is left to cut. Products cut
// themselves.
func (g *Generator) Pieces(s plan.Stage) ([]plan.Stage, error) {
	if _, ok := s.(*plan.Dot); ok {
		return []plan.Stage{s}, nil
	}
	units, err := g.trial().Stage(s, false)
	if err != nil || len(units) == 0 || units[0].Cost() <= g.Most {
		return []plan.Stage{s}, err
	}
	parts := plan.Cut(s, int(min(units[0].Cost()/g.Most+1, maxPieces)))
	if len(parts) < 2 {
		return parts, nil
	}
	var pieces []plan.Stage
	for _, p := range parts {
		cut, err := g.Pieces(p)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, cut...)
	}
	return pieces, nil
}

// trial is a generator whose code only tells what it costs.
func (g *Generator) trial() *Generator {
	t := *g
	t.M = &emit.Module{}
	return &t
}

// dear reports whether a call that runs a block of a product takes too long.
func (g *Generator) dear(p product, flops uint64) bool {
	return flops > maxUnitFLOPs || g.trial().driver(p).Cost() > g.Most-argumentsCost
}

// argumentsCost is more than what handing over a product's arguments costs.
const argumentsCost = 32
