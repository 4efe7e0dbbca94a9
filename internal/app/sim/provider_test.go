package sim

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/job"
)

// A fleet whose devices hold providers: each provider is clipped by itself to a
// norm that follows them, a device that holds too many stays out, and the ledger
// is about one provider.
func TestProvidersWithAnAdaptiveClipNorm(t *testing.T) {
	const n, providers = 6, 5
	cfg := config(t, n)
	j := &cfg.Coordinator.Job
	j.Cohort.Population = n - 1 // the last client's data does not fit, so it does not enrol
	j.Adapter.RankMin = 2
	j.Wire.Uplink = "fixed32"
	j.Providers = job.Providers{Max: providers, SamplingRate: 1}
	j.Clipping = job.Clipping{Adaptive: true, Quantile: 0.5, Rate: 0.2, CountNoise: 1e-3}
	for i := range cfg.Clients {
		set := &dataset.Set{Labels: j.Labels}
		for p := range providers + i/(n-1) { // the last device has one too many
			set.Examples = append(set.Examples, dataset.Example{Text: "fox", Label: p % 2, Provider: fmt.Sprintf("%d of %d", p, i)})
		}
		cfg.Clients[i] = set
	}
	// Far beyond the norm of 0.1, so that all are clipped: the norm grows by
	// exp(0.2/2).
	cfg.Trainer = constant(1)
	j.Privacy.ClipNorm = 0.1
	j.Deadlines.Gather = time.Minute // all five are in every round, however long they wait for a processor
	r, err := play(t, cfg)
	ok(t, err)
	if r.Rounds != 3 {
		t.Fatalf("%d rounds", r.Rounds)
	}
	step := math.Exp(0.2 * 0.5)
	if want := 0.1 * step * step * step; math.Abs(r.ClipNorm/want-1) > 0.01 {
		t.Errorf("clip norm %v after three rounds, want %v", r.ClipNorm, want)
	}
	for i, d := range r.Devices {
		if i < n-1 && (d.Err != nil || d.Committed != 3) || i == n-1 && !errors.Is(d.Err, edge.ErrData) {
			t.Errorf("device %d: %+v", i, d)
		}
	}
	l, err := store.ReadLedger(cfg.Coordinator.Dir)
	ok(t, err)
	// Every provider of five devices moves each of d values by clip/sqrt(d).
	var want float64
	norm := 0.1
	for _, e := range l.Entries {
		want += norm / math.Sqrt(float64(r.Adapter.Layout().Size(2)))
		norm *= step
		if e.Event.ProviderRate != 1 || e.Delivered.Adjacency != dp.AdjacencyProvider {
			t.Errorf("entry %+v", e)
		}
	}
	if got := firstColumns(r.Adapter); math.Abs(got/want-1) > 0.03 {
		t.Errorf("adapter moved by %.5f, want %.5f", got, want)
	}
}
