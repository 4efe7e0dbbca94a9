package coordinator

import (
	"context"
	"encoding"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
)

// Every message leaves in exactly one batch, which is full at settleMost or settleBytes,
// and ripe settleWait after its first came.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b batch
		var left []round.Device
		next := 0
		add := func(bytes int) (full int) {
			next++
			all := b.add(judgement{d: &fleet.Device{N: round.Device(next)}}, bytes)
			for _, j := range all {
				left = append(left, j.d.N)
			}
			return len(all)
		}
		for i := range 2 * settleMost {
			if n := add(1); n != 0 && (n != settleMost || (i+1)%settleMost != 0) {
				t.Errorf("message %d: a batch of %d", i, n)
			}
		}
		if b.ripe() != nil {
			t.Error("an empty batch will be ripe")
		}
		for range 3 {
			if add(settleBytes/4) != 0 {
				t.Error("a batch that has room is full")
			}
		}
		if n := add(settleBytes / 4); n != 4 {
			t.Errorf("a batch of %d when the bytes are full", n)
		}
		if n := add(10 * settleBytes); n != 1 {
			t.Errorf("a batch of %d, of one large message", n)
		}
		start := time.Now()
		for range 5 {
			add(1)
			time.Sleep(settleWait / 10)
		}
		if <-b.ripe(); time.Since(start) != settleWait {
			t.Errorf("ripe after %v", time.Since(start))
		}
		for _, j := range b.take() {
			left = append(left, j.d.N)
		}
		if b.ripe() != nil || len(b.take()) != 0 {
			t.Error("something is left")
		}
		if len(left) != next || !slices.IsSorted(left) || len(slices.Compact(left)) != next {
			t.Errorf("%d messages left, of %d", len(left), next)
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
// that is not a point, costs its sender the round, and nobody else.
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
		if res.Rounds != 1 || res.Abandoned != 0 || res.Dropped != 4 || counted(t, tb.c.metrics.Faults) != 4 {
			t.Errorf("%d rounds, %d abandoned, %d dropped, %d faults", res.Rounds, res.Abandoned, res.Dropped, counted(t, tb.c.metrics.Faults))
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}
