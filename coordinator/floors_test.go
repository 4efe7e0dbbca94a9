package coordinator

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job"
)

// sampledJob draws most of n devices by coins.
func sampledJob(n, rounds int) Job {
	job := loud(n, rounds)
	job.Cohort.SamplingRate, job.Cohort.Floor = 0.8, 3
	job.Deadlines.Reconnect = 20 * time.Millisecond
	return job
}

func entriesOf(t *testing.T, dir string) []store.Entry {
	t.Helper()
	l, err := store.ReadLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l.Entries
}

// TestTooFewOfADrawnCohortCost: a cohort that coins drew and of which too few
// remain is not dropped free of charge and drawn again. Too few keys release noise
// only; a round that fails later is charged.
func TestTooFewOfADrawnCohortCost(t *testing.T) {
	const n = 20
	for turn, want := range map[int]dp.Kind{1: dp.KindNoiseOnly, 2: dp.KindCharged, 3: dp.KindCharged} {
		job := sampledJob(n, 2)
		dir := t.TempDir()
		var failed atomic.Bool
		tb := setTable(t, Config{Job: job, Dir: dir}, n, func(_ int, p *player) {
			p.before = func(p *player, now int, m wire.Message) (wire.Message, bool) {
				if now == turn && !failed.Load() { // all of them leave
					return &wire.Refuse{Round: p.round, Code: wire.CodePlan, Reason: "leaves"}, false
				}
				return m, false
			}
		})
		tb.onProgress = func(p monitor.Status) {
			if p.State == monitor.StateCommitted || p.State == monitor.StateAbandoned {
				failed.Store(true)
			}
			if strings.Contains(p.Reason, "paused") { // so many are more than a job can declare
				tb.stop()
			}
		}
		// A round ends once too few can answer: of those who had not left by then none counts
		// as lost, and the job may go on to its end in place of pausing.
		if err := tb.run(); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("turn %d: %v", turn, err)
		}
		all := entriesOf(t, dir)
		if len(all) == 0 || all[0].Event.Round != 1 || all[0].Event.Kind != want || all[0].Event.SamplingRate != 0.8 {
			t.Errorf("turn %d: the first draw left %+v", turn, all)
			continue
		}
		if got := len(all); got != int(tb.c.core.NextRound())-1 {
			t.Errorf("turn %d: %d draws, %d of them paid for", turn, tb.c.core.NextRound()-1, got)
		}
	}
}

// TestWithoutCoinsNothingIsCharged: where everybody is asked no coin fell, and a
// round that ends before unmasking costs nothing.
func TestWithoutCoinsNothingIsCharged(t *testing.T) {
	job := loud(4, 1)
	job.Deadlines.Reconnect = 20 * time.Millisecond
	dir := t.TempDir()
	var failed atomic.Bool
	tb := setTable(t, Config{Job: job, Dir: dir}, 4, func(_ int, p *player) {
		p.before = func(p *player, now int, m wire.Message) (wire.Message, bool) {
			if now == 1 && !failed.Load() {
				return &wire.Refuse{Round: p.round, Code: wire.CodePlan, Reason: "leaves"}, false
			}
			return m, false
		}
	})
	tb.onProgress = func(p monitor.Status) {
		if p.State == monitor.StateAbandoned {
			failed.Store(true)
		}
	}
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	if all := entriesOf(t, dir); len(all) != 1 || all[0].Event.Kind != dp.KindRelease || tb.c.Result().Abandoned == 0 {
		t.Errorf("%+v, %d abandoned", all, tb.c.Result().Abandoned)
	} else if s := tb.c.Status(); s.Version != 1 || s.Round != uint64(1+tb.c.Result().Abandoned) || s.Round != all[0].Event.Round {
		t.Errorf("version %d and round %d, charged as round %d", s.Version, s.Round, all[0].Event.Round)
	}
	for i, r := range tb.c.Rounds() { // a round's number counts what was abandoned, its version what was committed
		if r.Round != uint64(i+1) || r.Released != (i == len(tb.c.Rounds())-1) || r.Released != (r.Version == 1) {
			t.Errorf("record %d: %+v", i, r.RoundID)
		}
	}
}

