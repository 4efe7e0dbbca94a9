package coordinator

import (
	"context"
	"errors"
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
		if got, err := f.As("Ben").Begin(); err != nil || got.Enrolled != 4 || got.Least != 3 {
			t.Fatalf("%+v, %v", got, err)
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

// Devices that wait for the first round are told for how many and until when, again as more come, and never by
// name; in a job that hides identities they are not told how many there are.
func TestDevicesHearWhomTheJobAwaits(t *testing.T) {
	for _, anonymous := range []bool{false, true} {
		job := loud(6, 1)
		job.Cohort.Start, job.Cohort.StartWithin, job.Shard.Anonymous = 5, time.Hour, anonymous
		fewer(t, job, func(ctx context.Context, tb *table) {
			f, err := store.OpenFleet(tb.c.cfg.Dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := f.Invite("Ada's laptop", 1, 24*time.Hour); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * tellWaitingEvery)
			synctest.Wait()
			const want = "4 of 6 devices have enrolled; rounds begin with 5; from 2000-01-01 01:00 UTC on with those that have"
			for i, p := range tb.players {
				p.mu.Lock()
				if said := p.waitedFor; said != want && !anonymous || said != "" && anonymous || p.waits > 2 {
					t.Errorf("anonymous %v: device %d hears %d times, at last %q", anonymous, i, p.waits, said)
				}
				p.mu.Unlock()
			}
			if b := tb.c.Status().Beginning; b == nil || b.Enrolled != 4 || b.With != 5 || b.Least != 3 || b.Due != 946688400 || !b.ByWord || b.Open != 1 || len(b.Awaited) != 1 {
				t.Errorf("operators see %+v", b)
			}
			time.Sleep(time.Hour)
		})
	}
}

// What is said to the operator who has a job begin follows from who has enrolled, and holds.
func TestBeginPromisesNothingFalse(t *testing.T) {
	job := loud(6, 1)
	job.Cohort.Floor = 5
	tb := fewer(t, job, func(ctx context.Context, tb *table) {
		f, err := store.OpenFleet(tb.c.cfg.Dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		said := func(want string) {
			t.Helper()
			if b, err := f.Begin(); err != nil || b.String() != want {
				t.Errorf("%q, %v, want %q", b, err, want)
			}
		}
		said("noted: 4 devices have enrolled and a round needs 5; rounds begin as soon as that many have")
		if err := f.As("Ben").Pause("holidays"); err != nil {
			t.Fatal(err)
		}
		said("noted, but the job is paused by Ben: no round is drawn until it is resumed")
		if err := f.Resume(); err != nil {
			t.Fatal(err)
		}
		late := newPlayer(t, tb.token)
		if late.http = tb.players[0].http; late.dial(ctx) != nil {
			t.Fatal("the fifth device does not connect")
		}
		said("5 devices have enrolled: while the job is served, rounds begin within ten seconds, as soon as 5 of them are connected")
		tb.players = append(tb.players, late)
		go func() { _ = late.play(ctx) }()
	})
	f, err := store.OpenFleet(tb.c.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Begin(); !errors.Is(err, store.ErrRequest) || !strings.Contains(err.Error(), "rounds have begun") {
		t.Errorf("of a job that is over: %v", err)
	}
}
