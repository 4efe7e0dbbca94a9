// Package timing computes deadlines: how long each state of a round may last, when its shards are
// late, and how long devices with a broken connection are waited for. It has no clock and never
// sleeps: callers ask for the next deadline and report that it has passed.
package timing

import (
	"maps"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/round"
)

// Deadlines are those of the round's shards, or of its cohort before there are
// any: one at a time of each.
type Deadlines struct {
	by   map[int]due
	next time.Time // none is due earlier; zero: none runs
}

type due struct {
	at    time.Time
	state round.State
	since time.Time // when the state began
}

// Arm starts a deadline. Of the same state again the earlier counts.
func (d *Deadlines) Arm(shard int, s round.State, at time.Time) {
	since := time.Now()
	if was, ok := d.by[shard]; ok && was.state == s {
		if was.at.Before(at) {
			return
		}
		since = was.since
	}
	if d.by == nil {
		d.by = map[int]due{}
	}
	if shard != round.Whole {
		delete(d.by, round.Whole) // the cohort is cut
	}
	d.by[shard] = due{at, s, since}
	if d.next.IsZero() || at.Before(d.next) {
		d.next = at
	}
}

// Lasted returns how long a shard's state, or the cohort's, has been open.
func (d *Deadlines) Lasted(shard int, now time.Time) time.Duration {
	if x, ok := d.by[shard]; ok {
		return now.Sub(x.since)
	}
	return 0
}

// Next is a moment before which none is due; zero: none runs.
func (d *Deadlines) Next() time.Time { return d.next }

// Expired takes out those that have passed, in the order of their shards.
func (d *Deadlines) Expired(now time.Time) (passed []round.Deadline) {
	if d.next.IsZero() || now.Before(d.next) {
		return nil
	}
	d.next = time.Time{}
	for _, shard := range slices.Sorted(maps.Keys(d.by)) {
		x := d.by[shard]
		if !now.Before(x.at) {
			delete(d.by, shard)
			passed = append(passed, round.Deadline{Shard: shard, State: x.state})
		} else if d.next.IsZero() || x.at.Before(d.next) {
			d.next = x.at
		}
	}
	return passed
}

// Stop ends all of them.
func (d *Deadlines) Stop() { *d = Deadlines{} }
