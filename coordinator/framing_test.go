package coordinator

import (
	"slices"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
)

// TestHostileFraming: two devices of 32 read in their rosters whether a victim is in their shard,
// and make the shard's sum leave its range only then. The victim is in every alarmed shard, and
// is not excluded for it.
func TestHostileFraming(t *testing.T) {
	const n, rounds, victim = 32, 25, 9
	job := loud(n, rounds)
	job.Shard.Size, job.Shard.Floor, job.Shard.Corrupt, job.Cohort.Floor = 16, 8, 0.05, n
	dir := t.TempDir()
	var framed [32]byte
	tb := setTable(t, Config{Job: job, Dir: dir}, n, func(i int, p *player) {
		if i == victim {
			framed = p.id()
		}
		if i != 3 && i != 20 {
			return
		}
		with := false
		p.roster = func(_ *wire.Plan, r *secagg.Roster) {
			with = slices.ContainsFunc(r.Entries, func(e secagg.Entry) bool { return e.Identity == framed })
		}
		p.before = func(_ *player, _ int, m wire.Message) (wire.Message, bool) {
			if u, ok := m.(*wire.Update); ok && with {
				for k := len(u.Data) / 2; k < len(u.Data); k++ {
					u.Data[k] ^= 0xa5
				}
			}
			return m, false
		}
	})
	if err := tb.run(); err != nil && !dealerTold(tb.players[victim]) {
		t.Fatal(err)
	}
	if alarms := counted(t, tb.c.metrics.Alarms); alarms < 5 {
		t.Errorf("%d alarms: the attack is none", alarms)
	}
	for i, p := range tb.players {
		if why := excludedAs(t, dir, p); why != "" && i != 3 && i != 20 {
			t.Errorf("player %d is excluded after %d rounds: %s", i, len(p.plans), why)
		}
	}
}
