package coordinator

import (
	"fmt"

	"github.com/starling-fl/starling/internal/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
)

// heldSlice is what the devices of a past round decoded, and may still hold.
type heldSlice struct {
	rank   int
	values []float32
}

// keptSlices is how many past rounds differences are offered against.
const keptSlices = 3

// downlink fills in what devices start from: before anything is released the
// adapter's seed, afterwards the slice at the round's rank in the job's format,
// and shorter differences to what devices of the last rounds hold.
func (c *Coordinator) downlink(r *running, plan *wire.Plan) error {
	if c.version == 0 {
		plan.Seed = seedBytes(c.seed)
		c.remember(heldSlice{c.t.lora.RMax, c.adapter.Slice(c.t.lora.RMax)})
		return nil
	}
	full, decoded, err := c.Slice(r.rank)
	if err != nil {
		return err
	}
	digest := quant.Digest(decoded)
	data := [][]byte{full}
	var from [][32]byte
	for _, h := range c.held {
		if h.rank < r.rank {
			continue // part of the slice is missing
		}
		cut, err := c.cut(h, r.rank)
		if err != nil {
			return err
		}
		msg, err := quant.PackPatch(full, cut)
		if err != nil {
			return fmt.Errorf("coordinator: downlink: %w", err)
		}
		if msg != nil {
			data = append(data, msg)
			from = append(from, quant.Digest(cut))
		}
	}
	refs := c.blobs.assign(data...)
	j := c.t.job.Wire
	plan.Slice = wire.Slice{Blob: refs[0], Digest: digest, Format: j.Downlink, Codec: j.DownlinkCodec}
	for i, f := range from {
		r.patches = append(r.patches, wire.Patch{From: f, Blob: refs[i+1]})
	}
	c.remember(heldSlice{r.rank, decoded})
	return nil
}

func (c *Coordinator) remember(h heldSlice) {
	if len(c.held) > 0 && c.held[0].rank == h.rank && quant.Digest(c.held[0].values) == quant.Digest(h.values) {
		return
	}
	c.held = append([]heldSlice{h}, c.held...)
	c.held = c.held[:min(len(c.held), keptSlices)]
}

// cut takes a slice down to a smaller rank.
func (c *Coordinator) cut(h heldSlice, rank int) ([]float32, error) {
	if h.rank == rank {
		return h.values, nil
	}
	a := model.NewAdapter(c.t.layout, 0)
	if err := a.SetSlice(h.rank, h.values); err != nil {
		return nil, fmt.Errorf("coordinator: %w", err)
	}
	return a.Slice(rank), nil
}
