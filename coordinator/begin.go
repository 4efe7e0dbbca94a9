package coordinator

import (
	"fmt"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
)

// beginning is what decides when the first round is made before the whole population has enrolled.
//
// The population stays the one that was declared: it fixes the denominator of the mean and, with the sampling
// rate, the noise. What fewer devices change is what one device's coin can tip, and needed holds every round
// to that for the devices that are there. Whether to begin depends on no coin.
type beginning struct {
	least   int       // devices that a round needs in any case
	by      string    // the operator who said that it begins, ""
	due     time.Time // when it begins with fewer; zero: never
	awaited []string  // notes of invitations that somebody has yet to use, some of them
	open    int       // number of those invitations
	told    time.Time // when those that wait were told last whom it awaits
}

// mostAwaited bounds the names that are said.
const mostAwaited = 8

// lookAtStart reads what the operator has said, and who is awaited, while the population is not complete.
func (c *Coordinator) lookAtStart() (err error) {
	b := &c.beginning
	if c.begun() || c.fleet.Active() >= c.t.Job.Cohort.Population {
		return nil
	}
	if b.least == 0 {
		if b.least, err = c.t.Job.LeastStart(); err != nil {
			return err
		}
		if err := c.store.KeepLeastStart(b.least); err != nil {
			return err
		}
	}
	if within := c.t.Job.Cohort.StartWithin; within > 0 && b.due.IsZero() {
		first, err := c.store.FirstServed(time.Now())
		if err != nil {
			return err
		}
		b.due = first.Add(within)
	}
	if by, err := c.store.Begun(); err != nil {
		return err
	} else if by != b.by {
		b.by = by
		c.log.Warn("rounds begin with the devices that have enrolled", "by", by, "enrolled", c.fleet.Active())
	}
	if c.begins(c.fleet.Active()) {
		return nil // nobody asks whom it awaits
	}
	b.awaited, b.open, err = c.store.Awaited(mostAwaited)
	return err
}

// begun reports whether the first round was drawn. From then on rounds go on with those that are there.
func (c *Coordinator) begun() bool { return c.core.NextRound() > 1 }

// begins reports whether rounds may be made with so many enrolled devices, without those that have left
// or are in no draw for another reason.
func (c *Coordinator) begins(enrolled int) bool {
	b := &c.beginning
	switch {
	case c.begun(), enrolled >= c.t.Job.Cohort.Population:
		return true
	case enrolled < b.least:
		return false
	}
	return enrolled >= c.t.Job.StartsWith() || b.by != "" || !b.due.IsZero() && !time.Now().Before(b.due)
}

// awaited says how many devices the first round waits for, and until when: for everybody who has enrolled.
func (c *Coordinator) awaited(enrolled int) string {
	b, population := &c.beginning, c.t.Job.Cohort.Population
	text := fmt.Sprintf("%d of %d devices have enrolled", enrolled, population)
	if n := c.t.Job.StartsWith(); n < population {
		text += fmt.Sprintf("; rounds begin with %d", n)
	}
	if !b.due.IsZero() {
		text += fmt.Sprintf("; from %s on with those that have", b.due.UTC().Format("2006-01-02 15:04 MST"))
	}
	if enrolled < b.least {
		text += fmt.Sprintf("; a round needs %d", b.least)
	}
	return text
}

// tellWaiting says to the devices that wait for the first round whom it waits for, no more often than once
// a minute. Rosters of a job that hides identities tell no device how many there are, and no more does this.
func (c *Coordinator) tellWaiting() {
	b, n := &c.beginning, c.fleet.Active()
	if c.t.Job.Shard.Anonymous || c.begins(n) || time.Since(b.told) < tellWaitingEvery {
		return
	}
	b.told = time.Now()
	for _, d := range c.fleet.All() {
		if d.Link != nil && d.Told != n {
			c.wait(d)
		}
	}
}

const tellWaitingEvery = time.Minute

// waitsFor is why a device that is in no round waits.
func (c *Coordinator) waitsFor() string {
	if n := c.fleet.Active(); c.running == nil && !c.t.Job.Shard.Anonymous && !c.begins(n) {
		return c.awaited(n)
	}
	return "not in this round"
}

// shownBeginning is what operators see of the wait for the first round; nil once it is over.
func (c *Coordinator) shownBeginning() *monitor.Beginning {
	b, n := &c.beginning, c.fleet.Active()
	if c.begins(n) {
		return nil
	}
	out := &monitor.Beginning{Enrolled: n, With: c.t.Job.StartsWith(), Least: b.least, ByWord: c.cfg.Host == nil, By: b.by, Open: b.open, Awaited: b.awaited}
	if !b.due.IsZero() {
		out.Due = b.due.Unix()
	}
	return out
}

// awaits says what the first round waits for, and whom: for operators.
func (c *Coordinator) awaits(enrolled int) string {
	b := &c.beginning
	text := c.awaited(enrolled)
	if enrolled >= b.least && c.cfg.Host == nil {
		text += "; they could begin now (starling job begin)"
	}
	if b.open > 0 {
		text += fmt.Sprintf("; %d invitations are open", b.open)
		if len(b.awaited) > 0 {
			text += ": " + strings.Join(b.awaited, ", ")
			if more := b.open - len(b.awaited); more > 0 {
				text += fmt.Sprintf(" and %d more", more)
			}
		}
	}
	return text
}
