package coordinator

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// began returns when each round began to gather and when it was over.
func (tb *table) gatherings() (took []time.Duration) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	began := map[uint64]time.Duration{}
	for _, p := range tb.seen {
		switch at, seen := began[p.Round]; {
		case p.State == "gathering" && !seen:
			began[p.Round] = p.Elapsed
		case p.State == "keying" && seen:
			took = append(took, p.Elapsed-at)
			delete(began, p.Round)
		}
	}
	return took
}

// An identity that this process has not seen is waited for until Gather after
// the start and never again, however long the job runs.
func TestGhostsCostNothing(t *testing.T) {
	job := loud(5, 4)
	job.Deadlines.Gather, job.Deadlines.Reconnect = 30*time.Second, 5*time.Second
	dir, base := t.TempDir(), tinyBase(t)
	c, err := New(Config{Job: job, Dir: dir, Base: base, Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.store.Enrol(newPlayer(t, wire.Token{}).id(), 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	err = bubbleIn(t, dir, base, job, 4, func(ctx context.Context, tb *table) {
		var wg sync.WaitGroup
		for _, p := range tb.players {
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait)
		if got := tb.gatherings(); !slices.Equal(got, []time.Duration{30 * time.Second, 0, 0, 0}) {
			t.Errorf("rounds gathered for %v", got)
		}
		if got := tb.c.Result(); got.Rounds != 4 || got.Abandoned != 0 {
			t.Errorf("result %+v", got)
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// A coordinator that was killed waits for a few who were away before only as long as for
// a round's last shards, once nearly all of the others are back.
func TestWhoWasAwayHoldsUpNoRestart(t *testing.T) {
	const back = 19
	job := loud(back+1, 3)
	job.Deadlines.Gather, job.Deadlines.Reconnect, job.Deadlines.Grace = 30*time.Second, 5*time.Second, 4*time.Second
	dir, base := t.TempDir(), tinyBase(t)
	c, err := New(Config{Job: job, Dir: dir, Base: base, Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.store.Enrol(newPlayer(t, wire.Token{}).id(), 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	err = bubbleIn(t, dir, base, job, back, func(ctx context.Context, tb *table) {
		var wg sync.WaitGroup
		for _, p := range tb.players {
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait)
		if got := tb.gatherings(); !slices.Equal(got, []time.Duration{4 * time.Second, 0, 0}) {
			t.Errorf("rounds gathered for %v", got)
		}
		if got := tb.c.Result(); got.Rounds != 3 || got.Abandoned != 0 {
			t.Errorf("result %+v", got)
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// A device that is connected and not ready is in no round, and after its first
// moments no round waits for it; once it is ready it is in the next.
func TestWhoIsNotReadyIsNotAwaited(t *testing.T) {
	job := loud(5, 6)
	job.Deadlines.Gather, job.Deadlines.Reconnect = 30*time.Second, 5*time.Second
	err := bubble(t, job, 4, func(ctx context.Context, tb *table) {
		fetching := newPlayer(t, tb.token)
		fetching.http, fetching.unready = tb.players[0].http, true
		if err := fetching.dial(ctx); err != nil {
			t.Fatal(err)
		}
		tb.players = append(tb.players, fetching)
		var wg sync.WaitGroup
		for i, p := range tb.players {
			if i == 0 { // every round takes two seconds of its training
				p.before = func(_ *player, turn int, m wire.Message) (wire.Message, bool) {
					if turn == 3 {
						time.Sleep(2 * time.Second)
					}
					return m, false
				}
			}
			wg.Go(func() { _ = p.play(ctx) })
		}
		time.Sleep(10 * time.Second) // in the third round's training
		if err := fetching.send(ctx, &wire.Ready{}); err != nil {
			t.Fatal(err)
		}
		tb.allEnd(wg.Wait)
		if got := tb.gatherings(); !slices.Equal(got, []time.Duration{5 * time.Second, 0, 0, 0, 0, 0}) {
			t.Errorf("rounds gathered for %v", got)
		}
		if len(fetching.plans) != 3 || fetching.plans[0].Version != 3 {
			t.Errorf("the device that was ready in the third round got %d plans", len(fetching.plans))
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// A device that hangs costs one round its deadline, and no other.
func TestWhoHangsIsNotAwaitedAgain(t *testing.T) {
	for turn, deadline := range map[int]time.Duration{1: 11 * time.Second, 3: 40 * time.Second, 5: 13 * time.Second} {
		job := loud(4, 4)
		job.Deadlines.Key, job.Deadlines.Collect, job.Deadlines.Unmask = 11*time.Second, 40*time.Second, 13*time.Second
		err := bubble(t, job, 4, func(ctx context.Context, tb *table) {
			hung := tb.players[3]
			hung.before = func(_ *player, at int, m wire.Message) (wire.Message, bool) {
				if at >= turn {
					return nil, false
				}
				return m, false
			}
			hung.unready = true // it does not say so again
			var wg sync.WaitGroup
			for _, p := range tb.players {
				wg.Go(func() { _ = p.play(ctx) })
			}
			tb.allEnd(wg.Wait)
			if got := tb.c.Result(); got.Rounds != 4 || tb.c.Status().Elapsed != deadline {
				t.Errorf("turn %d: %d rounds in %v, want the one deadline of %v", turn, got.Rounds, tb.c.Status().Elapsed, deadline)
			} else if got.Dropped != 1 || got.Absent != 3 { // it left one round; from the others it stayed away
				t.Errorf("turn %d: %d dropped, %d absent", turn, got.Dropped, got.Absent)
			}
		})
		if err != nil {
			t.Errorf("turn %d: Run ended with %v", turn, err)
		}
	}
}

// One that lives, says that it is ready, and hangs at every training is taken
// into a round ever more rarely, and as often as the others once it works.
func TestWhoHangsAgainAndAgainRests(t *testing.T) {
	job := loud(4, 40)
	job.Deadlines.Collect = 40 * time.Second
	const works = 20
	var hangs int
	err := bubble(t, job, 4, func(ctx context.Context, tb *table) {
		slow := tb.players[3]
		slow.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
			if turn == 3 && p.plan.Version < works {
				hangs++
				return nil, false
			}
			return m, false
		}
		var wg sync.WaitGroup
		for i, p := range tb.players {
			if i == 0 {
				p.before = func(_ *player, turn int, m wire.Message) (wire.Message, bool) {
					if turn == 3 {
						time.Sleep(2 * time.Second)
					}
					return m, false
				}
			}
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait)
		synctest.Wait()
		// Two in a row, then after rests of about 1, 3, 7 rounds' time; those that it
		// held up take the longest.
		if hangs < 2 || hangs > 6 {
			t.Errorf("it held up %d of %d rounds", hangs, works)
		}
		worked := 0
		for _, o := range slow.outcomes {
			if o == wire.OutcomeCommitted {
				worked++
			}
		}
		if worked < 5 {
			t.Errorf("once it worked it was in %d of %d rounds", worked, 40-works)
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// A dropout that is alone in being waited for costs a tenth of the others' work.
func TestADropoutCostsATenth(t *testing.T) {
	job := loud(4, 1)
	job.Deadlines.Reconnect = 7 * time.Second
	err := bubble(t, job, 4, func(ctx context.Context, tb *table) {
		tb.players[0].before = func(_ *player, turn int, m wire.Message) (wire.Message, bool) {
			if turn == 3 {
				time.Sleep(4 * time.Second)
			}
			return m, false
		}
		tb.players[1].before = func(_ *player, turn int, m wire.Message) (wire.Message, bool) { return m, turn == 3 }
		var wg sync.WaitGroup
		for _, p := range tb.players {
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait)
		collecting, i, _ := tb.progressOf("collecting", 0)
		confirming, _, ok := tb.progressOf("confirming", i)
		if took := confirming.Elapsed - collecting.Elapsed; !ok || took != 4400*time.Millisecond {
			t.Errorf("collecting took %v beside 4s of work", took)
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// A shard that would fail without those who may come back waits for them.
func TestAShardWaitsForWhomItNeeds(t *testing.T) {
	job := loud(4, 1)
	job.Deadlines.Reconnect = 7 * time.Second
	err := bubble(t, job, 4, func(ctx context.Context, tb *table) {
		var wg sync.WaitGroup
		for i, p := range tb.players {
			if i < 3 {
				gone := false
				p.before = func(_ *player, turn int, m wire.Message) (wire.Message, bool) {
					cut := turn == 3 && !gone
					gone = gone || cut
					return m, cut
				}
			}
			wg.Go(func() {
				if err := p.play(ctx); err == nil {
					return
				}
				time.Sleep(5 * time.Second)
				_ = p.dial(ctx)
				_ = p.play(ctx)
			})
		}
		tb.allEnd(wg.Wait)
		if got := tb.c.Result(); got.Rounds != 1 || got.Dropped != 0 || tb.c.Status().Elapsed != 5*time.Second {
			t.Errorf("result %+v after %v", got, tb.c.Status().Elapsed)
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// All devices fetch a base for minutes: the job waits for them and loses no round.
func TestAllFetch(t *testing.T) {
	job := loud(4, 2)
	job.Cohort.MaxAbandoned = 1
	err := bubble(t, job, 0, func(ctx context.Context, tb *table) {
		var wg sync.WaitGroup
		for i := range 4 {
			p := newPlayer(t, tb.token)
			p.http, p.unready = tb.client, true
			if err := p.dial(ctx); err != nil {
				t.Fatal(err)
			}
			tb.players = append(tb.players, p)
			wg.Go(func() { _ = p.play(ctx) })
			wg.Go(func() {
				time.Sleep(6*time.Minute + time.Duration(i)*time.Second)
				_ = p.send(ctx, &wire.Ready{})
			})
		}
		tb.allEnd(wg.Wait)
		if got := tb.c.Result(); got.Rounds != 2 || got.Abandoned != 0 {
			t.Errorf("result %+v", got)
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// What has come in when a deadline passes came in time: the engine may have been
// busy, and a device must not be absent for that.
func TestADeadlineLetsInWhatHasCome(t *testing.T) {
	c := &Coordinator{sessions: sessions{events: make(chan event, 16)}}
	for range 16 {
		c.events <- leftEvent{&session{}}
	}
	// Each call takes one event or finds the deadline passed; that it took none but
	// one each time, 15 times in a row, has probability 2^-15.
	for range 15 {
		if err := c.pump(t.Context(), time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.events); n != 0 {
		t.Errorf("a deadline passed before %d events that had come", n)
	}
}

// TestAFailedShardBlamesNobodyWhoAnswered: who said all that was asked of it is not
// silent because too few others of its shard did.
func TestAFailedShardBlamesNobodyWhoAnswered(t *testing.T) {
	job := loud(8, 1)
	job.Shard.Size, job.Cohort.Floor = 4, 8
	var answered *player
	err := bubble(t, job, 8, func(ctx context.Context, tb *table) {
		var mu sync.Mutex
		for _, p := range tb.players {
			p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
				mu.Lock()
				defer mu.Unlock()
				if turn == 2 && p.shard == 0 {
					if answered != nil && answered != p {
						return nil, false
					}
					answered = p
				}
				return m, false
			}
		}
		var wg sync.WaitGroup
		for _, p := range tb.players {
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait)
		for _, p := range tb.players {
			want := 0
			if p.shard == 0 && p != answered {
				want = 1
			}
			if got := tb.c.fleet.Of(p.id()).Missed; got != want {
				t.Errorf("a device of shard %d, answered %t: silent %d times", p.shard, p == answered, got)
			}
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}
