package coordinator

import (
	"bytes"
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// late plays a round of three shards of four, one device of shard 1 sending its
// shares 12 s late. It returns when each player revealed, when the round was
// committed, and what the ledger was charged.
func late(t *testing.T, enough float64) (revealed map[*player]time.Duration, committed time.Duration, event dp.Event, res monitor.Result, change float64) {
	const n, v = 12, 0.05
	job := loud(n, 1)
	job.Shard.Size, job.Shard.Floor, job.Cohort.Floor = 4, 3, n
	job.Deadlines.Enough, job.Deadlines.Grace = enough, 2*time.Second
	revealed = map[*player]time.Duration{}
	err := bubble(t, job, n, func(ctx context.Context, tb *table) {
		began := time.Now()
		var mu sync.Mutex
		var slow *player
		var wg sync.WaitGroup
		for _, p := range tb.players {
			p.delta = fixedDelta(v)
			p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
				mu.Lock()
				if turn == 2 && p.shard == 1 && slow == nil {
					slow = p
				}
				wait := turn == 2 && slow == p
				if turn == 5 {
					revealed[p] = time.Since(began)
				}
				mu.Unlock()
				if wait {
					time.Sleep(12 * time.Second)
				}
				return m, false
			}
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait)
		l, err := tb.c.store.Ledger()
		if err != nil || len(l.Entries) != 1 {
			t.Fatalf("%d entries, %v", len(l.Entries), err)
		}
		event, res, change = l.Entries[0].Event, tb.c.Result(), moved(tb)
		over, _, ok := tb.progressOf(monitor.StateCommitted, 0)
		if !ok {
			t.Fatal("nothing was committed")
		}
		first, _, _ := tb.progressOf("keying", 0)
		committed = over.Elapsed - first.Elapsed
	})
	if err != nil {
		t.Fatalf("Run ended with %v", err)
	}
	return revealed, committed, event, res, change
}

// TestShardsDoNotWait: while a shard waits for a slow device the others run to
// their end; where enough of them have, the slow device costs itself and nobody
// else, and what the round is charged is the same.
func TestShardsDoNotWait(t *testing.T) {
	revealed, committed, all, res, change := late(t, 1)
	if committed != 12*time.Second || res.Rounds != 1 || res.Dropped != 0 || math.Abs(change-0.05) > 0.004 {
		t.Errorf("all are waited for: took %v, moved by %v, %+v", committed, change, res)
	}
	soon := 0
	for _, at := range revealed {
		if at < 12*time.Second {
			soon++
		}
	}
	if len(revealed) != 12 || soon != 8 {
		t.Errorf("%d devices revealed, %d of them without waiting for the slow one", len(revealed), soon)
	}

	revealed, committed, some, res, change := late(t, 0.6)
	if committed != 2*time.Second || res.Rounds != 1 || res.Dropped != 1 || math.Abs(change-0.05*11/12) > 0.004 {
		t.Errorf("two shards are enough: took %v, moved by %v, %+v", committed, change, res)
	}
	if len(revealed) != 11 {
		t.Errorf("%d devices revealed", len(revealed))
	}
	all.Certificate, some.Certificate = [32]byte{}, [32]byte{} // of two runs' coins
	a, err := all.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	b, err := some.MarshalBinary()
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("charged %+v with all shards in time, %+v with one late (%v)", all, some, err)
	}
}
