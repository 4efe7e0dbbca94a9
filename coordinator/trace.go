package coordinator

import (
	"fmt"
	"slices"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/secagg"
)

// shardLimit is the size of the running round's shards, where they are cut. Those of
// sampled cohorts are dealt, and stay as large as they are: there each cohort is another
// part of the fleet, which tells as much.
func (c *Coordinator) shardLimit() int {
	if c.trace.Tracing() {
		return c.t.job.Shard.Floor
	}
	return c.t.job.Shard.Size
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

// traceAlarms takes in the round's alarmed shards and strikes whom they point at.
func (c *Coordinator) traceAlarms(r *running, alarmed []int) error {
	if len(alarmed) == 0 {
		if !c.trace.Tracing() {
			return nil
		}
		c.trace.Passed()
		return c.keepTrace()
	}
	var in, others []*fleet.Device
	for n, shard := range r.shards {
		for _, id := range shard.Members() {
			switch d := c.fleet.Of(id); {
			case !shard.InU3(secagg.ID(id)):
			case slices.Contains(alarmed, n):
				in = append(in, d)
			default:
				others = append(others, d)
			}
		}
	}
	rest := 0
	if c.t.job.Sampled() {
		rest = max(0, r.ready-len(in)-len(others))
	}
	c.trace.Alarm(in, others, rest)
	for _, d := range c.trace.Found(c.fleet.Active()) {
		c.strike(d, r.id, "it was in one shard after another whose sum was out of range", true)
	}
	return c.keepTrace()
}
