package coordinator

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// TestHostilePace: one device that answers at the last moment sets the pace of no
// round once the coordinator has seen what the others need; and it is not shut out
// for it where that is within the job's own deadline.
func TestHostilePace(t *testing.T) {
	const n, rounds = 10, 6
	job := loud(n, rounds)
	job.Deadlines.Collect = 5 * time.Minute
	err := bubble(t, job, n, func(ctx context.Context, tb *table) {
		var wg sync.WaitGroup
		for i, p := range tb.players {
			takes := 20 * time.Second
			if i == 0 {
				takes = 299 * time.Second
			}
			p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
				if turn == 3 { // it reads on meanwhile
					time.AfterFunc(takes, func() { _ = p.send(ctx, m) })
					return nil, false
				}
				return m, false
			}
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait)
		var at []time.Duration
		for i := 0; ; i++ {
			p, j, ok := tb.progressOf(monitor.StateCommitted, i)
			if !ok {
				break
			}
			at, i = append(at, p.Elapsed), j
		}
		at = slices.Compact(at)
		want := []time.Duration{299 * time.Second, 598 * time.Second, 897 * time.Second, 957 * time.Second}
		if len(at) != rounds || !slices.Equal(at[:4], want) || at[rounds-1] > want[3]+2*time.Minute {
			t.Errorf("rounds were committed at %v, the first at %v", at, want)
		}
		if d := tb.c.fleet.Of(tb.players[0].id()); d.Excluded || d.Strikes != 0 {
			t.Errorf("the slow device: %+v", d.Standing)
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}
