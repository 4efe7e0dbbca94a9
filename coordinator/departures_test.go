package coordinator

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// TestDepartures: of who leaves a round its record tells apart whom a limit of an owner's keeps
// out, who stops by its own word, whose message is refused, and who is just gone.
func TestDepartures(t *testing.T) {
	job := tinyJob(8)
	job.Rounds, job.Cohort.Floor = 1, 3
	bends := map[int]func(p *player) (wire.Message, bool){
		0: func(p *player) (wire.Message, bool) {
			return &wire.Refuse{Round: p.round, Code: wire.CodeMemory, Reason: "no room"}, false
		},
		1: func(p *player) (wire.Message, bool) {
			return &wire.Refuse{Round: p.round, Code: wire.CodeTraining, Reason: "failed"}, false
		},
		2: func(p *player) (wire.Message, bool) {
			return &wire.Refuse{Round: p.round, Code: wire.CodePlan, Reason: "no"}, false
		},
		3: func(p *player) (wire.Message, bool) {
			return &wire.Turn{Round: p.round, Number: 1, Payload: []byte("rubbish")}, false
		},
		4: func(*player) (wire.Message, bool) { return nil, true },
	}
	tb := setTable(t, Config{Job: job}, 8, func(i int, p *player) {
		p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
			if bend := bends[i]; bend != nil && turn == 1 {
				return bend(p)
			}
			return m, false
		}
	})
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	rounds := tb.c.Rounds()
	if len(rounds) != 1 || !rounds[0].Released {
		t.Fatalf("rounds %+v", rounds)
	}
	r := rounds[0]
	if want := (monitor.Departures{Declined: 1, Stopped: 2, Refused: 1}); r.Departures != want || r.Dropped != 5 || r.Absent != 0 {
		t.Errorf("%+v, %d dropped, %d absent; want %+v and one more who is gone", r.Departures, r.Dropped, r.Absent, want)
	}
	if err := tb.c.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPausedByAnOperator: a job that an operator has paused draws no round, says who paused it, and
// goes on when it is resumed, without a start.
func TestPausedByAnOperator(t *testing.T) {
	job := tinyJob(3)
	dir := t.TempDir()
	err := bubbleIn(t, dir, tinyBase(t), job, 3, func(ctx context.Context, tb *table) {
		f, err := tb.c.Fleet()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.As("Ada").Pause("a new phone"); err != nil {
			t.Fatal(err)
		}
		for _, p := range tb.players {
			tb.wg.Go(func() { _ = p.play(ctx) })
		}
		time.Sleep(time.Hour)
		s := tb.c.Status()
		// The players are there since they dialled: the first round may be drawn, and goes to its end.
		if s.State != monitor.StateWaiting || s.Reason != "paused by Ada: a new phone" || s.Version > 1 || s.Round != uint64(s.Version) {
			t.Errorf("after an hour: %s, %q, %d released, round %d", s.State, s.Reason, s.Version, s.Round)
		}
		checks := tb.c.Checks(ctx)
		if last := checks[len(checks)-1]; last.Name != "job" || last.OK || !strings.Contains(last.Detail, "Ada") {
			t.Errorf("checks %+v", checks)
		}
		if err := f.Resume(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if s := tb.c.Status(); s.Version != job.Rounds {
			t.Errorf("after it was resumed: %s, %q, %d released", s.State, s.Reason, s.Version)
		}
	})
	if err != nil {
		t.Error(err)
	}
}
