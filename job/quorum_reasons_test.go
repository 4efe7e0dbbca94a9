package job

import (
	"math"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// What one device's coin can tip is no less than each of its reasons by itself, and a
// round is drawn only where it is within what is kept or accounted for it.
func TestQuorumCountsEveryReason(t *testing.T) {
	j := sampledJob(400, 0.1, 0.1).Derived()
	j.Shard.Floor, j.Shard.Size, j.Cohort.Floor = 12, 128, 30
	if d := j.Draws(); d != 250 || (Job{Rounds: 5}).Draws() != 7 {
		t.Errorf("%d draws", d)
	}
	few := dp.FloorDelta(400, 0.1, 30, 1) / 0.1
	if _, hit := j.Groups(400); few < 1e-3 || hit < few {
		t.Errorf("a cohort below its floor: %v of %v", few, hit)
	}
	j.Cohort.Floor = 12
	_, hit := j.Groups(150) // 15 are drawn, of whom the honest that stay are too few
	short := dp.Attendance{Ready: 150, Hostile: 20, Rate: 0.1, Dropout: 0.1}.Short(12)
	if hit < min(1, short) || short < 0.1 {
		t.Errorf("too few that stay: %v of %v", short, hit)
	}
}

// With fewer active devices than the population the same must hold of them: their
// floors are missed oftener.
func TestQuorumOfFewerActive(t *testing.T) {
	j := sampledJob(10_000, 0.01, 0.1)
	j.Cohort.Floor, j.Shard.SemiHonest = 40, true
	j = j.Derived()
	q, err := j.Quorum()
	if err != nil || q.Hit != 0 {
		t.Fatalf("%+v, %v", q, err)
	}
	if _, ok := q.Allows(j, 10_000, q.Ready); !ok {
		t.Error("the quorum of all is not enough")
	}
	if _, ok := q.Allows(j, 10_000, q.Ready-1); ok {
		t.Error("fewer than the quorum may draw")
	}
	k := j
	k.Cohort.Population = q.Ready
	groups, hit := k.Groups(q.Ready)
	want := float64(j.Draws())*0.01*hit <= 0.9*j.FloorDelta()
	if got, ok := q.Allows(j, q.Ready, q.Ready); ok != want || got != groups {
		t.Errorf("%d active: %v in %d groups, want %v in %d", q.Ready, ok, got, want, groups)
	}
	// At the quorum what may show is within the floors' part, less the test's.
	_, hit = j.Groups(q.Ready)
	if spent := float64(j.Draws()) * 0.01 * hit; spent > 0.9*j.FloorDelta() || j.FloorDelta()+j.DropoutAlpha() > j.Delta() || math.Abs(j.DropoutAlpha()/j.FloorDelta()-0.1) > 1e-9 {
		t.Errorf("%v of %v", spent, j.FloorDelta())
	}
	if _, ok := (Quorum{Ready: 2, Hit: hit * 0.7}).Allows(j, 10_000, q.Ready); ok {
		t.Error("more may show than is accounted")
	}
}
