package coordinator

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/internal/testkit/nightly"
)

// accountedJob is a private one of so many rounds, drawn by coins.
func accountedJob(tb testing.TB, rounds int) *core.Terms {
	job := tinyJob(2000)
	job.Rounds = rounds
	job.Adapter.RankMax = 8
	job.Cohort.SamplingRate, job.Cohort.Floor = 0.1, 20
	terms, err := core.NewTerms(job, tinyBase(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return terms
}

// drawn is what rounds of the ranks in turn cost.
func drawn(tb testing.TB, t *core.Terms, rounds int) []dp.Event {
	var all []dp.Event
	ranks := t.Ranks()
	for i := range rounds {
		v, err := t.Vector(ranks[i%len(ranks)], 1, [32]byte{})
		if err != nil {
			tb.Fatal(err)
		}
		cert := dp.Certificate{Method: dp.MethodPoisson, Rate: t.Job.Cohort.SamplingRate, Population: t.Job.Cohort.Population}
		ev, err := t.ReleaseSpec(uint64(i+1), v.B2(), cert).Event(v.Size())
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, ev)
	}
	return all
}

// TestAccountsBoundTheLedger: what is shown for a number of rounds is never below
// what the ledger of those rounds comes to, close to it, and within the budget.
func TestAccountsBoundTheLedger(t *testing.T) {
	many := 120 // more than curvePoints
	if nightly.All() {
		many = 300
	}
	for _, rounds := range []int{12, many} {
		terms := accountedJob(t, rounds)
		all := drawn(t, terms, rounds)
		a, err := newAccounts(terms, nil)
		if err != nil {
			t.Fatal(err)
		}
		last, err := terms.Guarantees(all)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 2, 7, rounds / 3, rounds - 1, rounds} {
			if err := a.allow(all[:n-1], all[n-1]); err != nil {
				t.Fatalf("round %d of %d: %v", n, rounds, err)
			}
			got, err := a.of(all[:n])
			if err != nil {
				t.Fatal(err)
			}
			exact, err := terms.Guarantees(all[:n])
			if err != nil {
				t.Fatal(err)
			}
			for name, g := range map[string][3]*dp.Guarantee{
				"delivered": {got.Delivered, exact.Delivered, last.Delivered}, "visible": {got.Visible, exact.Visible, last.Visible},
			} {
				shown, truth, final := g[0], g[1], g[2]
				if shown.Epsilon < truth.EpsilonLower || shown.Epsilon > truth.Epsilon*1.001+0.02*final.Epsilon || shown.Rounds < n || shown.Delta != truth.Delta {
					t.Errorf("%d of %d rounds, %s: shown %v, the ledger comes to %v", n, rounds, name, shown, truth)
				}
			}
			if got.Delivered.Epsilon > 2 {
				t.Errorf("%d of %d rounds: %v passes the budget", n, rounds, got.Delivered)
			}
		}
		if len(a.points) > 2*curvePoints {
			t.Errorf("%d points for %d rounds", len(a.points), rounds)
		}
		if err := a.allow(all, all[0]); !errors.Is(err, ErrBudget) {
			t.Errorf("one round beyond %d: %v", rounds, err)
		}
		a.work.Wait()
	}
}

// TestAccountsOfAStrangeLedger: an event that the job could not have drawn is not
// counted as one of its own: all is composed, and the budget asked with it.
func TestAccountsOfAStrangeLedger(t *testing.T) {
	terms := accountedJob(t, 12)
	all := drawn(t, terms, 3)
	spec := terms.ReleaseSpec(1, all[0].B2, dp.Certificate{Method: "first come", Rate: 0.1, Population: 2000})
	full, err := spec.Event(int(all[0].Dim))
	if err != nil {
		t.Fatal(err)
	}
	small := all[0]
	small.B2 /= 2
	for name, ev := range map[string]dp.Event{"another rate": full, "less sensitivity": small} {
		a, err := newAccounts(terms, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a.covers(tally{}, ev) {
			t.Errorf("%s: the event is taken for the job's own", name)
		}
	}
	a, err := newAccounts(terms, []dp.Event{full})
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.of([]dp.Event{full, all[1]})
	if err != nil {
		t.Fatal(err)
	}
	exact, err := terms.Guarantees([]dp.Event{full, all[1]})
	if err != nil || *got.Delivered != *exact.Delivered {
		t.Errorf("%v, exactly %v, %v", got.Delivered, exact.Delivered, err)
	}
	if err := a.allow([]dp.Event{full, full, full, full}, all[1]); !errors.Is(err, ErrBudget) {
		t.Errorf("after four rounds without amplification: %v", err)
	}
}

// BenchmarkAccounting is what the engine does for a round's epsilon: with the
// account made at the start, and composing all rounds anew as it did.
func BenchmarkAccounting(b *testing.B) {
	for _, rounds := range []int{200, 2000} {
		terms := accountedJob(b, rounds)
		all := drawn(b, terms, rounds)
		b.Run(fmt.Sprintf("planned/T=%d", rounds), func(b *testing.B) {
			defer cputime.Benchmark(b)()
			for b.Loop() { // a whole job, its account included
				a, err := newAccounts(terms, nil)
				if err != nil {
					b.Fatal(err)
				}
				for n := 1; n <= rounds; n++ {
					if err := a.allow(all[:n-1], all[n-1]); err != nil {
						b.Fatal(err)
					}
					if _, err := a.of(all[:n]); err != nil {
						b.Fatal(err)
					}
				}
				a.work.Wait()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rounds), "ns/round")
		})
		b.Run(fmt.Sprintf("anew/T=%d", rounds), func(b *testing.B) {
			defer cputime.Benchmark(b)()
			for i := 0; b.Loop(); i++ { // one round of it
				if _, err := terms.Guarantees(all[:1+i*37%rounds]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/round")
		})
	}
}

// Draws end with what the floors' part of delta is made for, whatever the budget has
// left.
func TestDrawsEnd(t *testing.T) {
	terms, err := core.NewTerms(sampledJob(100, 8), tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAccounts(terms, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.work.Wait()
	terms.Budget.Epsilon = math.Inf(1)
	next := a.costly
	for n, ok := range map[int]bool{1: true, terms.Draws(): true, terms.Draws() + 1: false, 2 * terms.Draws(): false} {
		if err := a.allow(make([]dp.Event, n-1), next); (err == nil) != ok {
			t.Errorf("draw %d of %d: %v", n, terms.Draws(), err)
		}
	}
}
