package coordinator

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
)

// unmask begins the pipeline: the shards are unmasked beside the engine, side by
// side, and release goes on with what comes back. Noise alone needs no shards.
func (c *Coordinator) unmask(r *running, e round.Release) (round.Event, error) {
	c.status.State = round.Releasing.String()
	c.publish()
	r.due.Stop()
	u := unmaskedEvent{r: r, e: e, began: time.Now(), parts: make([][]int64, len(e.Shards)), errs: make([]error, len(e.Shards))}
	if e.NoiseOnly {
		return c.release(r, u)
	}
	c.add(r)
	r.unmasking.Go(func() {
		r.adding.Wait()
		var wg sync.WaitGroup
		for i, n := range e.Shards {
			wg.Go(func() { c.workers.do(func() { u.parts[i], u.errs[i] = r.shards[n].Unmask() }) })
		}
		wg.Wait()
		if !c.post(r.life, u) {
			u.clear()
		}
	})
	return nil, nil
}

// unmaskedEvent is the exact sums of the shards, or why there is none.
type unmaskedEvent struct {
	r     *running
	e     round.Release
	began time.Time
	parts [][]int64
	errs  []error
}

func (unmaskedEvent) engineEvent() {}

func (u unmaskedEvent) clear() {
	for _, part := range u.parts {
		clear(part)
	}
}

// unmasked releases what the shards came to, if their round is still there.
func (c *Coordinator) unmasked(u unmaskedEvent) {
	defer u.clear()
	r := u.r
	if c.running != r || r.finish != nil || r.fatal != nil {
		return // stopped and charged
	}
	ev, err := c.release(r, u)
	if err != nil {
		r.fatal = &fatalError{err}
		return
	}
	c.step(ev)
}

// release is the rest of the pipeline in one straight line: check the range,
// add noise, decode with the fixed denominator, apply, commit, and only then show.
// The un-noised sums live from unmasking to the end of this frame and nowhere else.
// The event it returns is Released or ReleaseFailed; an error is fatal.
func (c *Coordinator) release(r *running, u unmaskedEvent) (round.Event, error) {
	began, e := u.began, u.e
	sum := make([]int64, r.Vector().Size())
	defer clear(sum)
	devices := 0 // in the sum
	if !e.NoiseOnly {
		shards, good, alarmed, err := c.checkShards(r, u)
		if err != nil {
			return nil, err
		}
		if err := c.traceAlarms(r, alarmed); err != nil {
			return nil, err
		}
		if good == 0 && len(alarmed) > 0 {
			return c.releaseFailed(r, "alarm: the sum of every shard is out of range")
		}
		if good == 0 {
			return c.releaseFailed(r, "no shard could be unmasked")
		}
		for i, part := range shards {
			if part != nil {
				devices += r.shards[i].Survivors()
			}
		}
		if !c.core.Enough(devices, c.fleet.Active()) {
			return c.releaseFailed(r, fmt.Sprintf("%d devices are in the sum, at least %d must be: the own noise of %d honest ones is counted on",
				devices, c.t.Own.Needs(c.t.Job, c.fleet.Active()), c.t.Own.Honest))
		}
		if err := c.core.Combine(r.Draw, sum, shards); err != nil {
			return nil, err
		}
	}
	c.metrics.Unmasking.Add(time.Since(began).Seconds())

	noising := time.Now()
	var noise dp.Noise = r.noise
	if r.noise == nil { // its variance is not known before devices are counted
		noise = dp.NewSampler(c.core.Noise(r.Draw))
	}
	event, clip, err := c.core.Release(r.Draw, sum, devices, e.NoiseOnly, noise)
	if err != nil {
		return nil, err
	}
	c.metrics.Noising.Add(time.Since(noising).Seconds())
	if err := c.commit(r, event, clip); err != nil {
		return nil, err
	}
	c.metrics.Releasing.Add(time.Since(began).Seconds())
	c.metrics.Committed.Inc()
	if e.NoiseOnly {
		c.metrics.NoiseOnly.Inc()
	}
	c.show(r)
	return round.Released{}, c.still(r)
}

// checkShards returns the sums of all shards of the round, each of those that could
// be unmasked checked for what honest devices can have made; nil stands for the
// others. good counts the sums, alarmed lists the shards that did not pass.
//
// A hostile symbol near a wrap can make one victim's effect many times larger than
// the noise was made for: nothing of such a shard is released. The others are, at
// the round's one price. docs/privacy/proofs.md, section 5, says what the alarm shows.
func (c *Coordinator) checkShards(r *running, u unmaskedEvent) (sums [][]int64, good int, alarmed []int, err error) {
	sums = make([][]int64, len(r.shards))
	for i, part := range u.parts {
		n := u.e.Shards[i]
		var bad *secagg.ShardError
		if errors.As(u.errs[i], &bad) {
			c.metrics.ShardsFailed.Inc()
			c.log.Warn("shard failed", "round", r.ID(), "shard", n, "reason", bad.Err)
			c.blamed(r, bad.Faults)
			continue
		}
		if u.errs[i] != nil {
			return nil, 0, nil, fmt.Errorf("coordinator: unmasking shard %d: %w", n, u.errs[i])
		}
		c.blamed(r, r.shards[n].Faults())
		survivors := r.shards[n].Survivors()
		switch err := r.Vector().CheckSum(part, survivors*c.t.Contract.Job.Units(), survivors); {
		case errors.Is(err, quant.ErrRange):
			c.metrics.Alarms.Inc()
			c.log.Error("ALARM: a shard's sum is out of range, it is not released", "round", r.ID(), "shard", n)
			alarmed = append(alarmed, n)
			continue
		case err != nil:
			return nil, 0, nil, err
		}
		sums[n] = part
		good++
	}
	return sums, good, alarmed, nil
}

