package coordinator

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// beyond is a device's last word where a job is beyond its owner's limits.
var beyond = &wire.Error{Code: wire.CodePolicy, Text: "the job is beyond its owner's limits (policy)"}

// A device that leaves before the start is not counted and not waited for; once it enrols again it is.
func TestLeavesBeforeTheStart(t *testing.T) {
	job := loud(4, 2)
	err := bubble(t, job, 2, func(ctx context.Context, tb *table) {
		var wg sync.WaitGroup
		for _, p := range tb.players {
			wg.Go(func() { _ = p.play(ctx) })
		}
		leaver := newPlayer(t, tb.token)
		leaver.http, leaver.unready = tb.players[0].http, true
		if err := leaver.dial(ctx); err != nil {
			t.Fatal(err)
		}
		tb.players = append(tb.players, leaver)
		if err := leaver.send(ctx, beyond); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		third := newPlayer(t, tb.token)
		if third.http = leaver.http; third.dial(ctx) != nil {
			t.Fatal("the third device does not connect")
		}
		tb.players = append(tb.players, third)
		wg.Go(func() { _ = third.play(ctx) })
		time.Sleep(2 * musterEvery)
		synctest.Wait()
		if n, said := tb.rounds(), tb.waitedFor(); n != 0 || !strings.HasPrefix(said, "3 of 4 devices have enrolled") {
			t.Errorf("%d rounds, waits for %q", n, said)
		}
		if got := tb.c.Status().Enrolled; got != 3 {
			t.Errorf("the status counts %d devices", got)
		}
		if n := leaverCode(t, tb, leaver); n != wire.CodePolicy {
			t.Errorf("the operator is told of code %d", n)
		}
		leaver.unready, leaver.session = false, nil
		if err := leaver.dial(ctx); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { _ = leaver.play(ctx) })
		tb.allEnd(wg.Wait)
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// leaverCode is what the store says of a device's limits.
func leaverCode(t *testing.T, tb *table, p *player) uint16 {
	t.Helper()
	f, err := store.OpenFleet(tb.c.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	id := p.id()
	page, _, err := f.Page(store.PageQuery{Prefix: fmt.Sprintf("%x", id), Limit: 1})
	if err != nil || len(page) != 1 {
		t.Fatalf("%v, %v", page, err)
	}
	if page[0].Seen.Unix() != 0 {
		t.Error("a device that left counts as seen")
	}
	return page[0].Declined
}

// A device that leaves in a round holds nobody up in it, and is in no later draw.
func TestLeavesInARound(t *testing.T) {
	job := loud(5, 3)
	job.Deadlines.Reconnect, job.Deadlines.Gather = time.Hour, time.Hour
	var seen []monitor.Status
	err := bubble(t, job, 5, func(ctx context.Context, tb *table) {
		began := time.Now()
		leaver := tb.players[0]
		leaver.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
			if turn == 2 {
				_ = p.send(ctx, beyond)
				return nil, true
			}
			return m, false
		}
		var wg sync.WaitGroup
		for _, p := range tb.players {
			wg.Go(func() { _ = p.play(ctx) })
		}
		tb.allEnd(wg.Wait)
		tb.mu.Lock()
		seen = tb.seen
		tb.mu.Unlock()
		if lasted := time.Since(began); lasted > time.Minute {
			t.Errorf("the others waited %v for it", lasted)
		}
		if n := tb.c.Result().Rounds; n != 3 {
			t.Errorf("%d rounds", n)
		}
	})
	if err != nil {
		t.Errorf("Run ended with %v", err)
	}
	for _, s := range seen {
		if s.Round > 1 && s.State == "gathering" && s.Cohort != 4 {
			t.Errorf("round %d draws %d", s.Round, s.Cohort)
		}
	}
}
