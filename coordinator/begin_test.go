package coordinator

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// fewer plays a job of six devices of which four have enrolled; told is called once all four wait.
func fewer(t *testing.T, job Job, told func(ctx context.Context, tb *table)) *table {
	t.Helper()
	var out *table
	err := bubble(t, job, 4, func(ctx context.Context, tb *table) {
		out = tb
		var wg sync.WaitGroup
		for _, p := range tb.players {
			wg.Go(func() { _ = p.play(ctx) })
		}
		synctest.Wait()
		told(ctx, tb)
		tb.allEnd(wg.Wait)
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if got := out.c.Result(); got.Rounds != job.Rounds || got.Abandoned != 0 {
		t.Errorf("result %+v", got)
	}
	return out
}

// waitedFor is the last reason for which the job waited.
func (tb *table) waitedFor() (reason string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, p := range tb.seen {
		if p.State == "waiting" {
			reason = p.Reason
		}
	}
	return reason
}

func (tb *table) rounds() int { return tb.c.Result().Rounds }

// A job begins with the devices that cohort.start asks for.
func TestBeginsWithFewer(t *testing.T) {
	for _, start := range []float64{4, 0.6} {
		job := loud(6, 3)
		job.Cohort.Start = start
		fewer(t, job, func(context.Context, *table) {})
	}
}

// It begins with those that are there once cohort.start_within is over, and says when.
func TestBeginsAfterAWhile(t *testing.T) {
	job := loud(6, 3)
	job.Cohort.StartWithin = time.Hour
	fewer(t, job, func(ctx context.Context, tb *table) {
		if n, said := tb.rounds(), tb.waitedFor(); n != 0 || !strings.HasPrefix(said, "4 of 6 devices have enrolled; from 2000-01-01 01:00 UTC on") {
			t.Errorf("%d rounds, waits for %q", n, said)
		}
	})
}

// An operator has it begin; until then it says whom it waits for.
func TestBeginsByAnOperator(t *testing.T) {
	job := loud(6, 3)
	fewer(t, job, func(ctx context.Context, tb *table) {
		f, err := store.OpenFleet(tb.c.cfg.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Invite("Ada's laptop", 1, 24*time.Hour); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * musterEvery)
		synctest.Wait()
		want := "4 of 6 devices have enrolled; they could begin now (starling job begin); 1 invitations are open: Ada's laptop"
		if n, said := tb.rounds(), tb.waitedFor(); n != 0 || said != want {
			t.Errorf("%d rounds, waits for %q", n, said)
		}
		if err := f.As("Ben").Begin(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// No word and no deadline makes rounds of fewer devices than one needs.
func TestBeginsWithNoLessThanARound(t *testing.T) {
	job := loud(6, 1)
	job.Cohort.Floor, job.Cohort.StartWithin = 5, time.Minute
	fewer(t, job, func(ctx context.Context, tb *table) {
		time.Sleep(time.Hour)
		synctest.Wait()
		if n, said := tb.rounds(), tb.waitedFor(); n != 0 || !strings.HasSuffix(said, "; a round needs 5") {
			t.Errorf("%d rounds, waits for %q", n, said)
		}
		late := newPlayer(t, tb.token)
		if late.http = tb.players[0].http; late.dial(ctx) != nil {
			t.Fatal("the fifth device does not connect")
		}
		tb.players = append(tb.players, late)
		go func() { _ = late.play(ctx) }()
	})
}

// A device that enrols after the start is in the next round.
func TestLateDevicesTakePart(t *testing.T) {
	job := loud(6, 4)
	job.Cohort.Start = 4
	job.Deadlines.Gather = 10 * time.Second
	var late *player
	err := bubble(t, job, 4, func(ctx context.Context, tb *table) {
		late = newPlayer(t, tb.token)
		late.http = tb.players[0].http
		began := make(chan struct{})
		var once sync.Once
		var wg sync.WaitGroup
		tb.players[0].before = func(_ *player, turn int, m wire.Message) (wire.Message, bool) {
			if turn == 1 {
				once.Do(func() {
					close(began)
					time.Sleep(time.Second)
				})
			}
			return m, false
		}
		for _, p := range tb.players {
			wg.Go(func() { _ = p.play(ctx) })
		}
		wg.Go(func() {
			<-began
			if err := late.dial(ctx); err != nil {
				t.Error(err)
				return
			}
			_ = late.play(ctx)
		})
		tb.allEnd(wg.Wait)
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if n := len(late.plans); n != 3 {
		t.Errorf("a device that came in the first of four rounds was in %d", n)
	}
}
