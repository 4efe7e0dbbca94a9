package coordinator

import (
	"maps"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/round"
)

// deadlines are those of the round's shards, or of its cohort before there are
// any: one at a time of each.
type deadlines struct {
	by   map[int]due
	next time.Time // none is due earlier; zero: none runs
}

type due struct {
	at    time.Time
	state round.State
	since time.Time // when the state began
}

// arm starts a deadline. Of the same state again the earlier counts.
func (d *deadlines) arm(shard int, s round.State, at time.Time) {
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

// lasted is how long a shard's state, or the cohort's, has been open.
func (d *deadlines) lasted(shard int, now time.Time) time.Duration {
	if x, ok := d.by[shard]; ok {
		return now.Sub(x.since)
	}
	return 0
}

// expired takes out those that have passed, in the order of their shards.
func (d *deadlines) expired(now time.Time) (passed []round.Deadline) {
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

func (d *deadlines) stop() { *d = deadlines{} }

// alarm wakes the engine. It is set anew only where the time has changed: that costs
// more than many an event.
type alarm struct {
	set   time.Time
	timer *time.Timer
}

// at is the channel that yields at t; none where t is zero. It holds until the next call.
func (a *alarm) at(t time.Time) <-chan time.Time {
	switch {
	case t.IsZero():
		return nil
	case a.timer == nil:
		a.timer = time.NewTimer(time.Until(t))
	case !t.Equal(a.set):
		a.timer.Reset(time.Until(t))
	}
	a.set = t
	return a.timer.C
}

// rang says that the channel has yielded.
func (a *alarm) rang() { a.set = time.Time{} }
