package coordinator

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// TestCohortMap: each standing of a drawn device is shown as itself.
func TestCohortMap(t *testing.T) {
	cfg := round.Config{Cohort: []round.Device{0, 1, 2, 3}, Floor: 1, Enough: 1}
	for s := range cfg.Limits {
		cfg.Limits[s] = round.Limit{Timeout: time.Second, Quorum: 2}
	}
	m, err := round.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &running{m: m, parts: map[round.Device]*participant{}}
	c := &Coordinator{engine: engine{fleet: fleet.New()}}
	for n := range round.Device(4) {
		d := c.fleet.Add([32]byte{byte(n)})
		d.Browser = n == 1
		r.parts[n] = &participant{}
		if n > 0 {
			d.Link = &link.Link{}
		}
	}
	shows := func(want ...byte) {
		t.Helper()
		if standing, browsers := c.cohortMap(r); standing != string(want) || browsers != "nbnn" {
			t.Errorf("%v: standing %q, want %q; browsers %q", m.State(), standing, want, browsers)
		}
	}
	answer := func(turn round.State, devices ...round.Device) {
		for _, d := range devices {
			m.Take(round.Received{Device: d, Turn: turn})
		}
	}
	m.Take(round.Start{})
	answer(round.Gathering, 1, 2, 3)
	shows(monitor.StandingAbsent, monitor.StandingJoined, monitor.StandingJoined, monitor.StandingJoined)
	m.Take(round.Deadline{Shard: round.Whole, State: round.Gathering})
	r.parts[0].dropped = true
	answer(round.Keying, 1, 2, 3)
	m.Take(round.Sharded{Shards: []round.Shard{{Members: []round.Device{1, 2, 3}, Threshold: 2}}})
	answer(round.Sharing, 1, 2, 3)
	answer(round.Collecting, 1, 2)
	shows(monitor.StandingAbsent, monitor.StandingMasked, monitor.StandingMasked, monitor.StandingTraining)
	r.away.Until(c.fleet.At(3), time.Now())
	shows(monitor.StandingAbsent, monitor.StandingMasked, monitor.StandingMasked, monitor.StandingAway)
	m.Take(round.Lost{Device: 3})
	m.Take(round.Stored{Shard: 0})
	answer(round.Confirming, 1, 2)
	m.Take(round.Stored{Shard: round.Whole})
	answer(round.Unmasking, 1)
	shows(monitor.StandingAbsent, monitor.StandingRevealed, monitor.StandingMasked, monitor.StandingAway)
	r.parts[2].dropped = true
	shows(monitor.StandingAbsent, monitor.StandingRevealed, monitor.StandingDropped, monitor.StandingAway)
}

