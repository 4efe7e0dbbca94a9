package core

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/job"
)

// inTurn is a job of ten devices with banded noise, two of them a round.
func inTurn(band, ranks int) job.Job {
	j := tinyJob(10)
	j.Rounds = 9
	j.Cohort.Sampling, j.Cohort.Size, j.Cohort.SamplingRate, j.Cohort.Floor = "fixed", 2, 1, 2
	j.Shard = job.Shard{Size: 8, Floor: 2}
	j.Adapter.RankMin, j.Adapter.RankMax = 4-ranks, 3
	j.Privacy = job.Privacy{Epsilon: 50, Accountant: "tight", Mechanism: job.MechanismBanded, Separation: 5, Band: band, ClipNorm: j.Privacy.ClipNorm}
	return j
}

// round makes a round whose sum is zero, and returns what was drawn and released.
func bandedRound(t *testing.T, c *Core) (d *Draw, released []int64) {
	t.Helper()
	d, err := c.Draw(dp.FixedDrawNumbered(10, 2))
	if err != nil {
		t.Fatal(err)
	}
	released = make([]int64, d.Size())
	event, clip, err := c.Release(d, released, 2, false, dp.NewSampler(c.Noise(d)))
	if err != nil {
		t.Fatal(err)
	}
	if event.Banded.Row != c.Version()+1 || event.B2 != d.Vector().B2() || event.Banded != d.Event().Banded {
		t.Fatalf("%+v", event)
	}
	c.Commit(clip)
	return d, released
}

// Rounds that share noise share rank and rotation: all of them at one rank, each block of the band
// where ranks are drawn. A run goes on from a snapshot as if it had not stopped; a round that was
// drawn, or released and not committed, leaves no trace.
func TestBandedRoundsShareCoordinates(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		c, err := New(inTurn(4, ranks), tinyBase(t), []byte("0123456789abcdef"))
		if err != nil {
			t.Fatal(err)
		}
		var rotations [][32]byte
		var drawn []int
		for version := range 9 {
			before, err := c.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			d, released := bandedRound(t, c)
			rotations, drawn = append(rotations, d.Rotation()), append(drawn, d.Rank())

			again, err := New(inTurn(4, ranks), tinyBase(t), []byte("0123456789abcdef"))
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Restore(before); err != nil {
				t.Fatalf("version %d: %v", version, err)
			}
			for range 2 { // of which the first is never committed
				other, err := again.Draw(dp.FixedDrawNumbered(10, 2))
				if err != nil {
					t.Fatal(err)
				}
				if _, _, err := again.Release(other, make([]int64, other.Size()), 2, false, givenNoise(5)); err != nil {
					t.Fatal(err)
				}
			}
			if err := again.Restore(before); err != nil {
				t.Fatal(err)
			}
			if e, same := bandedRound(t, again); !slices.Equal(same, released) || e.Rank() != d.Rank() || e.Rotation() != d.Rotation() {
				t.Fatalf("%d ranks, version %d: a restored run releases something else", ranks, version)
			}
			a, _ := c.Snapshot()
			if b, _ := again.Snapshot(); !bytes.Equal(a.Noise, b.Noise) || !bytes.Equal(a.Adapter, b.Adapter) {
				t.Fatalf("%d ranks, version %d: a restored run has another state", ranks, version)
			}
			damaged := before
			if version%4 != 0 || ranks == 1 && version > 0 {
				damaged.Noise = nil
				if err := again.Restore(damaged); err == nil || !strings.Contains(err.Error(), "without it nothing can be released") {
					t.Errorf("%d ranks, version %d, without kept noise: %v", ranks, version, err)
				}
			}
		}
		for i := range rotations {
			same := ranks == 1 || i/4 == 0
			if (rotations[i] == rotations[0]) != same || same && drawn[i] != drawn[0] {
				t.Errorf("%d ranks: round %d has rank %d and another rotation: %v", ranks, i, drawn[i], rotations[i] != rotations[0])
			}
		}
	}
}

// What a budget holds for all rounds is the sensitivity that they have together.
func TestBandedBudget(t *testing.T) {
	c, err := New(inTurn(4, 1), tinyBase(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	var events []dp.Event
	for range 9 {
		d, _ := bandedRound(t, c)
		events = append(events, d.Event())
	}
	all, err := c.Terms().Promise()
	if err != nil {
		t.Fatal(err)
	}
	spent, err := c.Terms().Guarantees(events)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := all.Delivered.Epsilon, spent.Delivered.Epsilon; math.Abs(b-a) > 1e-9*a || a > 50 || all.Delivered.Observer != dp.Participants || all.Visible != nil {
		t.Errorf("promised %v, spent %v", all.Delivered, spent.Delivered)
	}
	// Each round may be charged in place of being released: there is room for one, and no more.
	next := events[8]
	next.Kind, next.Banded.Row = dp.KindCharged, 10
	if g, err := c.Budget().Allow(events, next, false); err != nil || g.Epsilon < 49.9 {
		t.Errorf("with a round that released nothing: %v, %v", g, err)
	}
	events = append(events, next)
	next.Kind = dp.KindRelease
	if _, err := c.Budget().Allow(events, next, false); err != nil {
		t.Errorf("a row that no device is in for the first time: %v", err)
	}
	next.Banded.Row = 11
	if _, err := c.Budget().Allow(events, next, false); err == nil {
		t.Error("the budget holds a third round of a device")
	}
}

// The released adapters' noise is what rho says, and a band that takes too much memory is refused.
func TestBandedTerms(t *testing.T) {
	independent := inTurn(1, 1)
	banded, err := NewTerms(inTurn(5, 1), tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	alone, err := NewTerms(independent, tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	if alone.cancelled() != 1 || banded.cancelled() > 0.7 || banded.Rho() > 0.95*alone.Rho() {
		t.Errorf("rho %v, of independent rounds %v; %v of the noise is left", banded.Rho(), alone.Rho(), banded.cancelled())
	}
	blocks, err := NewTerms(inTurn(5, 2), tinyBase(t))
	if err != nil || !(blocks.cancelled() > banded.cancelled() && blocks.cancelled() < 1) {
		t.Errorf("with a rank a block %v of the noise is left (%v)", blocks.cancelled(), err)
	}
	long := inTurn(5, 1)
	long.Cohort.Population, long.Cohort.MaxEnrolled, long.Privacy.Separation, long.Privacy.Band = 1_000_000, 1_000_000, 4096, 4096
	terms := &Terms{Job: long, Layout: banded.Layout}
	if err := terms.checkKept(); err != nil {
		t.Error(err)
	}
	terms.Job.Privacy.Band = 2 + mostKept/banded.Layout.Size(3)
	if err := terms.checkKept(); err == nil || !strings.Contains(err.Error(), "would do") {
		t.Errorf("a band of %d: %v", terms.Job.Privacy.Band, err)
	}
}

// Whether an adapter moves is judged by the noise that a release has, not by what is drawn for it.
func TestBandedReleasesHaveMoreNoise(t *testing.T) {
	c, err := New(inTurn(4, 1), tinyBase(t), []byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	for row := range 6 {
		d, _ := bandedRound(t, c)
		want := c.Terms().Job.BandedRows().Spread(row+1) * d.Event().Sigma2.Float()
		if got := d.added(d.Event().Sigma2, 2, 0); got != want || row == 0 && got != d.Event().Sigma2.Float() || row == 5 && got < 1.2*d.Event().Sigma2.Float() {
			t.Errorf("row %d has variance %v, want %v", row+1, got, want)
		}
	}
}
