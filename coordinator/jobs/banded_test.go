package jobs_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/starling-fl/starling/coordinator/jobs"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/job"
)

// Devices of a fleet take part in two jobs with noise that cancels between rounds. None is drawn so soon
// that its own account declines, the fleet pays for each release what its row costs, and a job whose
// next row the fleet cannot pay for pauses.
func TestBandedJobsOverOneFleet(t *testing.T) {
	const delta = 1e-5
	banded := func(name string, rounds int) job.Job {
		j := tinyJob(name, rounds)
		j.Cohort.Population, j.Cohort.Sampling, j.Cohort.Size, j.Cohort.Floor, j.Cohort.SamplingRate = 9, "fixed", 3, 3, 1
		j.Privacy = job.Privacy{Epsilon: 20, Delta: 1e-6, Accountant: "rdp", Mechanism: job.MechanismBanded, Separation: 3, ClipNorm: 1}
		return j
	}
	dir := t.TempDir()
	w, p := open(t, dir, 0), newPeople(t, 9)
	var declined atomic.Int64
	p.progress = func(e edge.Event) {
		if e.State == edge.Refused {
			declined.Add(1)
			t.Logf("round %d: %s", e.Round, e.Text)
		}
	}
	w.submit(banded("one", 7), "", 0)
	end := p.join(t, "one", w.token("one"))
	w.becomes("one", store.StateFinished)
	end()
	events, floor := w.h.Events(store.DefaultPool)
	var rows []uint64
	for _, e := range events {
		rows = append(rows, e.Banded.Row)
	}
	if slices.Sort(rows); !slices.Equal(rows, []uint64{1, 2, 3, 4, 5, 6, 7}) || declined.Load() != 0 {
		t.Fatalf("rows %v were paid for, %d plans declined", rows, declined.Load())
	}
	slices.SortFunc(events, func(a, b dp.Event) int { return int(a.Banded.Row) - int(b.Banded.Row) })
	one, _, err := jobs.Compose(append(slices.Clone(events), events[0]), delta, floor)
	ok(t, err)
	two, _, err := jobs.Compose(append(slices.Clone(events), events[0], events[1]), delta, floor)
	ok(t, err)
	ok(t, w.h.Budget((one.Epsilon+two.Epsilon)/2, delta))
	w.submit(banded("two", 7), "", 0)
	p.join(t, "two", w.token("two"))
	w.until("two", "is paused by the budget", func(j store.Hosted) bool { return strings.Contains(j.Reason, "the fleet's budget is") })
	if s, _ := w.h.Status("two"); s.Version != 1 {
		t.Errorf("the second job is at version %d", s.Version)
	}
	ok(t, w.h.Budget(100, delta))
	w.becomes("two", store.StateFinished)
	if w.ledgers(); declined.Load() != 0 {
		t.Errorf("%d plans were declined", declined.Load())
	}
	// Until it is known how a round ends, the fleet counts it as one that is charged for nothing.
	f, err := store.OpenFleet(dir)
	ok(t, err)
	reserved := 0
	_, err = f.Spent(func(s store.Spending) {
		var e dp.Event
		if s.Act == store.SpendReserve {
			reserved++
			if err := e.UnmarshalBinary(s.Event); err != nil || e.Kind != dp.KindCharged {
				t.Errorf("round %d of %s is reserved as %v, %v", s.Round, s.Job, e.Kind, err)
			}
		}
	})
	if ok(t, errors.Join(err, f.Close())); reserved < 14 {
		t.Errorf("%d rounds were reserved", reserved)
	}
}