// commit writes checkpoint and charge in one transaction; clip is the clip norm
// of the next round.
func (c *Coordinator) commit(r *running, event dp.Event, clip float64) error {
	state, err := c.core.Snapshot()
	if err != nil {
		return err
	}
	note, err := c.noted(r, "")
	if err != nil {
		return err
	}
	kept := c.keeps(r)
	entry, err := c.store.Commit(event, note, store.Checkpoint{
		Version: c.core.Version() + 1, Round: r.ID(), Adapter: state.Adapter, Optimizer: state.Optimizer, ClipNorm: clip, Kept: kept,
	})
	if err != nil {
		return err
	}
	c.core.Commit(clip)
	c.apart.rest(kept)
	c.spent = append(c.spent, event)
	c.head = entry.Hash
	c.status.Version = int(c.core.Version())
	c.status.Guarantees = note.Guarantees
	c.metrics.Version.Set(float64(c.core.Version()))
	c.metrics.LastCommit.SetToCurrentTime()
	c.log.Info("committed", "round", r.ID(), "version", c.core.Version(), "rank", r.Rank(), "kind", event.Kind, "next_clip_norm", clip)
	return nil
}

// show exports what was committed and has it measured. A figure of an earlier
// version does not go into the new checkpoint.
func (c *Coordinator) show(r *running) {
	c.status.State, c.status.Reason = monitor.StateCommitted, ""
	c.measure(r.Rank())
	c.exportSoon(nil)
}

// export writes the released checkpoint as a folder, with the accuracy that was
// measured of it.
func (c *Coordinator) export(measured []metric.RankAccuracy) error {
	info, err := c.checkpointInfo(measured)
	if err != nil {
		return err
	}
	err = model.WriteCheckpoint(c.checkpointDir(), &model.Checkpoint{CheckpointInfo: info, Base: c.t.Base, Adapter: c.core.Adapter()})
	if err != nil {
		return fmt.Errorf("coordinator: checkpoint folder: %w", err)
	}
	if c.cfg.Released != nil {
		c.cfg.Released(info.Version, c.checkpointDir())
	}
	return nil
}

// checkpointInfo describes the present adapter; measured may be empty.
func (c *Coordinator) checkpointInfo(measured []metric.RankAccuracy) (model.CheckpointInfo, error) {
	ranks := c.t.Ranks()
	largest, err := c.t.Vector(ranks[len(ranks)-1], c.t.Job.Privacy.ClipNorm, [32]byte{})
	if err != nil {
		return model.CheckpointInfo{}, fmt.Errorf("coordinator: %w", err)
	}
	info := model.CheckpointInfo{
		Job: c.t.Job.Name, Version: int(c.core.Version()), Seq: c.t.Job.Adapter.Sequence, Labels: c.t.Job.Labels,
		Method: c.t.Method, BaseSHA256: fmt.Sprintf("%x", c.t.BaseRef.SHA256), BestRank: c.total.BestRank,
		RankAccuracy: map[string]float64{}, Privacy: c.guaranteeText(),
		Devices: c.t.Job.Cohort.Population, UpdateBytes: (largest.Size()*c.t.Bits + 7) / 8,
	}
	for _, v := range measured {
		info.RankAccuracy[strconv.Itoa(v.Rank)] = v.Accuracy
	}
	return info, nil
}

// guaranteeText is the guarantee in one line, for the exported checkpoint.
func (c *Coordinator) guaranteeText() string {
	if !c.rnd.Secret() {
		return "not private: a reproducible run"
	}
	if c.t.Job.Privacy.None {
		return "not private: no noise was added, and no epsilon holds"
	}
	text := ""
	if s := c.status.Simulated; s != nil {
		text = fmt.Sprintf("simulated for a population of %d: %v; ", c.t.Job.Privacy.SimulatedPopulation, *s)
	}
	for _, g := range []*dp.Guarantee{c.status.Public, c.status.Coalition, c.status.Visible} {
		if g != nil {
			text += g.String() + "; "
		}
	}
	whose := "central noise, trusted coordinator"
	if u := c.status.Untrusted; u != nil {
		whose = fmt.Sprintf("noise of the devices; without trust in the coordinator: %v", *u)
	}
	return fmt.Sprintf("%sdelivered to the population of %d: %v; %s; ledger %x",
		text, c.t.Job.Cohort.Population, *c.status.Delivered, whose, c.head)
}

// releaseFailed charges the round and ends it without a release.
func (c *Coordinator) releaseFailed(r *running, reason string) (round.Event, error) {
	if err := c.charge(r, reason); err != nil {
		return nil, err
	}
	return round.ReleaseFailed{Reason: reason}, nil
}

// charge pays for a round that released nothing.
func (c *Coordinator) charge(r *running, reason string) error {
	note, err := c.noted(r, reason)
	if err != nil {
		return err
	}
	entry, err := c.store.Charge(r.Event(), note)
	if err != nil {
		return err
	}
	c.spent = append(c.spent, entry.Event)
	c.head = entry.Hash
	c.status.Version = int(c.core.Version())
	c.status.Guarantees = note.Guarantees
	c.metrics.Charged.Inc()
	return nil
}
