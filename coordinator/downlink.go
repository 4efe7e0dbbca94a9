package coordinator

import (
	"fmt"

	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/quant"
)

// downlink fills in what devices start from: before anything is released the
// adapter's seed, where that gives it, afterwards the slice at the round's rank in the job's format,
// and shorter differences to what devices of the last rounds hold.
func (c *Coordinator) downlink(r *running, plan *wire.Plan) error {
	if c.core.Version() == 0 && c.t.Start == nil {
		plan.Seed = seedBytes(c.core.Seed())
		_, values, err := c.core.Slice(c.t.Method.RMax)
		c.held.Remember(contract.Slice{Rank: c.t.Method.RMax, Values: values})
		return err
	}
	full, decoded, err := c.core.Slice(r.Rank())
	if err != nil {
		return err
	}
	digest := quant.Digest(decoded)
	data := [][]byte{full}
	var from [][32]byte
	for cut, err := range c.held.At(c.t.Layout, r.Rank()) {
		if err != nil {
			return fmt.Errorf("coordinator: downlink: %w", err)
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
	j := c.t.Job.Wire
	plan.Slice = wire.Slice{Blob: refs[0], Digest: digest, Format: j.Downlink, Codec: j.DownlinkCodec}
	for i, f := range from {
		r.patches = append(r.patches, wire.Patch{From: f, Blob: refs[i+1]})
	}
	c.held.Remember(contract.Slice{Rank: r.Rank(), Values: decoded})
	return nil
}
