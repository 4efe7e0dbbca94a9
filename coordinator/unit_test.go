package coordinator

import (
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job"
)

// TestProvidersAddUp: a device sends the sum of its providers' vectors, beyond
// one vector's symbols; the mean is over the expected number of providers, and
// the ledger is about one of them.
func TestProvidersAddUp(t *testing.T) {
	const n = 4
	j := loud(n, 2)
	j.Providers = job.Providers{Max: 7, Expected: 5, SamplingRate: 0.8}
	dir := t.TempDir()
	tb := setTable(t, Config{Job: j, Dir: dir}, n, func(i int, p *player) {
		p.delta, p.units = fixedDelta(0.05), []int{7, 7, 7, 3}[i]
	})
	if err := tb.run(); err != nil {
		t.Fatal(err)
	}
	// 24 contributions a round over an expected 4*5*0.8 = 16.
	if got := moved(tb); math.Abs(got-2*0.05*24/16) > 0.012 {
		t.Errorf("moved by %v, want %v", got, 2*0.05*24/16)
	}
	l, err := store.ReadLedger(dir)
	if err != nil || len(l.Entries) != 2 {
		t.Fatal(err)
	}
	for _, e := range l.Entries {
		v, err := tb.c.t.Vector(3, 1, [32]byte{})
		if err != nil {
			t.Fatal(err)
		}
		if e.Event.B2 != v.Lattice.B2() || e.Event.ProviderRate != 0.8 || e.Event.Hidden || e.Delivered.Adjacency != dp.AdjacencyProvider || e.Visible != nil {
			t.Errorf("entry %+v", e)
		}
	}
	plan := tb.players[0].plans[0]
	if j := tb.players[0].job; j.Providers != 7 || j.ProviderRate != 0.8 || plan.ClipNorm != 1 || plan.CountCoordinates != 0 {
		t.Errorf("devices are told %+v, %+v", j, plan)
	}
}

// adaptiveJob's clip norm moves by a step that the noise hardly changes.
func adaptiveJob(n, rounds int) Job {
	j := loud(n, rounds)
	j.Clipping = job.Clipping{Adaptive: true, Quantile: 0.5, Rate: 0.2, CountNoise: 1e-3}
	return j
}

// TestAdaptiveClip: the clip norm of each round follows from the noisy count of
// the one before, over the fixed denominator; devices are told, and a restart
// goes on from it.
func TestAdaptiveClip(t *testing.T) {
	const n = 4
	dir := t.TempDir()
	var keys []*player
	norms := []float64{1}
	for start := range 2 {
		job := adaptiveJob(n, 4)
		tb := setTable(t, Config{Job: job, Dir: dir}, n, func(i int, p *player) {
			p.delta = fixedDelta(10) // beyond any norm here
			if start == 1 {
				p.key = keys[i].key
			}
			p.before = func(p *player, turn int, m wire.Message) (wire.Message, bool) {
				// In the second round one device goes before it sends its update.
				gone := i == 0 && turn == 3 && p.plan.Version == 1
				return m, gone
			}
		})
		keys = tb.players
		if start == 0 {
			tb.onProgress = func(p monitor.Status) {
				if p.State == monitor.StateCommitted && p.Version == 2 {
					tb.stop()
				}
			}
		}
		if got := tb.c.core.ClipNorm(); math.Abs(got-norms[len(norms)-1]) > 0.003 {
			t.Errorf("start %d: clip norm %v, want %v", start, got, norms[len(norms)-1])
		}
		if err := tb.run(); start == 1 && err != nil {
			t.Fatal(err)
		}
		// Nobody was within. With all four in, b = 0: C grows by exp(0.2*0.5). With
		// one absent, who counts as a half, b = 1/8: by exp(0.2*0.375). A mean over the
		// realised three would make b = 0 again.
		if start == 0 {
			norms = append(norms, math.Exp(0.1), math.Exp(0.1+0.075))
		} else {
			norms = append(norms, math.Exp(0.2+0.075), math.Exp(0.3+0.075))
		}
		if got := tb.c.core.ClipNorm(); math.Abs(got-norms[len(norms)-1]) > 0.003 {
			t.Errorf("start %d: clip norm %v in the end, want %v", start, got, norms[len(norms)-1])
		}
		for _, p := range tb.players[1:] {
			for _, plan := range p.plans {
				if math.Abs(plan.ClipNorm-norms[plan.Version]) > 0.003 || plan.CountCoordinates == 0 {
					t.Errorf("plan of step %d has clip norm %v, want %v", plan.Version, plan.ClipNorm, norms[plan.Version])
				}
			}
		}
	}
	l, err := store.ReadLedger(dir)
	if err != nil || len(l.Entries) != 4 {
		t.Fatalf("%d entries, %v", len(l.Entries), err)
	}
	for _, e := range l.Entries { // the count is inside the one release
		if e.Event.Kind != dp.KindRelease || int(e.Event.Dim) <= 128 {
			t.Errorf("event %+v", e.Event)
		}
	}
}

// counted is what a counter has come to.
func counted(t *testing.T, c prometheus.Counter) int64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return int64(m.GetCounter().GetValue())
}
