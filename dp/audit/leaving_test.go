package audit

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
)

// A device that leaves for reasons in its own data decides over its shard where that lacks just one.
// The real machine plays rounds in which all others do the same, and it stays or leaves: what is
// released of the others hangs on it no more often than the guarantee says that it does.
func TestLeavingTipsNoMoreThanIsSaid(t *testing.T) {
	watchdog.Context(t)
	for _, population := range []int{4000, 20_000} {
		j := job.Default()
		j.Name, j.Labels, j.Rounds = "x", []string{"a", "b"}, 200
		j.Cohort.Population, j.Cohort.SamplingRate, j.Cohort.Dropout, j.Privacy.Delta = population, 0.01, 0.1, 1e-6
		j = j.Derived()
		q, err := j.Quorum()
		if err != nil {
			t.Fatal(err)
		}
		groups, ok := q.Allows(j, population, population)
		if !ok {
			t.Fatalf("%d: no round is drawn of all", population)
		}
		const rounds = 1500
		tipped := 0
		for seed := range uint64(rounds) {
			r := rand.New(rand.NewPCG(seed, 3))
			cohort, fates := []int{0}, map[int]round.State{}
			for i := 1; i < population; i++ {
				if r.Float64() < j.Cohort.SamplingRate {
					cohort = append(cohort, i)
					if fates[i] = stays; r.Float64() < j.Cohort.Dropout {
						fates[i] = round.Collecting
					}
				}
			}
			var sums [2][]int
			for k, mine := range []round.State{stays, round.Collecting} {
				fates[0] = mine
				var same [32]byte
				same[0], same[1] = byte(seed), byte(seed>>8)
				o, err := play(j, groups, cohort, func(i int) round.State { return fates[i] }, rand.NewChaCha8(same))
				if err != nil {
					t.Fatal(err)
				}
				if o.released {
					sums[k] = slices.DeleteFunc(slices.Sorted(slices.Values(o.members)), func(i int) bool { return i == 0 })
				}
			}
			if !slices.Equal(sums[0], sums[1]) {
				tipped++
			}
		}
		g, err := accounting.Epsilon([]dp.Event{j.BudgetRounds(q)(3)}, j.Delta(), dp.RDP)
		if err != nil {
			t.Fatal(err)
		}
		share := float64(tipped) / rounds
		t.Logf("%d: %d of %d rounds hang on the device; %v", population, tipped, rounds, g)
		most := g.LeavingDelta / (float64(j.Rounds) * j.Cohort.SamplingRate)
		if share > most || (g.LeavingDelta > 0) != strings.Contains(g.String(), "assumes that no device leaves") {
			t.Errorf("%d: %v of the rounds in which the device is drawn hang on its staying, said is %v: %v", population, share, most, g)
		}
		if population == 4000 && tipped < 4 {
			t.Errorf("%d of %d rounds: no test", tipped, rounds)
		}
	}
}
