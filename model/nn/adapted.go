package nn

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/starling-fl/starling/model"
)

// adapted are a base's weights and what an adapter makes of those that it changes, for
// programs that are run many times.
type adapted struct {
	layout *model.Layout
	base   *model.Base
	frozen map[string]compute.Buffer // by name
	values map[string]compute.Buffer // what an adapter changes, of the last call
	slice  []float32                 // the last call's adapter
	rank   int
	apart  bool            // low-rank products are computed apart, not merged
	packed map[string]bool // weights that the programs keep in NF4
}

// keeper is a backend whose programs can keep weights in NF4, and what one call hands to the next.
type keeper interface {
	Keeping(nf4 map[string]bool, becomes []string) compute.Backend
	BufferFromNF4(codes []byte, scales []float32, shape shapes.Shape) (compute.Buffer, error)
}

func newAdapted(layout *model.Layout, base *model.Base) adapted {
	return adapted{layout: layout, base: base, frozen: map[string]compute.Buffer{}}
}

// freeze reads the programs' frozen weights.
func (g *adapted) freeze(programs ...*Program) error {
	for _, p := range programs {
		if err := g.pack(p); err != nil {
			return err
		}
		if _, err := frozenBuffers(p, g.base, g.frozen); err != nil {
			return err
		}
	}
	return nil
}

// pack reads what a program keeps in NF4.
func (g *adapted) pack(p *Program) error {
	for _, param := range p.Params {
		if param.Role != Frozen || !g.packed[param.Name] || g.frozen[param.Name] != nil {
			continue
		}
		codes, scales, ok, err := g.base.StoredNF4(param.Name)
		if err != nil || !ok {
			return fmt.Errorf("nn: %s in NF4: %w", param.Name, err)
		}
		if g.frozen[param.Name], err = p.backend.(keeper).BufferFromNF4(codes, scales, shapes.Make(param.DType, param.Shape...)); err != nil {
			return err
		}
	}
	return nil
}

// adapt merges an adapter for the programs, unless the last call had the same.
func (g *adapted) adapt(adapter []float32, rank int, programs ...*Program) error {
	if err := g.layout.CheckSlice(adapter, rank); err != nil {
		return err
	}
	if g.values != nil && g.rank == rank && same(g.slice, adapter) {
		return nil
	}
	merge := g.layout.Merge
	if g.apart {
		merge = g.layout.Apart
	}
	merged, err := merge(g.base, adapter, rank)
	if err != nil {
		return err
	}
	for _, b := range g.values {
		_ = b.Finalize()
	}
	g.values, g.rank = map[string]compute.Buffer{}, -1 // until all are here
	for _, p := range programs {
		for _, param := range p.Params {
			v, ok := merged[param.Name]
			if !ok || g.values[param.Name] != nil {
				continue
			}
			if g.values[param.Name], err = p.Buffer(param, v); err != nil {
				return err
			}
		}
	}
	g.slice, g.rank = append(g.slice[:0], adapter...), rank
	return nil
}

func same(x, y []float32) bool {
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
			return false
		}
	}
	return true
}

// call runs a program with the buffers of what is given by name: everything else is
// the adapter's or the base's.
func (g *adapted) call(p *Program, given map[string]compute.Buffer) (map[string]compute.Buffer, error) {
	buffers := make([]compute.Buffer, len(p.Params))
	for i, param := range p.Params {
		for _, from := range []map[string]compute.Buffer{given, g.values, g.frozen} {
			if b, ok := from[param.Name]; ok {
				buffers[i] = b
				break
			}
		}
		if buffers[i] == nil {
			return nil, fmt.Errorf("nn: nothing gives %s", param.Name)
		}
	}
	results, err := p.Run(buffers)
	if err != nil {
		return nil, err
	}
	out := map[string]compute.Buffer{}
	for i, o := range p.outputs {
		name := o.Name
		if o.State != "" {
			name = o.State
		}
		out[name] = results[i]
	}
	return out, nil
}
