package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// declined takes a device's leave from a round. What it says besides its code is not
// passed on: those who read a log need not read what strangers write.
func (c *Coordinator) declined(r *running, d *fleet.Device, m *wire.Refuse) {
	limit, is := wire.Limit(m.Code)
	if p := r.parts[d.N]; !p.dropped {
		if p.why = departedStopped; is {
			p.why = departedDeclined
		}
	}
	if !is || r.parts[d.N].dropped {
		c.log.Info("device left the round", "device", short(d.ID), "round", r.ID(), "code", m.Code)
		return
	}
	c.log.Info("device declined the round", "device", short(d.ID), "round", r.ID(), "limit", limit)
	if r.declined == nil {
		r.declined = map[[32]byte]uint16{}
	}
	r.declined[d.ID] = m.Code
}

// advice says what an operator can do about a limit of devices' owners.
var advice = map[uint16]string{
	wire.CodeMemory: "smaller training.memory or training.micro_batch, and base_format: nf4, take less memory",
	wire.CodeWork:   "fewer training.steps, a smaller batch or sequence take less work",
	wire.CodePolicy: "starling join tells each owner which of its limits it is",
}

// keepDeclined records, for the operator, which devices declined the round because of their owners'
// limits. They stay in the population and are drawn again, since an owner may widen a limit.
func (c *Coordinator) keepDeclined(r *running) {
	if len(r.declined) == 0 {
		return
	}
	count := map[uint16]int{}
	for _, code := range r.declined {
		count[code]++
	}
	for _, code := range slices.Sorted(maps.Keys(count)) {
		limit, _ := wire.Limit(code)
		c.log.Warn("devices declined the round", "round", r.ID(), "devices", count[code],
			"why", fmt.Sprintf("beyond their owners' limits (%s)", limit), "advice", advice[code])
	}
	if err := c.deviceNotes().Declined(r.ID(), r.declined); err != nil {
		c.log.Error("who declined the round is not kept", "round", r.ID(), "error", strings.TrimPrefix(err.Error(), "store: "))
	}
}
