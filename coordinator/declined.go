package coordinator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
		c.log.Error("cannot store who declined the round", "round", r.ID(), "error", strings.TrimPrefix(err.Error(), "store: "))
	}
}

// leaves reports whether a device that ends its session with this code leaves the population: it
// will take part in no round of the job, whatever is drawn.
func leaves(code uint16) bool {
	_, limit := wire.Limit(code)
	return limit || code == wire.CodePlan || code == wire.CodeBlob || code == wire.CodeProgram
}

// mostLeft is how often a device may leave, and enrol again, in one process: each time is written.
const mostLeft = 10

// leaves takes a device out of the population until it enrols again, by its own word. That follows
// from job, plan and its owner's limits: not from its data, and not from others' coins
// (docs/privacy/proofs.md, section 5). Who is active is looked at between rounds alone.
func (c *Coordinator) leaves(d *fleet.Device, code uint16) {
	if d.Left++; d.Left > mostLeft {
		return // it is absent
	}
	limit, is := wire.Limit(code)
	if r := c.running; r != nil && r.parts[d.N] != nil {
		if _, told := r.declined[d.ID]; told {
			is = false // it is noted with the round
		}
		if p := r.parts[d.N]; !p.dropped {
			p.why = departedDeclined
			c.exclude(r, d, "")
		}
	}
	c.log.Warn("device leaves the population until it enrols again", "device", short(d.ID), "code", code, "limit", limit, "advice", advice[code])
	err := c.store.Leave(d.ID)
	if is && err == nil {
		err = c.deviceNotes().Declined(c.status.Round, map[[32]byte]uint16{d.ID: code})
	}
	if err != nil {
		c.log.Error("that a device leaves is not kept", "device", short(d.ID), "error", err)
	}
	c.mustered = time.Time{}
}
