package coordinator

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/secagg"
)

// shardLimit is the size of the running round's shards, where they are cut. Those of
// sampled cohorts are dealt, and stay as large as they are: there each cohort is another
// part of the fleet, which tells as much.
func (c *Coordinator) shardLimit() int {
	if c.trace.Tracing() {
		return c.t.Job.Shard.Floor
	}
	return c.t.Job.Shard.Size
}

// keepTrace keeps the trace over restarts.
func (c *Coordinator) keepTrace() error {
	text, err := c.trace.Text()
	if err != nil {
		return fmt.Errorf("coordinator: %w", err)
	}
	return c.store.KeepTrace(text)
}

// resumeTrace goes on with a trace that an earlier process began.
func (c *Coordinator) resumeTrace() error {
	text, err := c.store.Trace()
	if err != nil || text == "" {
		return err
	}
	if err := c.trace.Resume(text, c.fleet); err != nil {
		return fmt.Errorf("coordinator: %w", err)
	}
	return nil
}

// traceAlarms takes in the round's shards, of which some alarmed, and strikes devices that
// are convicted. Others it tells the operator of.
func (c *Coordinator) traceAlarms(r *running, alarmed []int) error {
	r.traced = true
	if len(alarmed) == 0 && !c.trace.Tracing() {
		return nil
	}
	for _, d := range c.trace.Take(c.tracedShards(r, alarmed), c.declaredHostile(), c.fleet.Active()) {
		c.strike(d, r.ID(), "it was in one shard after another whose sum was out of range, and the declared share of hostile devices "+
			"(shard.corrupt) does not explain that without it", true)
	}
	if len(alarmed) > 0 {
		c.logForemost(r)
	}
	return c.keepTrace()
}

// traceUnread takes in a round of which no sum was looked at, if it had shards.
func (c *Coordinator) traceUnread(r *running) error {
	if r.traced || len(r.shards) == 0 || !c.trace.Tracing() {
		return nil
	}
	c.trace.Pass(c.tracedShards(r, nil))
	return c.keepTrace()
}

// tracedShards are the round's shards as the trace takes them, of which some alarmed.
func (c *Coordinator) tracedShards(r *running, alarmed []int) []fleet.Shard {
	shards := make([]fleet.Shard, len(r.shards))
	for n, shard := range r.shards {
		s := &shards[n]
		s.Company = c.company(r, len(shard.Members()))
		for _, id := range shard.Members() {
			d := c.fleet.Of(id)
			if s.Dealt = append(s.Dealt, d); slices.Contains(alarmed, n) && shard.InU3(secagg.ID(id)) {
				s.Sum = append(s.Sum, d)
			}
		}
	}
	// A device without a shard counts as one whose shard did not alarm: that hostile devices
	// filled its group up, or did not, may not decide whether its round counts.
	var without fleet.Shard
	for _, p := range r.parts {
		if p.noRoom {
			without.Dealt = append(without.Dealt, p.device)
		}
	}
	if len(without.Dealt) > 0 {
		without.Company = c.company(r, c.t.Job.Shard.Floor)
		shards = append(shards, without)
	}
	return shards
}

// declaredHostile is how many devices may be hostile by what the job declares; an alarm
// shows that there is one.
func (c *Coordinator) declaredHostile() int { return max(1, c.t.Job.Hostile(c.fleet.Active())) }

// company bounds the probability that a shard of that size, into which the deal put an honest
// device, holds a hostile one. Rosters may name identities, and the network shows who takes
// part: hostile devices can choose to strike in that device's company only.
func (c *Coordinator) company(r *running, size int) float64 {
	hostile := c.declaredHostile()
	if c.t.Job.Grouped() {
		// Each is drawn by its own coin, and deals itself into a group.
		return 1 - math.Pow(1-c.t.Job.Cohort.SamplingRate/float64(r.groups), float64(hostile))
	}
	// All of them may be among those that are cut, at random, into shards.
	n, none := r.keying.Len(), 1.0
	for i := range hostile {
		none *= max(0, float64(n-size-i)) / max(1, float64(n-1-i))
	}
	return 1 - none
}

// logForemost tells the operator which devices were in most of the alarms.
func (c *Coordinator) logForemost(r *running) {
	foremost, alarms := c.trace.Foremost(3)
	var said []string
	for _, f := range foremost {
		said = append(said, fmt.Sprintf("%s in %d", short(f.Device.ID), f.Alarms))
	}
	c.log.Warn("devices in most of the alarms: hostile ones that know their shard can bring an honest one here, so this alone convicts nobody",
		"round", r.ID(), "alarms", alarms, "devices", strings.Join(said, ", "))
}
