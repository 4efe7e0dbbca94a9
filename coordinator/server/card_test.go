package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/card"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// TestCard: what is served is signed by a key of the announcement, says the same as /v1/job and the announcement, and names the
// fleet's budget.
func TestCard(t *testing.T) {
	anonymous := tinyJob(3)
	anonymous.Shard.Anonymous = true
	sampled := tinyJob(40)
	sampled.Cohort.SamplingRate, sampled.Cohort.Floor, sampled.Privacy.SimulatedPopulation, sampled.Privacy.SimulatedCohort = 0.5, 0, 0, 0
	for name, j := range map[string]coordinator.Job{"rosters with names": tinyJob(3), "without": anonymous, "coins": sampled} {
		c, s := serve(t, j, Config{FleetBudget: func() (float64, float64) { return 7, 1e-6 }})
		var about coordinator.About
		if w := ask(s.Handler(), "GET", "/v1/job"); json.Unmarshal(w.Body.Bytes(), &about) != nil {
			t.Fatalf("%s: %s", name, w.Body)
		}
		w := ask(s.Handler(), "GET", card.Path)
		announced, err := wire.ParseJob(c.Announced())
		ok(t, err)
		read, err := card.Open(w.Body.Bytes(), card.Key(announced))
		if err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %v: %d %s", name, err, w.Code, w.Body)
		}
		if err := read.Holds(announced, wire.TaskID(c.Announced())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		visible := about.Delivered
		if about.Visible != nil {
			visible = about.Visible
		}
		public := about.Delivered
		if about.Public != nil {
			public = about.Public
		}
		p, _ := read.Against(dp.Public)
		v, _ := read.Against(dp.Participants)
		if p.Epsilon != public.Epsilon || v.Epsilon != visible.Epsilon || !(v.Epsilon > 0) || read.Guarantee.Fleet.Epsilon != 7 {
			t.Errorf("%s: %+v, the job says %+v", name, read.Guarantee, about.Guarantees)
		}
		ok(t, c.Close())
	}
	seeded := tinyJob(3)
	seeded.Privacy.None = true
	c, s := serve(t, seeded, Config{})
	if w := ask(s.Handler(), "GET", card.Path); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "not private") {
		t.Errorf("of a job that is not private: %d %s", w.Code, w.Body)
	}
	ok(t, c.Close())
}
