package coordinator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
)

// maxStrikes is how many rounds a device may spoil, or let pass in silence, where
// none of them alone convicts it.
const maxStrikes = 3

// strike notes that a device misbehaved. Proven, or for the last time that is
// borne, it is excluded: its session ends, and it is in no draw until pardoned.
//
// Whether a device is excluded depends on what it and its peers did in public, and on the
// shards that alarmed: on nothing that another device holds. At most shard.corrupt of the
// devices must be hostile, or they can have an honest one convicted: docs/privacy/proofs.md, section 5.
func (c *Coordinator) strike(d *fleet.Device, roundID uint64, reason string, proven bool) {
	if d.Excluded {
		return
	}
	exclude, err := c.recordStrike(d, roundID, reason, proven)
	if err != nil {
		c.broken = err
		return
	}
	c.log.Warn("strike", "device", short(d.ID), "identity", fmt.Sprintf("%x", d.ID), "round", roundID,
		"reason", reason, "strikes", d.Strikes, "excluded", exclude)
	if exclude {
		c.metrics.Excluded.Inc()
		c.expel(d, reason)
	}
}

// recordStrike stores a strike and reports whether it excludes the device.
func (c *Coordinator) recordStrike(d *fleet.Device, roundID uint64, reason string, proven bool) (exclude bool, err error) {
	if h := c.cfg.Host; h != nil {
		d.Strikes, exclude, err = h.Strike(d.ID, roundID, reason, proven, maxStrikes)
		return exclude, err
	}
	d.Strikes++
	exclude = proven || d.Strikes >= maxStrikes
	return exclude, c.store.Strike(d.ID, roundID, reason, exclude)
}

// expel takes a device out of the population and ends its session.
func (c *Coordinator) expel(d *fleet.Device, reason string) {
	c.fleet.Exclude(d, reason)
	if d.Link != nil {
		c.fleet.Unready(d)
		d.Link.Finish(link.Frame(excluded(reason)))
	}
}

// excluded is what an excluded device is told.
func excluded(reason string) *wire.Error {
	return &wire.Error{Code: wire.CodeEnrolment, Text: truncate("this device is excluded: " + reason + "; the operator may pardon it")}
}

// musterFleet takes in who is in the draws by now: the operator may have excluded
// or pardoned devices, and who has not been seen for long is in none.
func (c *Coordinator) musterFleet() error {
	c.mustered = time.Now()
	out, err := c.store.NotDrawn(time.Now().Add(-c.t.Job.Enrolment.Absent))
	if err != nil {
		return err
	}
	if h := c.cfg.Host; h != nil {
		excluded, err := h.Excluded()
		if err != nil {
			return err
		}
		maps.Copy(out, excluded)
	}
	for id, why := range out {
		if why == "" { // not seen for long: of these there may be a million
			continue
		}
		if d := c.fleet.Of(id); d != nil && !d.Excluded {
			c.expel(d, why)
		}
	}
	pardoned := false
	for d := range c.fleet.Outside() {
		if d.Excluded && out[d.ID] == "" {
			c.fleet.Pardon(d)
			c.trace.Forgive(d)
			c.log.Info("pardoned", "device", short(d.ID))
			pardoned = true
		}
	}
	if pardoned && c.trace.Tracing() { // else a restart holds against it what was forgiven
		if err := c.keepTrace(); err != nil {
			return err
		}
	}
	c.fleet.Muster(out)
	if err := c.lookAtStart(); err != nil {
		return err
	}
	pause, err := c.store.Paused()
	if err != nil {
		return err
	}
	switch was := c.pausedBy; {
	case pause == nil:
		c.pausedBy = ""
	default:
		c.pausedBy = pause.String()
		if was == "" {
			c.log.Warn("paused", "by", pause.By, "reason", pause.Reason)
		}
	}
	return nil
}

// needed reports whether a round may be drawn with the devices that are ready, and why
// not.
//
// If coins choose, the quorum is made for the population; with fewer active the
// same must hold of them.
func (c *Coordinator) needed() (enough bool, reason string) {
	population, quorum := c.t.Job.Cohort.Population, c.t.Quorum.Ready
	if c.pausedBy != "" {
		return false, "paused by " + c.pausedBy
	}
	if c.dropouts.Beyond != "" {
		return false, "paused: " + c.dropouts.Beyond
	}
	if n := c.fleet.Active(); !c.begins(n) {
		return false, c.awaits(n)
	}
	ready := c.fleet.Ready()
	if c.t.Job.Sampled() || c.t.Job.Fixed() {
		ready = c.available(time.Now())
	}
	if _, enough = c.t.Quorum.Allows(c.t.Job, c.fleet.Active(), ready); ready >= quorum && !enough {
		return false, fmt.Sprintf("of %d active devices %d are ready: so few that one device's coin would show, or as many as "+
			"make shards of an awkward size; more of %d enrolled ones must come", c.fleet.Active(), ready, c.fleet.Enrolled())
	}
	reason = fmt.Sprintf("a round needs %d of %d devices ready", quorum, max(c.fleet.Active(), population))
	if n := c.fleet.Available(time.Now()); c.t.Job.Banded() && n >= quorum {
		reason += fmt.Sprintf(": of %d that are, %d rest for privacy.separation, until others were in a round", n, n-ready)
	}
	return enough, reason
}

// convicts reports whether a message that secagg refused convicts its sender at
// once: commitments or shares that no honest device makes.
func convicts(turn secagg.Turn, err error) bool {
	if errors.Is(err, secagg.ErrCommitment) {
		return true
	}
	return turn == secagg.TurnReveal &&
		(errors.Is(err, secagg.ErrRange) || errors.Is(err, secagg.ErrSet) || errors.Is(err, secagg.ErrLength) || errors.Is(err, secagg.ErrEncoding))
}

// blames reports whether a refused message counts against its sender at all: what
// crossed a turn's end, or came twice, is not.
func blames(err error) bool {
	for _, innocent := range []error{secagg.ErrLate, secagg.ErrRepeated, secagg.ErrOutOfTurn, secagg.ErrBelowThreshold, errNoRoom} {
		if errors.Is(err, innocent) {
			return false
		}
	}
	return true
}

// blamed strikes whom unmasking found out.
func (c *Coordinator) blamed(r *running, faults []secagg.Fault) {
	for _, f := range faults {
		if d := c.fleet.Of(f.Device); d != nil {
			c.strike(d, r.ID(), f.Reason, f.Proven)
		}
	}
}

// silence strikes who let a round pass without a word that was released all the same:
// a deadline that most miss is the deadline's fault, or ours, and then nothing is
// released. That is public; how many others were silent is not, and one device's coin
// could tip it. Who is slower than the others, but not than the job, has twice as many
// rounds to answer in, and as many as it likes where the job says that some devices are slow.
func (c *Coordinator) silence(r *running, released bool) {
	if !released {
		return
	}
	slices.SortFunc(r.silent, func(a, b *fleet.Device) int { return int(a.N - b.N) })
	for _, d := range r.silent {
		if d.Overdue >= maxStrikes || d.Missed >= 2*maxStrikes && !c.declaresSlow() {
			c.strike(d, r.ID(), fmt.Sprintf("silent in %d rounds in a row", d.Missed), true)
		}
	}
}
