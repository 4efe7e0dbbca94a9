package job

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/secagg"
)

func sampledJob(population int, rate, dropout float64) Job {
	j := Default()
	j.Name, j.Labels, j.Rounds = "x", []string{"a", "b"}, 200
	j.Cohort.Population, j.Cohort.SamplingRate, j.Cohort.Dropout = population, rate, dropout
	j.Cohort.MaxEnrolled = 2 * population
	j.Privacy.Delta = 1e-6
	return j
}

// tips is how likely one device's coin decides over its shard in a round of so many
// groups, ready of its population being there: by sums over others drawn and others left, apart
// from package dp.
func tips(t *testing.T, j Job, ready, groups int) float64 {
	t.Helper()
	pmf := func(n, k int, p float64) float64 {
		lg := func(x float64) float64 { v, _ := math.Lgamma(x + 1); return v }
		return math.Exp(lg(float64(n)) - lg(float64(k)) - lg(float64(n-k)) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	}
	hostile := math.Ceil(j.Shard.Corrupt * float64(j.Cohort.Population))
	stay := (1 - j.Cohort.Dropout) * (1 - hostile/float64(ready-1))
	masking, sum := j.Masking(), 0.0
	p := j.Cohort.SamplingRate / float64(groups)
	for g := 0; g < ready && float64(g) < 20+3*float64(ready)*p; g++ {
		chance := pmf(ready-1, g, p)
		if chance < 1e-16 {
			continue
		}
		short := 1.0
		if n := g + 1; n >= j.Shard.Floor && n <= j.Shard.Size {
			if th, err := masking.Threshold(n); err == nil {
				short = 0
				for s := 0; s < max(th, j.Shard.Floor) && s <= g; s++ {
					short += pmf(g, s, stay)
				}
			} else if !errors.Is(err, secagg.ErrConfig) {
				t.Fatal(err)
			}
		}
		sum += chance * short
	}
	return sum
}

// TestQuorum: whatever the fleet and its dropouts, what a coin can tip at the quorum is
// in the delta that is kept for it, or in what every round is accounted with.
func TestQuorum(t *testing.T) {
	for _, c := range []struct {
		population    int
		rate, dropout float64
		semiHonest    bool
		size          int  // given
		free          bool // of noise
	}{
		{4000, 0.01, 0.1, false, 0, false}, {10_000, 0.01, 0.1, false, 0, false}, {10_000, 0.01, 0.02, false, 0, true},
		{10_000, 0.01, 0.1, true, 0, true}, {20_000, 0.01, 0.1, false, 0, true}, {20_000, 0.01, 0.1, false, 64, false},
		{100_000, 0.01, 0.2, false, 0, true}, {1_000_000, 0.01, 0.1, false, 0, true}, {2000, 0.2, 0.3, true, 0, true}, {300, 0.5, 0.05, false, 0, true},
	} {
		j := sampledJob(c.population, c.rate, c.dropout)
		j.Shard.SemiHonest, j.Shard.Size = c.semiHonest, c.size
		j = j.Derived()
		name := fmt.Sprintf("%+v: size %d, floor %d", c, j.Shard.Size, j.Shard.Floor)
		if err := j.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		q, err := j.Quorum()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		t.Logf("%s: %+v", name, q)
		if (q.Hit == 0) != c.free || q.Ready < 2 || q.Ready > c.population {
			t.Errorf("%s: %+v", name, q)
		}
		if _, ok := q.Allows(j, c.population, q.Ready-1); ok {
			t.Errorf("%s: a round is drawn below the quorum", name)
		}
		drawn := 0
		for _, ready := range []int{q.Ready, (q.Ready + c.population) / 2, c.population} {
			groups, ok := q.Allows(j, c.population, ready)
			if !ok {
				continue // at an awkward size it waits
			}
			drawn++
			hit := tips(t, j, ready, groups)
			if q.Hit > 0 && hit > q.Hit || q.Hit == 0 && hit*c.rate*float64(j.Draws()) > 0.9*j.FloorDelta() {
				t.Errorf("%s: with %d ready in %d groups a coin tips a round with probability %v, accounted %v", name, ready, groups, hit, q.Hit)
			}
		}
		if drawn < 2 {
			t.Errorf("%s: no round is drawn at %d of 3 numbers above the quorum", name, 3-drawn)
		}
		// Fewer active devices: none, or as little is tipped.
		if groups, ok := q.Allows(j, c.population*9/10, c.population*9/10); ok {
			if hit := tips(t, j, c.population*9/10, groups); q.Hit > 0 && hit > q.Hit {
				t.Errorf("%s: of fewer devices a coin tips %v", name, hit)
			}
		}
	}
}

// Hostile devices that are there stay away when they are drawn: they are not counted on.
func TestQuorumCountsOnTheHonest(t *testing.T) {
	j := sampledJob(20_000, 0.01, 0.05)
	j.Shard.SemiHonest, j.Shard.BreachBits, j.Shard.Size, j.Shard.Floor, j.Cohort.Floor = true, 0, 341, 8, 8
	least := 0
	for _, corrupt := range []float64{0.01, 0.05, 0.1, 0.2} {
		j.Shard.Corrupt = corrupt
		q, err := j.Quorum()
		if err != nil || q.Hit != 0 {
			t.Fatalf("%v hostile: %+v, %v", corrupt, q, err)
		}
		honest := float64(q.Ready) - corrupt*20_000
		if q.Ready <= least || honest < 8/0.01 {
			t.Errorf("%v hostile: %d must be there, of %d less", corrupt, q.Ready, least)
		}
		// All hostile ones refuse for ever: of the honest enough are drawn and stay.
		draws := float64(j.Draws()) * j.Cohort.SamplingRate
		if few := draws * dp.CohortFloorFailure(int(honest)-1, 0.01*0.95, 8, 1); few > j.FloorDelta() {
			t.Errorf("%v hostile: a cohort hangs on one coin with %v, allowed %v", corrupt, few, j.FloorDelta())
		}
		least = q.Ready
	}
}

// A quorum that the job names is kept, and what that costs is accounted.
func TestQuorumThatIsNamed(t *testing.T) {
	j := sampledJob(20_000, 0.01, 0.1).Derived()
	free, err := j.Quorum()
	if err != nil || free.Hit != 0 {
		t.Fatalf("%+v, %v", free, err)
	}
	for named, costs := range map[int]bool{free.Ready / 2: true, free.Ready + 1000: false, j.Cohort.Population: false} {
		j.Cohort.Quorum = named
		q, err := j.Quorum()
		if err != nil || q.Ready != named || (q.Hit > 0) != costs {
			t.Errorf("quorum %d: %+v, %v", named, q, err)
		}
	}
}

// What is promised nothing, or has no coins, has no quorum to keep.
func TestQuorumWithoutCoins(t *testing.T) {
	j := sampledJob(24, 1, 0)
	j.Privacy.Delta = 0
	j = j.Derived()
	if q, err := j.Quorum(); err != nil || q != (Quorum{Ready: j.Shard.Floor}) || j.Shard.Size != 64 || j.Cohort.Dropout != 0 {
		t.Errorf("%+v, %v: %+v", q, err, j.Shard)
	}
	if j = sampledJob(10, 0.3, 0); true {
		j.Privacy.None, j.Privacy.Delta = true, 0
	}
	j = j.Derived()
	if q, err := j.Quorum(); err != nil || q.Hit != 0 || q.Ready != j.Shard.Floor {
		t.Errorf("without privacy: %+v, %v", q, err)
	}
	j = sampledJob(30, 0.3, 0.3).Derived()
	if _, err := j.Quorum(); !errors.Is(err, ErrInvalid) {
		t.Errorf("nine of thirty, of which a third leaves: %v", err)
	}
	// What is refused says what would do, and that does.
	j = sampledJob(10_000, 0.01, 0.38)
	_, err := j.Derived().Quorum()
	remedy, _ := RemedyOf(j.advise(err))
	if got := fmt.Sprint(remedy); err == nil || got != "set shard.semi_honest: true, which would do" {
		t.Fatalf("%v: %s", err, got)
	}
	j.Shard.SemiHonest = true
	if q, err := j.Derived().Quorum(); err != nil {
		t.Errorf("that does not do: %+v, %v", q, err)
	}
	// What costs noise says what costs less.
	j = sampledJob(10_000, 0.01, 0.1).Derived()
	now, err := j.Quorum()
	shard, q, ok := j.Cheaper()
	if err != nil || now.Hit == 0 || !ok || q.Hit != 0 || !shard.SemiHonest {
		t.Errorf("%+v, %v: cheaper is %+v with %+v, %v", now, err, shard, q, ok)
	}
}

// The hostile are a share of the fleet, and may all be among those who are there: a
// smaller attendance, or a fleet of which many stay away, holds as many of them.
func TestQuorumHoldsHostileDevicesToTheFleet(t *testing.T) {
	j := sampledJob(20_000, 0.01, 0.1)
	j.Shard.Size, j.Shard.Floor, j.Cohort.Floor = 341, 10, 10
	for _, c := range []struct {
		active, ready int
		want          float64
	}{
		{20_000, 20_001, 1 - 0.9*0.95}, {20_000, 10_001, 1 - 0.9*0.9}, {12_000, 10_001, 1 - 0.9*0.9}, {40_000, 20_001, 1 - 0.9*0.9}, {20_000, 500, 1},
	} {
		if got := j.Loss(c.active, c.ready); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d of %d active devices are there: a loss of %v, want %v", c.ready, c.active, got, c.want)
		}
	}
	q := Quorum{Hit: 0.5}
	_, few := j.groups(12_000, 12_000)
	_, all := j.groups(20_000, 12_000)
	if few < all*(1-1e-9) {
		t.Errorf("of a fleet of which 8,000 are gone a coin tips %v, with them %v", few, all)
	}
	if q.Hit = 0.99 * all; q.Hit > 0 {
		if _, ok := q.Allows(j, 12_000, 12_000); ok {
			t.Error("with the honest gone a round is drawn that hangs on a coin more often than is accounted")
		}
	}
}

// A round may show a coin as often as was accounted, and no more.
func TestQuorumAllowsWhatIsAccounted(t *testing.T) {
	j := sampledJob(2000, 0.05, 0.1).Derived()
	q, err := j.Quorum()
	if err != nil || q.Hit == 0 {
		t.Fatalf("%+v, %v: no hits are accounted", q, err)
	}
	_, hit := j.groups(j.Cohort.Population, j.Cohort.Population)
	for share, want := range map[float64]bool{1: true, 0.99: false, 0.51: false} {
		q.Sees, q.Hit = 1, hit*share
		if _, ok := q.Allows(j, j.Cohort.Population, j.Cohort.Population); ok != want {
			t.Errorf("%v of the probability was accounted: allowed %v", share, ok)
		}
	}
}
