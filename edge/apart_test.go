package edge

import (
	"errors"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// bandedJob announces noise that cancels between its releases.
func bandedJob(rounds uint64, separation uint32) *job {
	j := accountJob(rounds)
	j.Privacy.SamplingRate, j.Privacy.Separation, j.Privacy.Band, j.Privacy.Eighths = 1, separation, separation, 4
	return j
}

// A device hands nothing over for a release too soon after another, whatever its coordinator says of
// the release's number, after a restart and in another process, too; a round that released nothing
// by the coordinator's word costs it no rest.
func TestHostileSeparation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "account.json")
	j, round := bandedJob(40, 5), uint64(0)
	var a *Account
	try := func(row uint64) error {
		var err error
		a, err = OpenAccount(path) // a new process
		ok(t, err)
		round++
		j.row = row
		if err := a.begin(j, round, 1000, time.Now()); err != nil {
			return err
		}
		return a.contribute(j, new(Policy), traffic{})
	}
	for _, step := range []struct {
		row     uint64
		outcome uint8
		takes   bool
	}{
		{3, wire.OutcomeCommitted, true},
		{3, 0, false}, {4, 0, false}, {7, 0, false}, {2, 0, false}, // sooner, the same, and earlier
		{8, 0, true},                                                // of whose outcome it never hears
		{12, 0, false}, {7, 0, false}, {8, 0, true}, {12, 0, false}, // it was not released: the plan says so
		{8, wire.OutcomeAbandoned, true}, {3, 0, false}, {7, 0, false}, {8, 0, true},
		{13, wire.OutcomeAbandoned, true}, {12, 0, false}, // it rests for release 8 still
		{13, wire.OutcomeAbandoned, true}, {14, wire.OutcomeDropped, true}, // dropped it may be in the sum
		{15, 0, false}, {18, 0, false}, {12, 0, false},
		{14, wire.OutcomeCommitted, true}, {14, 0, false}, // released it is
		{19, wire.OutcomeCommitted, true},
		{19, 0, false}, {23, 0, false}, {24, 0, true},
	} {
		err := try(step.row)
		if refusal := new(RefusalError); (err == nil) != step.takes || err != nil && (!errors.As(err, &refusal) || !errors.Is(err, errTooSoon)) {
			t.Errorf("round %d, release %d: %v", round, step.row, err)
		}
		if err != nil {
			continue
		}
		switch step.outcome {
		case wire.OutcomeAbandoned:
			ok(t, a.abandoned(j))
		case wire.OutcomeCommitted:
			ok(t, a.committed(j, traffic{}))
		}
	}
	// A round that began before another process handed over is left at the hand-over.
	j.row, round = 29, round+1
	ok(t, a.begin(j, round, 1000, time.Now()))
	a.of(j).Row = 28
	if err := a.contribute(j, new(Policy), traffic{}); !errors.Is(err, errTooSoon) {
		t.Errorf("after another process: %v", err)
	}
	// Two accounts of the same data rest for what both have given.
	other := bandedJob(40, 5)
	b, err := NewAccount(nil, nil)
	ok(t, err)
	other.row = 35
	ok(t, b.begin(other, 99, 1000, time.Now()))
	ok(t, b.contribute(other, new(Policy), traffic{}))
	ok(t, a.Merge(b))
	if of := a.of(j); of.Row != 35 || of.Before != 28 || !of.Released {
		t.Errorf("merged: %+v", of)
	}
}

// Of two clients that share an account, one hears late that its round was abandoned, after the other handed over for the
// same release in a later round: the device rests for that one.
func TestHostileLateOutcome(t *testing.T) {
	a, err := NewAccount(nil, nil)
	ok(t, err)
	one, two := bandedJob(40, 5), bandedJob(40, 5)
	begin := func(j *job, round, row uint64) error {
		j.row = row
		return a.begin(j, round, 1000, time.Now())
	}
	give := func(j *job, round, row uint64) {
		t.Helper()
		ok(t, begin(j, round, row))
		ok(t, a.contribute(j, new(Policy), traffic{}))
	}
	give(one, 1, 3)
	give(two, 2, 3)
	ok(t, a.abandoned(one))
	if err := begin(one, 3, 4); !errors.Is(err, errTooSoon) || a.of(one).Row != 3 {
		t.Errorf("one release after another: %v, %+v", err, a.of(one))
	}
	ok(t, a.abandoned(two))
	// A round that only began takes nothing back, nor does it keep an earlier one's outcome from doing so.
	give(one, 3, 4)
	ok(t, begin(two, 4, 4))
	ok(t, a.abandoned(two))
	if row := a.of(one).Row; row != 4 {
		t.Errorf("release %d after a round without a hand-over", row)
	}
	ok(t, a.abandoned(one))
	if row := a.of(one).Row; row != 0 {
		t.Errorf("release %d after its own round was abandoned", row)
	}
	// Nor does a round that another account handed over in, once both are one.
	b, err := NewAccount(nil, nil)
	ok(t, err)
	give(one, 5, 6)
	three := bandedJob(40, 5)
	three.row = 8
	ok(t, b.begin(three, 6, 1000, time.Now()))
	ok(t, b.contribute(three, new(Policy), traffic{}))
	ok(t, a.Merge(b))
	ok(t, a.abandoned(one))
	if row := a.of(one).Row; row != 8 {
		t.Errorf("release %d after a merge", row)
	}
}

