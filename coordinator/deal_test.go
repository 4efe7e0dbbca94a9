package coordinator

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/secagg/log"
)

// TestShardsAreDealt: in a round with coins each device is where its own lot puts it, of as
// many groups as the plan names; who shows none, or one that is not its own, is in no shard,
// and costs the others nothing.
func TestShardsAreDealt(t *testing.T) {
	const n, rounds = 60, 3
	j := sampledJob(n, rounds)
	j.Shard.Size, j.Cohort.Dropout = 20, 0.2
	var mu sync.Mutex
	type seen struct {
		round  uint64
		shard  int
		groups uint32
	}
	shards := map[seen]int{} // and the group that its devices drew
	most := uint32(0)
	var liars [2][32]byte
	tb := setTable(t, Config{Job: j}, n, func(i int, p *player) {
		if i < len(liars) {
			liars[i] = p.id()
		}
		p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
			if said, ok := m.(*wire.Turn); ok && turn == 1 && i < len(liars) {
				var a secagg.Advertise
				if err := a.UnmarshalBinary(said.Payload); err != nil {
					t.Error(err)
					return m, false
				}
				if a.Lot[40] ^= 1; i == 1 {
					a.Lot = [secagg.LotSize]byte{}
				}
				b, _ := a.AppendBinary(nil)
				return &wire.Turn{Round: said.Round, Number: said.Number, Payload: b}, false
			}
			return m, false
		}
		p.roster = func(plan *wire.Plan, r *secagg.Roster) {
			head, err := log.OpenHead(plan.Head, p.job.LogKey, "")
			if err != nil || plan.Groups == 0 {
				t.Errorf("a plan of %d groups: %v", plan.Groups, err)
				return
			}
			deal := &log.Deal{Task: plan.Task, Round: plan.Round, Head: head}
			mu.Lock()
			defer mu.Unlock()
			most = max(most, plan.Groups)
			for i := range r.Entries {
				e := &r.Entries[i]
				group, err := deal.Group((*[32]byte)(&e.Identity), &e.Lot, int(plan.Groups))
				if err != nil || e.Identity == liars[0] || e.Identity == liars[1] {
					t.Errorf("round %d, shard %d, entry %d: group %d, %v", plan.Round, r.Shard, i, group, err)
				}
				at := seen{plan.Round, r.Shard, plan.Groups}
				if was, ok := shards[at]; ok && was != group {
					t.Errorf("round %d: shard %d has devices of the groups %d and %d", plan.Round, r.Shard, was, group)
				}
				shards[at] = group
			}
		}
	})
	tb.onProgress = func(p monitor.Status) {
		if p.State == monitor.StateCommitted && p.Version >= rounds-1 {
			tb.stop()
		}
	}
	if err := tb.run(); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if most < 2 || len(shards) < 4 {
		t.Errorf("%d shards, of at most %d groups: the test shows nothing", len(shards), most)
	}
}

// TestWhoseRoundsAreDealt: those with coins and a log, unless a seed has to repeat them.
func TestWhoseRoundsAreDealt(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(cfg *Config)
		dealt  bool
	}{
		{"coins", func(*Config) {}, true},
		{"everybody", func(cfg *Config) { cfg.Job.Cohort.SamplingRate = 1 }, false},
		{"no log", func(cfg *Config) { cfg.Job.Shard.Anonymous = true }, false},
		{"a seed", func(cfg *Config) { cfg.Seed = []byte("a seed of some length") }, false},
	} {
		cfg := Config{Job: sampledJob(20, 2)}
		c.change(&cfg)
		tb := setTable(t, cfg, 1, nil)
		if got := tb.c.t.Contract.Job.Masking.Dealt; got != c.dealt {
			t.Errorf("%s: dealt %v", c.what, got)
		}
		tb.server.Close()
		if err := tb.c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestEverybodyIsDealt: a round without coins is dealt into as many groups as its job says.
func TestEverybodyIsDealt(t *testing.T) {
	const n, groups = 24, 3
	j := loud(n, 1)
	j.Shard.Size, j.Shard.Floor, j.Shard.Groups, j.Cohort.Floor = 20, 2, groups, n/2
	j.Deadlines.Reconnect = time.Minute // nobody leaves: who is slow to be ready on a loaded machine is waited for
	var mu sync.Mutex
	in := map[int]int{} // shards' groups
	tb := setTable(t, Config{Job: j}, n, func(_ int, p *player) {
		p.roster = func(plan *wire.Plan, r *secagg.Roster) {
			head, err := log.OpenHead(plan.Head, p.job.LogKey, "")
			if err != nil || plan.Groups != groups {
				t.Errorf("a plan of %d groups: %v", plan.Groups, err)
				return
			}
			deal := &log.Deal{Task: plan.Task, Round: plan.Round, Head: head}
			for i := range r.Entries {
				e := &r.Entries[i]
				group, err := deal.Group((*[32]byte)(&e.Identity), &e.Lot, groups)
				mu.Lock()
				if was, ok := in[r.Shard]; err != nil || ok && was != group {
					t.Errorf("shard %d, entry %d: group %d, %d before, %v", r.Shard, i, group, was, err)
				}
				in[r.Shard] = group
				mu.Unlock()
			}
		}
	})
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	if res := tb.c.Result(); res.Rounds != 1 || len(in) < 2 {
		t.Errorf("%+v, %d shards", res, len(in))
	}
}
