package timing

import (
	"testing"
	"time"
)

// TestDeadlinesByShard: each runs for itself, of the same state the earlier
// counts, and those of the cohort end with the cut.
func TestDeadlinesByShard(t *testing.T) {
	var d Deadlines
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	if got := d.Expired(at(9)); got != nil || !d.next.IsZero() {
		t.Errorf("of none, %v passed", got)
	}
	d.Arm(-1, 1, at(1))
	d.Arm(0, 2, at(5))
	d.Arm(1, 2, at(3))
	d.Arm(1, 2, at(9)) // no later than it was
	d.Arm(0, 2, at(4)) // hurried
	d.Arm(2, 3, at(8))
	d.Arm(2, 4, at(20)) // of another state: the one before is void
	if got := d.Expired(at(2)); got != nil {
		t.Errorf("after 2 s: %v", got)
	}
	if got := d.Expired(at(4)); len(got) != 2 || got[0].Shard != 0 || got[1].Shard != 1 || d.next != at(20) {
		t.Errorf("after 4 s: %v, next %v", got, d.next)
	}
	if got := d.Expired(at(20)); len(got) != 1 || got[0].Shard != 2 || got[0].State != 4 || !d.next.IsZero() {
		t.Errorf("after 20 s: %v", got)
	}
}
