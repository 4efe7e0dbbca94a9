package coordinator

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
)

// excludedAs returns why a device is excluded in the folder's store; "" where it
// is not.
func excludedAs(t *testing.T, dir string, p *player) string {
	t.Helper()
	f, err := store.OpenFleet(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	devices, err := f.Devices()
	if err != nil {
		t.Fatal(err)
	}
	id := p.id()
	for _, d := range devices {
		if strings.HasPrefix(d.Identity, short(id)) {
			return d.Excluded
		}
	}
	return ""
}

// turn2 lets a player bend its shares.
func turn2(t *testing.T, bend func(m *secagg.Shares)) func(*player, int, wire.Message) (wire.Message, bool) {
	return func(p *player, at int, m wire.Message) (wire.Message, bool) {
		turn, ok := m.(*wire.Turn)
		if at != 2 || !ok {
			return m, false
		}
		var s secagg.Shares
		if err := s.UnmarshalBinary(turn.Payload); err != nil {
			t.Error(err)
		}
		bend(&s)
		b, err := s.AppendBinary(nil)
		if err != nil {
			t.Error(err)
		}
		turn.Payload = b
		return turn, false
	}
}

// TestHostileDealer: who deals garbage costs one round, not all of them: it is
// excluded by name, stays so after a restart, and never gets a plan again.
func TestHostileDealer(t *testing.T) {
	const n = 5
	job := loud(n, 3)
	dir, base := t.TempDir(), tinyBase(t)
	tb := setTable(t, Config{Job: job, Dir: dir, Base: base}, n, func(i int, p *player) {
		p.delta = fixedDelta(0.05)
		if i == 2 {
			p.before = turn2(t, func(m *secagg.Shares) { clear(m.Sealed) })
		}
	})
	dealer := tb.players[2]
	if err := tb.run(); err != nil && !dealerTold(dealer) {
		t.Fatal(err)
	}
	l, err := store.ReadLedger(dir)
	if err != nil || len(l.Entries) != 4 || l.Entries[0].Event.Kind != dp.KindCharged {
		t.Errorf("%d entries, want one charged and three released; %v", len(l.Entries), err)
	}
	if res := tb.c.Result(); res.Rounds != 3 || len(dealer.plans) != 1 {
		t.Errorf("%d rounds; the dealer got %d plans", res.Rounds, len(dealer.plans))
	}
	if why := excludedAs(t, dir, dealer); !strings.Contains(why, "garbage") {
		t.Errorf("excluded because %q", why)
	}
	if !dealerTold(dealer) {
		t.Errorf("it was told %v", dealer.errs)
	}
	for i, p := range tb.players {
		if i != 2 && excludedAs(t, dir, p) != "" {
			t.Errorf("player %d is excluded: %s", i, excludedAs(t, dir, p))
		}
	}
	c, err := New(Config{Job: job, Dir: dir, Base: base, Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if d := c.fleet.Of(dealer.id()); !d.Out || c.fleet.Active() != n-1 {
		t.Errorf("after a restart it is drawn again: %+v", d)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// dealerTold reports whether a player was told that it is excluded.
func dealerTold(p *player) bool {
	return slices.ContainsFunc(p.errs, func(e *wire.Error) bool {
		return e.Code == wire.CodeEnrolment && strings.Contains(e.Text, "excluded")
	})
}

// TestHostileCommitments: commitments that are no points end their sender's part in
// turn 2, so that its shard does not fail by them, and in the fleet.
func TestHostileCommitments(t *testing.T) {
	const n = 5
	dir := t.TempDir()
	tb := setTable(t, Config{Job: loud(n, 2), Dir: dir}, n, func(i int, p *player) {
		p.delta = fixedDelta(0.05)
		if i == 1 {
			p.before = turn2(t, func(m *secagg.Shares) {
				copy(m.Commit, bytes.Repeat([]byte{0xff}, 32))
				m.Commit[0] = 2
			})
		}
	})
	if err := tb.run(); err != nil && !dealerTold(tb.players[1]) {
		t.Fatal(err)
	}
	if res := tb.c.Result(); res.Rounds != 2 || res.Abandoned != 0 || math.Abs(moved(tb)-0.08) > 0.008 {
		t.Errorf("%+v, moved by %v, want 0.08", res, moved(tb))
	}
	if why := excludedAs(t, dir, tb.players[1]); !strings.Contains(why, "commitment") || len(tb.players[1].plans) != 1 {
		t.Errorf("excluded because %q, after %d plans", why, len(tb.players[1].plans))
	}
}

// TestHostileRevealer: wrong shares of everybody are left out, and their sender is
// excluded at once.
func TestHostileRevealer(t *testing.T) {
	const n = 6
	dir := t.TempDir()
	tb := setTable(t, Config{Job: loud(n, 2), Dir: dir}, n, func(i int, p *player) {
		p.delta = fixedDelta(0.05)
		if i == 3 {
			p.before = func(p *player, at int, m wire.Message) (wire.Message, bool) {
				turn, ok := m.(*wire.Turn)
				if at != 5 || !ok {
					return m, false
				}
				var r secagg.Reveal
				if err := r.UnmarshalBinary(turn.Payload); err != nil {
					t.Error(err)
				}
				for k := 0; k < len(r.Shares); k += 32 {
					r.Shares[k] ^= 1
				}
				turn.Payload, _ = r.AppendBinary(nil)
				return turn, false
			}
		}
	})
	liar := tb.players[3]
	if err := tb.run(); err != nil && !dealerTold(liar) {
		t.Fatal(err)
	}
	if res := tb.c.Result(); res.Rounds != 2 || res.Abandoned != 0 {
		t.Errorf("%+v", res)
	}
	// Whether its shares were asked for is chance: shares of the first t are.
	if why := excludedAs(t, dir, liar); why != "" && !strings.Contains(why, "wrong shares") {
		t.Errorf("excluded because %q", why)
	}
	for i, p := range tb.players {
		if i != 3 && excludedAs(t, dir, p) != "" {
			t.Errorf("player %d is framed: %s", i, excludedAs(t, dir, p))
		}
	}
}

// TestHostileBomb: whose vector leaves the range behind its mask costs the round
// its own shard and nothing else, and is found by the company it keeps.
func TestHostileBomb(t *testing.T) {
	const n = 16
	job := loud(n, 30)
	job.Shard.Size = 16
	dir := t.TempDir()
	tb := setTable(t, Config{Job: job, Dir: dir}, n, func(i int, p *player) {
		if i == 5 {
			p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
				if u, ok := m.(*wire.Update); ok {
					for k := len(u.Data) / 2; k < len(u.Data); k++ {
						u.Data[k] ^= 0xa5
					}
				}
				return m, false
			}
		}
	})
	bomber := tb.players[5]
	if err := tb.run(); err != nil && !dealerTold(bomber) {
		t.Fatal(err)
	}
	res := tb.c.Result()
	if res.Rounds != 30 || res.Abandoned > 1 { // the first has one shard of all
		t.Errorf("%d rounds, %d abandoned", res.Rounds, res.Abandoned)
	}
	if why := excludedAs(t, dir, bomber); !strings.Contains(why, "out of range") || len(bomber.plans) > 10 {
		t.Errorf("excluded because %q, after %d rounds", why, len(bomber.plans))
	}
	for i, p := range tb.players {
		if i != 5 && excludedAs(t, dir, p) != "" {
			t.Errorf("player %d is excluded: %s", i, excludedAs(t, dir, p))
		}
	}
}

// TestHostileBombOverRestarts: what alarms say of devices is known to the process that
// comes after.
func TestHostileBombOverRestarts(t *testing.T) {
	const n = 16
	job := loud(n, 2) // the first has one shard of all, another proves nothing yet
	job.Shard.Size = 16
	dir, base := t.TempDir(), tinyBase(t)
	tb := setTable(t, Config{Job: job, Dir: dir, Base: base}, n, func(i int, p *player) {
		if i == 5 {
			p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
				if u, ok := m.(*wire.Update); ok {
					for k := len(u.Data) / 2; k < len(u.Data); k++ {
						u.Data[k] ^= 0xa5
					}
				}
				return m, false
			}
		}
	})
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Job: job, Dir: dir, Base: base, Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before, err := tb.c.trace.Text()
	if err != nil {
		t.Fatal(err)
	}
	after, err := c.trace.Text()
	if err != nil || after != before || !strings.Contains(before, `"On":true`) || strings.Count(before, "[-")+strings.Count(before, ":[") < n {
		t.Errorf("the trace was %s, after the restart it is %s, %v", before, after, err)
	}
	if c.shardLimit() != job.Shard.Floor {
		t.Error("the shards are as large again as if nothing had been")
	}
}

// TestHostileGarbage: what decodes to nothing, in whatever turn, costs the others
// nothing and its sender a strike a round; the third puts it out of the fleet. Garbage
// in place of shares, which others have waited for, does at once.
func TestHostileGarbage(t *testing.T) {
	const n, v = 6, 0.05
	for turn := 1; turn <= 5; turn++ {
		dir := t.TempDir()
		tb := setTable(t, Config{Job: loud(n, 5), Dir: dir}, n, func(i int, p *player) {
			p.delta = fixedDelta(v)
			if i != 4 {
				return
			}
			p.before = func(p *player, at int, m wire.Message) (wire.Message, bool) {
				if at != turn {
					return m, false
				}
				if u, ok := m.(*wire.Update); ok {
					u.Data, u.Total = []byte("garbage"), 7
					return u, false
				}
				garbage := &wire.Turn{Round: p.round, Number: uint8(turn), Payload: []byte("garbage")}
				for range 2 { // said again at once
					_ = p.send(context.Background(), garbage)
				}
				return garbage, false
			}
		})
		vandal := tb.players[4]
		if err := tb.run(); err != nil && !dealerTold(vandal) {
			t.Fatalf("turn %d: %v", turn, err)
		}
		if res := tb.c.Result(); res.Rounds != 5 || res.Abandoned != 0 {
			t.Errorf("turn %d: %d rounds, %d abandoned", turn, res.Rounds, res.Abandoned)
		}
		rounds := maxStrikes
		if turn == 5 {
			rounds = 1
		}
		if why := excludedAs(t, dir, vandal); why == "" || len(vandal.plans) != rounds {
			t.Errorf("turn %d: excluded because %q, after %d rounds", turn, why, len(vandal.plans))
		}
		for i, p := range tb.players {
			if i != 4 && excludedAs(t, dir, p) != "" {
				t.Errorf("turn %d: player %d is excluded: %s", turn, i, excludedAs(t, dir, p))
			}
		}
	}
}

// TestHostileSilence: a device that is there and lets three rounds pass is in no
// draw any more; where most are silent it is nobody's fault.
func TestHostileSilence(t *testing.T) {
	for silent, out := range map[int]bool{1: true, 4: false} {
		job := loud(6, 80)
		job.Deadlines.Key = 10 * time.Second
		job.Deadlines.Reconnect = time.Second
		job.Cohort.MaxAbandoned = 1000
		err := bubble(t, job, 6, func(ctx context.Context, tb *table) {
			for i, p := range tb.players {
				if i < silent {
					p.before = func(_ *player, turn int, m wire.Message) (wire.Message, bool) {
						if turn == 1 {
							return nil, false
						}
						return m, false
					}
				} else {
					p.before = func(_ *player, turn int, m wire.Message) (wire.Message, bool) {
						if turn == 3 {
							time.Sleep(time.Second)
						}
						return m, false
					}
				}
			}
			var wg sync.WaitGroup
			for _, p := range tb.players {
				wg.Go(func() { _ = p.play(ctx) })
			}
			if out {
				tb.allEnd(wg.Wait)
			} else {
				time.Sleep(20 * time.Minute)
			}
			for i, p := range tb.players {
				if got := tb.c.fleet.Of(p.id()).Excluded; got != (out && i < silent) {
					t.Errorf("%d silent: player %d excluded %t", silent, i, got)
				}
			}
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%d silent: Run ended with %v", silent, err)
		}
	}
}

// TestHostileLeavers: strangers that leave in every round, politely, end no job of
// a coordinator that serves: it waits, and goes on when they have gone.
func TestHostileLeavers(t *testing.T) {
	job := loud(4, 2)
	job.Cohort.MaxAbandoned = 3
	err := bubbleWith(t, Config{Job: job, Patient: true}, 4, func(ctx context.Context, tb *table) {
		rounds := map[uint64]bool{}
		var mu sync.Mutex
		for _, p := range tb.players {
			p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
				mu.Lock()
				defer mu.Unlock()
				rounds[p.round] = true
				if turn == 1 && len(rounds) <= 8 {
					return &wire.Refuse{Round: p.round, Code: 300, Reason: "no"}, false
				}
				return m, false
			}
		}
		var wg sync.WaitGroup
		for _, p := range tb.players {
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait)
		if got := tb.c.Result(); got.Rounds != 2 || got.Abandoned != 8 {
			t.Errorf("%d rounds, %d abandoned", got.Rounds, got.Abandoned)
		}
		if took := tb.c.Status().Elapsed; took < 30*time.Minute {
			t.Errorf("eight rounds in a row were tried within %v", took)
		}
		for _, p := range tb.players {
			if p.finished == nil {
				t.Error("a device was not told that the job is done")
			}
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// TestHostileDribblers: devices that begin an update and do not go on fill no room
// that honest ones need: those that began first go first.
func TestHostileDribblers(t *testing.T) {
	const n, v = 7, 0.05
	job := loud(n, 1)
	err := bubble(t, job, n, func(ctx context.Context, tb *table) {
		tb.c.maxPending = 500 // two updates, and not three
		var wg sync.WaitGroup
		for i, p := range tb.players {
			p.delta = fixedDelta(v)
			p.before = func(_ *player, turn int, m wire.Message) (wire.Message, bool) {
				u, ok := m.(*wire.Update)
				switch {
				case !ok:
				case i < 3:
					if 2*u.Total > 500 || 3*u.Total <= 500 {
						t.Errorf("an update has %d bytes", u.Total)
					}
					u.Data = u.Data[:len(u.Data)-1]
				default:
					time.Sleep(time.Duration(i) * time.Second)
				}
				return m, false
			}
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait)
		if got, want := moved(tb), v*4.0/n; math.Abs(got-want) > 0.004 {
			t.Errorf("moved by %v, want %v: the four honest updates", got, want)
		}
		if res := tb.c.Result(); res.Rounds != 1 || res.Dropped != 3 {
			t.Errorf("%+v", res)
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// Who is excluded leaves the population once: at the third strike, or at once where
// it is proven.
func TestExclusionCounts(t *testing.T) {
	c, err := New(Config{Job: tinyJob(4), Dir: t.TempDir(), Base: tinyBase(t), Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range 3 {
		id := [32]byte{byte(i + 1)}
		if _, err := c.store.Enrol(id, 0); err != nil {
			t.Fatal(err)
		}
		c.addDevice(id)
	}
	devices := c.fleet.All()
	slow, proven := devices[0], devices[1]
	for n := 1; n <= maxStrikes; n++ {
		if slow.Out || slow.Excluded || c.fleet.Active() != 3 {
			t.Errorf("excluded after %d strikes, %d active", n-1, c.fleet.Active())
		}
		c.strike(slow, uint64(n), "slow", false)
	}
	if !slow.Out || !slow.Excluded || c.fleet.Active() != 2 {
		t.Errorf("after %d strikes: %+v, %d active", maxStrikes, slow.Standing, c.fleet.Active())
	}
	c.strike(slow, 9, "slow", true)
	if c.fleet.Active() != 2 {
		t.Errorf("it left twice: %d active", c.fleet.Active())
	}
	if c.strike(proven, 1, "garbage", true); !proven.Out || !proven.Excluded || c.fleet.Active() != 1 {
		t.Errorf("proven: %+v, %d active", proven.Standing, c.fleet.Active())
	}
	if devices[2].Out || c.broken != nil {
		t.Errorf("%+v, %v", devices[2], c.broken)
	}
}
