package coordinator

import (
	"context"
	"encoding"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/internal/wire"
	"github.com/starling-fl/starling/secagg"
)

// Every message comes back from exactly one call, in a batch of at most settleMost,
// after settleWait at the latest, and at once when the round is over.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, over := context.WithCancel(t.Context())
		var b batches
		var mu sync.Mutex
		var sizes []int
		seen := map[round.Device]int{}
		var all sync.WaitGroup
		start := time.Now()
		send := func(first, n int) {
			for i := range n {
				all.Go(func() {
					got := b.add(ctx, judgedEvent{d: &device{n: round.Device(first + i)}})
					mu.Lock()
					defer mu.Unlock()
					if got != nil {
						sizes = append(sizes, len(got))
					}
					for _, ev := range got {
						seen[ev.d.n]++
					}
				})
			}
		}
		send(0, 2*settleMost)
		all.Wait()
		if time.Since(start) != 0 {
			t.Errorf("two full batches waited %v", time.Since(start))
		}
		send(1000, 3)
		all.Wait()
		if time.Since(start) != settleWait {
			t.Errorf("three messages waited %v, want %v", time.Since(start), settleWait)
		}
		send(2000, 5)
		over()
		all.Wait()
		if time.Since(start) != settleWait {
			t.Errorf("the end of the round waited")
		}
		for n, times := range seen {
			if times != 1 {
				t.Errorf("message %d came back %d times", n, times)
			}
		}
		if len(seen) != 2*settleMost+8 || slices.Max(sizes) != settleMost || slices.Max(sizes[:2]) != slices.Min(sizes[:2]) {
			t.Errorf("%d messages in batches of %v", len(seen), sizes)
		}
	})
}

// bent changes a turn's message on its way.
func bent[M any, P interface {
	*M
	encoding.BinaryUnmarshaler
	encoding.BinaryAppender
}](t *testing.T, number int, bend func(P)) func(*player, int, wire.Message) (wire.Message, bool) {
	return func(_ *player, at int, m wire.Message) (wire.Message, bool) {
		turn, ok := m.(*wire.Turn)
		if at != number || !ok {
			return m, false
		}
		v := P(new(M))
		if err := v.UnmarshalBinary(turn.Payload); err != nil {
			t.Error(err)
		}
		bend(v)
		var err error
		if turn.Payload, err = v.AppendBinary(nil); err != nil {
			t.Error(err)
		}
		return turn, false
	}
}

// TestHostileMessagesInABatch: in a batch with others' a wrong signature, or a commitment
// that is no point, costs its sender the round, and nobody else.
func TestHostileMessagesInABatch(t *testing.T) {
	const n = 12
	job := loud(n, 1)
	job.Cohort.Floor = n - 4
	err := bubble(t, job, n, func(ctx context.Context, tb *table) {
		tb.c.settleFrom = 1
		for i, bend := range []func(*player, int, wire.Message) (wire.Message, bool){
			bent(t, 1, func(m *secagg.Advertise) { m.Sign[40] ^= 1 }),
			bent(t, 1, func(m *secagg.Advertise) { m.Vouch[3] ^= 1 }),
			bent(t, 2, func(m *secagg.Shares) { copy(m.Commit, append([]byte{2}, make([]byte, 31)...)) }), // y = 2: no point
			bent(t, 4, func(m *secagg.Confirmation) { m.Sign[63] ^= 1 }),
		} {
			tb.players[3*i].before = bend
		}
		var all sync.WaitGroup
		for _, p := range tb.players {
			all.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(all.Wait)
		res := tb.c.Result()
		if res.Rounds != 1 || res.Abandoned != 0 || res.Dropped != 4 || tb.c.metrics.faults.Load() != 4 {
			t.Errorf("%d rounds, %d abandoned, %d dropped, %d faults", res.Rounds, res.Abandoned, res.Dropped, tb.c.metrics.faults.Load())
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}
