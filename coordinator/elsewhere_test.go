package coordinator

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/secagg"
)

// TestElsewhere: wherever shards' masks are added up, by one that answers, fails, falls silent
// or lies, rounds release the same bits and charge the same; who lied once is asked no more.
func TestElsewhere(t *testing.T) {
	const n, shards, rounds = 12, 3, 2
	var calls atomic.Int32
	var want []byte
	for name, c := range map[string]struct {
		by    func(ctx context.Context, m *secagg.Masks) ([]uint32, error)
		calls int32
	}{
		"": {nil, 0},
		"honest": {func(_ context.Context, m *secagg.Masks) ([]uint32, error) {
			b, _ := m.AppendBinary(nil)
			var there secagg.Masks
			if err := there.UnmarshalBinary(b); err != nil {
				return nil, err
			}
			return m.Unpack(m.Pack(there.Sum()))
		}, shards * rounds},
		"failing": {func(context.Context, *secagg.Masks) ([]uint32, error) { return nil, errors.New("nobody is there") }, shards * rounds},
		"silent": {func(ctx context.Context, _ *secagg.Masks) ([]uint32, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, shards * rounds},
		"lying": {func(_ context.Context, m *secagg.Masks) ([]uint32, error) {
			sum := m.Sum()
			sum[1] ^= 1
			return sum, nil
		}, shards},
	} {
		t.Run(name, func(t *testing.T) {
			calls.Store(0)
			run := func(by func(context.Context, *secagg.Masks) ([]uint32, error)) (adapter []byte) {
				job := tinyJob(n)
				job.Rounds, job.Shard.Size, job.Shard.Floor, job.Cohort.Floor = rounds, 4, 3, 9
				cfg := Config{Job: job, Seed: bytes.Repeat([]byte{7}, 32)}
				if by != nil {
					cfg.SumMasks = func(ctx context.Context, m *secagg.Masks) ([]uint32, error) {
						calls.Add(1)
						return by(ctx, m)
					}
				}
				var gone atomic.Bool
				err := bubbleWith(t, cfg, n, func(ctx context.Context, tb *table) {
					tb.c.recheck = 1
					var wg sync.WaitGroup
					for _, p := range tb.players {
						p.before = func(_ *player, turn int, m wire.Message) (wire.Message, bool) {
							return m, turn == 3 && gone.CompareAndSwap(false, true)
						}
						wg.Go(func() {
							for errors.Is(p.run(ctx), errHungUp) {
								time.Sleep(time.Minute) // longer than it is waited for
							}
						})
					}
					tb.allEnd(wg.Wait)
					res := tb.c.Result()
					l, err := tb.c.store.Ledger()
					if err != nil || res.Rounds != rounds || len(l.Entries) != rounds || res.Dropped != 1 {
						t.Errorf("%d rounds, %d charged, %d dropped, %v", res.Rounds, len(l.Entries), res.Dropped, err)
					}
					if adapter, err = model.EncodeAdapter(res.Adapter); err != nil {
						t.Error(err)
					}
				})
				if err != nil {
					t.Errorf("Run ended with %v", err)
				}
				return adapter
			}
			if want == nil {
				want = run(nil)
			}
			if got := run(c.by); !bytes.Equal(got, want) {
				t.Error("another adapter than of one process alone")
			}
			if calls.Load() != c.calls {
				t.Errorf("asked %d times, want %d", calls.Load(), c.calls)
			}
		})
	}
}