// Whatever a coordinator calls abandoned, a device is in no more releases than the job can have it in
// and the rounds that any job may lose.
func TestHostileAbandonment(t *testing.T) {
	a, err := NewAccount(nil, nil)
	ok(t, err)
	j, given := bandedJob(11, 5), 0
	for round := uint64(1); round <= 100; round++ {
		j.row = min(round, 11)
		if err := a.begin(j, round, 1000, time.Now()); err != nil {
			if !errors.Is(err, ErrPromise) {
				t.Fatal(err)
			}
			break
		}
		ok(t, a.contribute(j, new(Policy), traffic{}))
		ok(t, a.abandoned(j))
		given++
	}
	if given != 3+5 {
		t.Errorf("%d contributions", given)
	}
}

// What a device counts for its contributions is what they cost in releases that are apart.
func TestSeparatedCost(t *testing.T) {
	a, err := NewAccount(nil, nil)
	ok(t, err)
	j := bandedJob(40, 5)
	j.Privacy.NoiseMultiplier = 3
	for i := range uint64(4) {
		j.row = 1 + 5*i
		ok(t, a.begin(j, i+1, 1000, time.Now()))
		ok(t, a.contribute(j, new(Policy), traffic{}))
	}
	g, counted, err := a.of(j).Epsilon()
	ok(t, err)
	e := dp.Rounds(dp.Mechanism{SamplingRate: 1, NoiseMultiplier: 3}, 20)
	e.Fixed, e.Banded = true, dp.Banded{Band: 5, Separation: 5, Eighths: 4, Row: 1}
	want, err := dp.RDPEpsilon([]dp.Event{e}, j.Privacy.Delta)
	ok(t, err)
	if !counted || g.Epsilon < want.Epsilon*(1-1e-9) || math.Abs(g.Epsilon-want.Epsilon) > 1e-6*want.Epsilon {
		t.Errorf("epsilon %v, of the rows %v", g.Epsilon, want.Epsilon)
	}
}

// Devices decline a plan that draws them too soon, whether they were told of the last release or not.
func TestHostileEarlyDraw(t *testing.T) {
	h := newHouse(t)
	h.job.Rounds = 20
	h.job.Privacy.Separation, h.job.Privacy.Band, h.job.Privacy.Eighths = 3, 2, 4
	h.announce()
	var peers []*peer
	for range 3 {
		h.start(h.config(&constant{value: 0.02}))
		peers = append(peers, h.admit(false))
	}
	round := uint64(0)
	for _, step := range []struct {
		version uint64
		outcome uint8
		takes   bool
	}{
		{0, wire.OutcomeCommitted, true}, {0, 0, false}, {1, 0, false}, {2, 0, false},
		{3, wire.OutcomeAbandoned, true}, {3, wire.OutcomeDropped, true}, {4, 0, false}, {5, 0, false},
		{3, wire.OutcomeCommitted, true}, {3, 0, false},
		{6, wire.OutcomeCommitted, true}, {4, 0, false},
	} {
		round++
		plan := h.plan(round)
		plan.Version = step.version
		if step.takes {
			h.outcome = step.outcome
			h.round(plan, peers, nil)
			continue
		}
		for i, p := range peers {
			p.assign(plan)
			if m := want[*wire.Refuse](p); m.Round != round || m.Code != wire.CodePlan {
				t.Errorf("round %d, device %d: %+v", round, i, m)
			}
		}
	}
}

// Under a second identity a data set rests all the same: its account is one.
func TestHostileSecondIdentity(t *testing.T) {
	h := newHouse(t)
	h.job.Rounds = 20
	h.job.Privacy.Separation, h.job.Privacy.Band, h.job.Privacy.Eighths = 3, 2, 4
	h.announce()
	a, err := NewAccount(nil, nil)
	ok(t, err)
	first := h.config(&constant{value: 0.02})
	first.Account = a
	var peers []*peer
	for i := range 3 {
		cfg := first
		if i > 0 {
			cfg = h.config(&constant{value: 0.02})
		}
		h.start(cfg)
		peers = append(peers, h.admit(false))
	}
	h.round(h.plan(1), peers, nil)
	second := h.config(&constant{value: 0.02}) // which draws an identity of its own
	second.Account = a
	h.start(second)
	p := h.admit(false)
	if p.id == peers[0].id {
		t.Fatal("it has the same identity")
	}
	plan := h.plan(2)
	plan.Version = 1
	p.assign(plan)
	if m := want[*wire.Refuse](p); m.Round != 2 || m.Code != wire.CodePlan {
		t.Errorf("%+v", m)
	}
}
