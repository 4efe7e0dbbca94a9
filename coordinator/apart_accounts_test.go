package coordinator

import (
	"errors"
	"testing"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
)

// rows are a banded job's releases, with a charged round behind each that lost names.
func rows(t *testing.T, terms *core.Terms, n int, lost ...int) (all []dp.Event) {
	t.Helper()
	costly, err := terms.Costliest()
	if err != nil {
		t.Fatal(err)
	}
	for row := 1; row <= n; row++ {
		e := costly
		e.Round, e.Banded.Row = uint64(len(all)+1), uint64(row)
		all = append(all, e)
		for _, at := range lost {
			if at == row {
				e.Round, e.Kind, e.Banded.Row = uint64(len(all)+1), dp.KindCharged, uint64(row+1)
				all = append(all, e)
			}
		}
	}
	return all
}

// What is shown of a banded job's rounds is never below what its ledger comes to; a round that released
// nothing costs what the mechanism says; and one more is refused exactly when the ledger would pass
// the budget with that round charged for nothing, which costs more than its release.
func TestAccountsOfBandedRounds(t *testing.T) {
	terms, err := core.NewTerms(bandedJob(24, 3, 10), tinyBase(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, lost := range [][]int{nil, {4}, {1, 1, 8}} {
		all := rows(t, terms, 12, lost...)
		a, err := newAccounts(terms, nil)
		if err != nil {
			t.Fatal(err)
		}
		refused, releases := false, 0
		for n, next := range all {
			spent := all[:n]
			charged := next
			charged.Kind = dp.KindCharged
			_, released := terms.Budget.Allow(spent, next, false)
			_, exact := terms.Budget.Allow(spent, charged, false)
			if next.Kind == dp.KindCharged {
				continue // it was drawn as a release
			}
			if a.count(spent) != (tally{releases, n - releases}) {
				t.Errorf("%d events: %+v", n, a.count(spent))
			}
			releases++
			err := a.allow(spent, next)
			if again := a.mayStartAnother(spent, next.Round); (again == nil) != (err == nil) {
				t.Errorf("release %d: %v, and before it was drawn %v", releases, err, again)
			}
			// Of the releases that were promised, each is given although floats add up otherwise.
			if promised := len(lost) == 0 && releases <= 10; promised && err != nil || !promised && (err == nil) != (exact == nil) {
				t.Errorf("lost %v, release %d: %v, exactly %v", lost, releases, err, exact)
			}
			if err == nil && (released != nil || exact != nil) {
				t.Errorf("lost %v, release %d is drawn, and released it comes to %v, charged alone to %v", lost, releases, released, exact)
			}
			if err != nil {
				if refused = true; !errors.Is(err, ErrBudget) || !errors.Is(err, accounting.ErrBudget) {
					t.Error(err)
				}
				break
			}
			got, err := a.of(all[:n+1])
			if err != nil {
				t.Fatal(err)
			}
			want, err := terms.Guarantees(all[:n+1])
			if err != nil {
				t.Fatal(err)
			}
			if e, w := got.Delivered, want.Delivered; e.Epsilon < w.Epsilon*(1-1e-9) || e.Epsilon > w.Epsilon*(1+1e-6) || e.Observer != w.Observer || e.Sampling != w.Sampling {
				t.Errorf("lost %v, release %d: shown %v, the ledger comes to %v", lost, releases, e, w)
			}
		}
		if a.stranger {
			t.Errorf("lost %v: its own rounds are taken for another's", lost)
		}
		if len(lost) > 0 && (!refused || releases > 11) {
			t.Errorf("lost %v: %d releases", lost, releases)
		}
	}
	// A row that is not the next is a stranger's, and composed as it is.
	a, err := newAccounts(terms, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := rows(t, terms, 5)
	if a.covers(a.count(all[:2]), all[3]) || !a.covers(a.count(all[:2]), all[2]) || a.next(all[:4]).Banded.Row != 5 {
		t.Error("rows are taken in any order")
	}
}
