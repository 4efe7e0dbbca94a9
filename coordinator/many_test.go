package coordinator

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// TestShards: a cohort is cut into shards, each unmasked for itself; one that
// falls below its threshold fails alone, and the denominator does not notice.
func TestShards(t *testing.T) {
	const n, v = 12, 0.05
	job := loud(n, 1)
	job.Shard.Size, job.Shard.Floor, job.Cohort.Floor = 4, 3, n
	var gone atomic.Int32
	tb := setTable(t, Config{Job: job}, n, func(i int, p *player) {
		p.delta = fixedDelta(v)
		p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
			// Two of the four of shard 1 hang up; three are needed.
			return m, turn == 3 && p.shard == 1 && gone.Add(1) <= 2
		}
	})
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	res := tb.c.Result()
	if res.Rounds != 1 || res.Abandoned != 0 || counted(t, tb.c.metrics.ShardsFailed) != 1 {
		t.Errorf("%d rounds, %d abandoned, %d shards failed", res.Rounds, res.Abandoned, counted(t, tb.c.metrics.ShardsFailed))
	}
	if got, want := moved(tb), v*8.0/n; math.Abs(got-want) > 0.004 {
		t.Errorf("moved by %v, want %v: two shards of four over the fixed denominator", got, want)
	}
	shards := map[int]int{}
	for _, p := range tb.players {
		shards[p.shard]++
	}
	if len(shards) != 3 || shards[0] != 4 || shards[1] != 4 {
		t.Errorf("shards of %v", shards)
	}
}

// TestPendingUpdatesAreBounded: updates that come in part may not fill the memory.
func TestPendingUpdatesAreBounded(t *testing.T) {
	job := loud(4, 1)
	tb := setTable(t, Config{Job: job}, 4, nil)
	tb.c.maxPending = 100 // below one update
	tb.c.t.Job.Cohort.MaxAbandoned = 1
	err := tb.run()
	if err == nil || !strings.Contains(err.Error(), "abandoned") || counted(t, tb.c.metrics.Faults) != 4 {
		t.Errorf("ended with %v, %d faults", err, counted(t, tb.c.metrics.Faults))
	}
}

// TestRandomHostility lets a third of the devices do anything, at random, and
// checks what must hold whatever they do: the coordinator makes its rounds, the
// ledger verifies, and honest devices stay in.
func TestRandomHostility(t *testing.T) {
	const n = 9
	for seed := range uint64(8) {
		job := loud(n, 2)
		err := bubble(t, job, n, func(ctx context.Context, tb *table) {
			tb.ctx = ctx
			ended := make([]error, n)
			for i, p := range tb.players {
				p.delta = fixedDelta(0.02)
				if i < 3 {
					p.before = mischief(tb, rand.New(rand.NewPCG(seed, uint64(i))))
				}
				tb.wg.Go(func() {
					ended[i] = p.play(ctx)
					for i < 3 && ended[i] != nil && ctx.Err() == nil && p.finished == nil {
						p.conn.CloseNow()
						time.Sleep(100 * time.Millisecond)
						ended[i] = p.run(ctx)
					}
				})
			}
			time.Sleep(time.Hour)
			synctest.Wait() // what the players wrote is seen from here on
			for i, p := range tb.players[3:] {
				if ended[i+3] != nil || p.finished == nil || len(p.outcomes) < 2 {
					t.Errorf("seed %d: honest device %d: %v, outcomes %v", seed, i+3, ended[i+3], p.outcomes)
				}
			}
			if l, err := tb.c.store.Ledger(); err != nil || len(l.Entries) < 2 {
				t.Errorf("seed %d: %d entries, %v", seed, len(l.Entries), err)
			}
			for _, p := range tb.players {
				p.conn.CloseNow()
			}
			tb.allEnd(tb.wg.Wait)
		})
		if err != nil {
			t.Errorf("seed %d: Run ended with %v", seed, err)
		}
	}
}

// mischief bends what a device sends.
func mischief(tb *table, r *rand.Rand) func(*player, int, wire.Message) (wire.Message, bool) {
	return func(p *player, turn int, m wire.Message) (wire.Message, bool) {
		ctx, cancel := context.WithTimeout(tb.ctx, time.Second)
		defer cancel()
		switch r.IntN(9) {
		case 0: // twice
			_ = p.send(ctx, m)
		case 1: // never
			return nil, false
		case 2: // and gone
			_ = p.send(ctx, m)
			return nil, true
		case 3: // gone
			return nil, true
		case 4: // another turn's number
			if tn, ok := m.(*wire.Turn); ok {
				bent := *tn
				bent.Number = uint8(1 + r.IntN(5))
				return &bent, false
			}
		case 5: // another round's number
			if tn, ok := m.(*wire.Turn); ok {
				bent := *tn
				bent.Round += uint64(r.IntN(3)) - 1
				return &bent, false
			}
		case 6: // one bit
			if tn, ok := m.(*wire.Turn); ok {
				bent := *tn
				bent.Payload = append([]byte(nil), tn.Payload...)
				bent.Payload[r.IntN(len(bent.Payload))] ^= 1 << r.IntN(8)
				return &bent, false
			}
		case 7: // it leaves the round
			return &wire.Refuse{Round: p.round, Code: wire.CodeTraining, Reason: "training failed"}, false
		}
		return m, false
	}
}
