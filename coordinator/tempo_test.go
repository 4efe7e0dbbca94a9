package coordinator

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/internal/wire"
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

// TestHostileHaste: devices that answer at once, as many as may be, cannot make a
// deadline under which more than a tenth of the honest ones would fall, whatever
// those need; and a tenth that is silent, or slow, cannot make one longer than
// three times what the rest need.
func TestHostileHaste(t *testing.T) {
	const least, own, size = 10 * time.Second, time.Hour, 100
	r := rand.New(rand.NewPCG(1, 2))
	for trial := range 2000 {
		n := 3 + r.IntN(200)
		liars := r.IntN(n)
		honest := make([]time.Duration, n-liars)
		for i := range honest {
			honest[i] = time.Duration(r.ExpFloat64() * float64(5*time.Minute))
		}
		slices.Sort(honest)
		tenth := max(1, n/10)
		var fast, slow tempo
		for range tempoRounds {
			a := answers{after: slices.Clone(honest)}
			for range liars {
				a.after = append(a.after, 0)
			}
			fast.note(round.Collecting, &a, own, size)
			b := answers{after: slices.Clone(honest), silent: r.IntN(tenth + 1)}
			for range min(liars, tenth-b.silent) {
				b.after = append(b.after, own)
			}
			if m := len(b.after) + b.silent; m < 3 || m/10 < tenth && tenth > 1 {
				continue // the liars are more than a tenth of those who came
			}
			slow.note(round.Collecting, &b, own, size)
		}
		limit := fast.limit(round.Collecting, least, own, size)
		cut := 0
		for _, t := range honest {
			if t > limit {
				cut++
			}
		}
		if cut > tenth {
			t.Fatalf("trial %d: %d of %d honest devices beside %d hasty ones would be cut off at %v", trial, cut, len(honest), liars, limit)
		}
		if most := max(least, tempoFactor*honest[len(honest)-1]); slow.limit(round.Collecting, least, own, size) > min(own, most) && len(slow.last[round.Collecting]) >= tempoRounds {
			t.Fatalf("trial %d: %v, though honest devices need %v", trial, slow.limit(round.Collecting, least, own, size), honest[len(honest)-1])
		}
	}
}

// TestTempo: the job's deadline holds until enough was seen, and again as soon as
// more than a tenth are silent; a larger vector has as much longer.
func TestTempo(t *testing.T) {
	var tm tempo
	all := func(d time.Duration, silent int) *answers {
		return &answers{after: slices.Repeat([]time.Duration{d}, 10-silent), silent: silent}
	}
	is := func(size int, want time.Duration) {
		t.Helper()
		if got := tm.limit(round.Collecting, 10*time.Second, 5*time.Minute, size); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	for range tempoRounds {
		is(100, 5*time.Minute)
		tm.note(round.Collecting, all(20*time.Second, 0), 5*time.Minute, 100)
	}
	is(100, time.Minute)
	is(50, time.Minute)
	is(200, 2*time.Minute)
	is(2000, 5*time.Minute)
	tm.note(round.Collecting, all(20*time.Second, 1), 5*time.Minute, 100)
	is(100, time.Minute)
	tm.note(round.Collecting, all(20*time.Second, 2), 5*time.Minute, 100)
	is(100, 5*time.Minute)
	for range tempoWindow {
		tm.note(round.Collecting, all(time.Second, 0), 5*time.Minute, 100)
	}
	is(100, 10*time.Second)
}
