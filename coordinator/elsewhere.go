package coordinator

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/starling-fl/starling/secagg"
)

// Nearly all that unmasking costs is adding masks up, for which no vector needs to be known.
// So the secrets of all shards are rebuilt here, where shares are checked against commitments and
// liars are found; masks are added up here or elsewhere, wherever a processor is free; and here
// they are taken off. An answer is a function of the question alone: one that comes twice, late
// or from a process that has become somebody else's changes nothing, and needs no lease.
const (
	mostElsewhere = 16              // shards at a time
	patience      = 2 * time.Second // before a processor here that has nothing to do takes one back
	recheck       = 16
)

// shardMasks is the masks of a shard, and what they come to.
type shardMasks struct {
	*secagg.Masks
	sum   []uint32
	there bool // it was added up elsewhere
	err   error
}

// unmaskElsewhere unmasks a round's shards with the help of other processes.
func (c *Coordinator) unmaskElsewhere(r *running, u unmaskedEvent) {
	all := make([]shardMasks, len(u.e.Shards))
	each := func(do func(s *secagg.Server, m *shardMasks, i int)) {
		var wg sync.WaitGroup
		for i, n := range u.e.Shards {
			wg.Go(func() { do(r.shards[n], &all[i], i) })
		}
		wg.Wait()
	}
	places := make(chan struct{}, mostElsewhere)
	if c.lied.Load() {
		places = nil
	}
	each(func(s *secagg.Server, m *shardMasks, _ int) {
		c.workers.do(func() { m.Masks, m.err = s.Masks() })
		if m.err != nil {
			return
		}
		c.addMasks(r.life, m, places)
		if m.there && rand.N(c.recheck) == 0 {
			c.workers.do(func() {
				if !slices.Equal(m.Sum(), m.sum) {
					c.lied.Store(true)
				}
			})
		}
	})
	there := 0
	wrong := places != nil && c.lied.Load()
	if wrong {
		c.log.Error("ALARM: a process that adds masks up for this one gave a wrong sum: nothing of the round's is taken from others, nor later until the next start", "round", r.id)
	}
	each(func(s *secagg.Server, m *shardMasks, i int) {
		c.workers.do(func() {
			if m.there && wrong {
				m.here()
			}
			if u.errs[i] = m.err; m.err == nil {
				u.parts[i], u.errs[i] = s.Strip(m.sum)
			}
			if m.Masks != nil {
				m.Erase()
			}
			clear(m.sum)
		})
	})
	for i := range all {
		if all[i].there {
			there++
		}
	}
	c.log.Info("unmasked", "round", r.id, "shards", len(all), "elsewhere", there)
}

// here adds a shard's masks up in this process.
func (m *shardMasks) here() {
	m.there, m.sum = false, m.Sum()
}

// addMasks adds a shard's masks up wherever there is room first; nil places: here.
func (c *Coordinator) addMasks(ctx context.Context, m *shardMasks, places chan struct{}) {
	select {
	case places <- struct{}{}: // whoever owns the round has more to do than that
	default:
		select {
		case places <- struct{}{}:
		case c.workers <- struct{}{}:
			defer func() { <-c.workers }()
			m.here()
			return
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	came := make(chan []uint32, 1)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	asking.Go(func() {
		sum, err := c.cfg.SumMasks(ctx, m.Masks)
		if err != nil {
			c.log.Debug("masks are added up here", "reason", err)
			sum = nil
		}
		<-places
		came <- sum
	})
	late := time.NewTimer(patience)
	defer late.Stop()
	var free workers // when it is late, a processor that has nothing to do
	for {
		select {
		case m.sum = <-came:
			if m.there = m.sum != nil; !m.there {
				c.workers.do(m.here)
			}
			return
		case <-late.C:
			free = c.workers
		case free <- struct{}{}:
			defer func() { <-free }()
			m.here()
			return
		}
	}
}