// TestHistoryOutlivesTheProcess: what a dashboard shows of rounds that are over, it
// shows after a restart, accuracies that came later included.
func TestHistoryOutlivesTheProcess(t *testing.T) {
	cfg := Config{Job: tinyJob(3), Dir: t.TempDir()}
	tb := setTable(t, cfg, 3, nil)
	c := tb.c
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	before := c.Rounds()
	if len(before) != 2 || before[0].Cohort != 3 || before[1].BytesUp == 0 {
		t.Fatalf("the rounds were %+v", before)
	}
	moved := c.Status().Parts
	again := setTable(t, cfg, 0, nil)
	again.server.Close()
	// The job is over: nobody is waited for, and what it cost is not forgotten.
	if s := again.c.Status(); s.State != monitor.StateFinished || s.Round != 2 || s.Version != 2 || s.Rank != before[1].Rank ||
		s.Parts.Updates != moved.Updates || s.Parts.Slices != moved.Slices || s.Parts.Turns.Up != moved.Turns.Up || s.Parts.Turns.Down > moved.Turns.Down || // some goes out as the round ends
		s.Parts.Turns.Down == 0 ||
		s.BytesUp != s.Parts.Sum().Up || s.BytesUp < before[0].BytesUp+before[1].BytesUp {
		t.Errorf("after a restart\n%+v, at the end were\n%+v", s, moved)
	}
	// What the job comes to is counted over restarts: a process that moved nothing does not say 0 B.
	if res, was := again.c.Result(), c.Result(); res.BytesUp != again.c.Status().BytesUp || !(math.Abs(res.BytesUpPerDeviceRound/was.BytesUpPerDeviceRound-1) < 0.1) ||
		res.Rounds != was.Rounds || res.Dropped != was.Dropped || res.Absent != was.Absent {
		t.Errorf("the result after a restart is %+v, before %+v", res, was)
	}
	again.c.monitor.Measure(2, []metric.RankAccuracy{{Rank: 3, Accuracy: 0.5, Loss: 1.5}})
	if err := again.c.Close(); err != nil {
		t.Fatal(err)
	}
	before[1].Accuracy = []metric.RankAccuracy{{Rank: 3, Accuracy: 0.5, Loss: 1.5}}
	third := setTable(t, cfg, 0, nil)
	third.server.Close()
	if after := third.c.Rounds(); !reflect.DeepEqual(after, before) {
		t.Errorf("after two restarts\n%+v, before\n%+v", after, before)
	}
	if s := third.c.Status(); s.ValidationVersion != 2 || !reflect.DeepEqual(s.Validation, before[1].Accuracy) {
		t.Errorf("what was measured is %+v", s.Measured)
	}
	f := third.c.Follow()
	if n, _ := f.News(); len(n.Rounds) != 2 {
		t.Errorf("a dashboard is told of %d rounds", len(n.Rounds))
	}
	f.Close()
	if err := third.c.Close(); err != nil {
		t.Fatal(err)
	}
}

// What the job's masking withstands is an event that people read: a probability of
// nothing, which has no logarithm, is not shown as one.
func TestMaskingIsTold(t *testing.T) {
	for _, corrupt := range []float64{0, 0.05} {
		j := tinyJob(40)
		j.Shard.Corrupt, j.Shard.BreachBits = corrupt, 0
		c, err := New(Config{Job: j, Dir: t.TempDir(), Base: tinyBase(t), Hosts: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		f := c.Follow()
		news, _ := f.News()
		f.Close()
		lines := news.Lines
		at := slices.IndexFunc(lines, func(l monitor.Occurrence) bool { return l.What == "masking" })
		if at < 0 {
			t.Fatalf("corrupt %v: not among %v", corrupt, lines)
		}
		said := strings.Join(lines[at].Details, " ")
		if strings.Contains(said, "Inf") || strings.Contains(said, "corrupt=0") != (corrupt == 0) ||
			strings.Contains(said, "log2_breach_job=") != (corrupt > 0) {
			t.Errorf("corrupt %v: %s", corrupt, said)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A job that ends early says after how many rounds and why, and a coordinator that stops does not say that
// the job is over.
func TestHowItEnded(t *testing.T) {
	for _, c := range []struct {
		err           error
		state, detail string
	}{
		{context.Canceled, monitor.StateStopped, "the coordinator has stopped after 0 of 2 rounds: serve it again"},
		{fmt.Errorf("round 1: %w", ErrBudget), monitor.StateFinished, "the job ended after 0 of 2 rounds: round 1: " + ErrBudget.Error()},
		{ErrStopped, monitor.StateFinished, "the job ended after 0 of 2 rounds: " + ErrStopped.Error()},
	} {
		tb := setTable(t, Config{Job: loud(4, 2)}, 1, nil)
		tb.c.status.Rounds = 2 // as Run says first
		tb.c.stop(c.err)
		checks := tb.c.Checks(t.Context())
		job := checks[slices.IndexFunc(checks, func(c Check) bool { return c.Name == "job" })]
		if s := tb.c.Status(); s.State != c.state || job.OK || job.Detail != c.detail {
			t.Errorf("%v: state %s, job %+v", c.err, s.State, job)
		}
		tb.server.Close()
		if err := tb.c.Close(); err != nil {
			t.Error(err)
		}
	}
}