// TestNobodyIsDrawnBeforeEnoughAreThere: with fewer devices ready than make
// a cohort above the floor all but certain no coin is flipped, and the status says
// what is waited for.
func TestNobodyIsDrawnBeforeEnoughAreThere(t *testing.T) {
	const n = 60
	job := sampledJob(n, 1)
	job.Cohort.SamplingRate = 0.5
	terms, err := core.NewTerms(job, tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	if q := terms.Quorum.Ready; q <= 30 || q >= n {
		t.Fatalf("quorum %d", q)
	}
	present := terms.Quorum.Ready - 1
	dir := t.TempDir()
	tb := setTable(t, Config{Job: job, Dir: dir}, n, nil)
	for _, p := range tb.players { // all are enrolled, too few stay
		if _, err := tb.c.store.Enrol(p.id(), 0); err != nil {
			t.Fatal(err)
		}
		tb.c.addDevice(p.id())
	}
	tb.players = tb.players[:present]
	tb.onProgress = func(p monitor.Status) {
		if p.State != monitor.StateWaiting && p.State != monitor.StateStopped {
			t.Errorf("state %s with %d connected", p.State, p.Connected)
		}
		if p.State == monitor.StateWaiting && p.Connected == present {
			if !strings.Contains(p.Reason, "devices ready") {
				t.Errorf("waits for %q", p.Reason)
			}
			tb.stop()
		}
	}
	if err := tb.run(); !errors.Is(err, context.Canceled) {
		t.Errorf("Run ended with %v", err)
	}
	if len(entriesOf(t, dir)) != 0 || tb.c.core.NextRound() != 1 {
		t.Errorf("%d entries, next round %d", len(entriesOf(t, dir)), tb.c.core.NextRound())
	}
}

// TestAStoppedDrawIsPaid checks that the ledger pays a drawn round after a crash, and
// after an order to stop.
func TestAStoppedDrawIsPaid(t *testing.T) {
	const n = 20
	job := sampledJob(n, 2)
	base, dir, images := tinyBase(t), t.TempDir(), t.TempDir()
	tb := setTable(t, Config{Job: job, Dir: dir, Base: base}, n, nil)
	taken := map[string]string{}
	tb.onProgress = func(p monitor.Status) {
		if p.Round != 1 || p.State == monitor.StateWaiting {
			return
		}
		if to := filepath.Join(images, p.State); taken[p.State] == "" {
			copyStore(t, dir, to)
			taken[p.State] = to
		}
		if p.State == "collecting" {
			tb.stop()
		}
	}
	if err := tb.run(); !errors.Is(err, context.Canceled) {
		t.Fatalf("Run ended with %v", err)
	}
	if all := entriesOf(t, dir); len(all) != 1 || all[0].Event.Kind != dp.KindCharged {
		t.Errorf("stopped while collecting: %+v", all)
	}
	if len(taken) < 4 {
		t.Fatalf("images %v", taken)
	}
	for state, image := range taken {
		if state == "finished" || state == monitor.StateAbandoned {
			continue
		}
		c, err := New(Config{Job: job, Dir: image, Base: base, Hosts: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if all := entriesOf(t, image); len(all) != 1 || all[0].Event.Kind != dp.KindCharged || c.Status().Delivered.Rounds != 1 {
			t.Errorf("killed in %s: %+v", state, all)
		}
	}
}

// TestDeltaFollowsEnrolment: as more enrol than the job was planned for, delta is
// held against all of them: enrolment ends at 1/delta, and a store that holds more
// draws no round.
func TestDeltaFollowsEnrolment(t *testing.T) {
	j := tinyJob(4)
	j.Privacy.Delta = 0.2 // five members at most
	dir := t.TempDir()
	tb := setTable(t, Config{Job: j, Dir: dir}, 4, nil)
	for i := range byte(5) {
		if _, err := tb.c.store.Enrol([32]byte{i}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tb.c.store.Enrol([32]byte{5}, 0); !errors.Is(err, store.ErrFull) {
		t.Errorf("a sixth device at delta 0.2: %v", err)
	}
	for i := range byte(6) {
		tb.c.addDevice([32]byte{i})
	}
	if _, err := tb.c.draw(); !errors.Is(err, dp.ErrDelta) {
		t.Errorf("a round with six devices at delta 0.2: %v", err)
	}
	tb.server.Close()
	if err := tb.c.Close(); err != nil {
		t.Error(err)
	}
	// Providers are what counts where they are protected.
	j.Privacy.Delta = 1e-3
	j.Providers = job.Providers{Max: 10, Expected: 10, SamplingRate: 1}
	terms, err := core.NewTerms(j, tinyBase(t))
	if err != nil || terms.MostEnrolled() != 100 {
		t.Errorf("%d devices of 10 providers may enrol at delta 1e-3, %v", terms.MostEnrolled(), err)
	}
}
