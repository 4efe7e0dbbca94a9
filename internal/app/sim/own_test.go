package sim

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/quant"
)

// TestOwnNoiseUnderDropouts: whoever vanishes at whatever turn, what is released has the
// noise of as many devices as is counted on, or nothing is: real turns, real shards, and
// devices that train nothing, so that the release is their noise. With n values the
// variance is estimated to sqrt(2/n); 5 of those standard deviations are a chance of 1e-6.
func TestOwnNoiseUnderDropouts(t *testing.T) {
	const n, floor, z = 12, 6, 2.0
	released, charged := 0, 0
	for turn := 2; turn <= 5; turn++ {
		for _, gone := range []int{1, 3, 4, 6, 7} {
			name := fmt.Sprintf("%d vanish at turn %d", gone, turn)
			cfg := config(t, n)
			cfg.Trainer, cfg.Seed = constant(0), []byte("a seed of sixteen bytes and more")
			cfg.Coordinator.Seed, cfg.AcceptNotPrivate = cfg.Seed, true
			j := &cfg.Coordinator.Job
			j.Rounds, j.Adapter.RankMin, j.Wire.Uplink = 1, 2, "nf4"
			j.Cohort.Floor, j.Cohort.MaxAbandoned, j.Shard.Size = floor, 1, 6
			j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 0, 0
			j.Privacy.Noise, j.Privacy.NoiseMultiplier, j.Privacy.Epsilon = "devices", z, 50
			j.Deadlines.Gather, j.Deadlines.Reconnect = 2*time.Second, 500*time.Millisecond // who vanishes is waited for
			cfg.Faults = map[int]Fault{}
			for i := range gone {
				cfg.Faults[i] = Fault{Version: 1, Turn: turn, Kind: Vanish}
			}
			core, err := core.New(*j, cfg.Coordinator.Base, cfg.Seed)
			ok(t, err)
			before, own := core.Adapter().Slice(2), core.Own()
			r, err := play(t, cfg)
			if errors.Is(err, coordinator.ErrAbandoned) {
				charged++
				continue
			}
			ok(t, err)
			released++
			after, square := r.Adapter.Slice(2), 0.0
			for i, x := range after {
				square += float64(x-before[i]) * float64(x-before[i])
			}
			scheme, err := quant.Lookup("nf4")
			ok(t, err)
			l, err := quant.NewLattice(scheme, len(after), j.Privacy.ClipNorm, [32]byte{})
			ok(t, err)
			one, err := own.Variance(l.B2())
			ok(t, err)
			scale := l.Delta() / (n * math.Erf(scheme.ClipPoint()/math.Sqrt2))
			devices := square / float64(len(after)) / (scale * scale * one.Float())
			off := 1 - 5*math.Sqrt(2/float64(len(after)))
			t.Logf("%s: the noise of %.1f devices over %d values, %d are counted on", name, devices, len(after), own.Honest)
			if devices < off*float64(own.Honest) || devices > n*(2-off) {
				t.Errorf("%s: the noise of %.1f devices, %d are counted on", name, devices, own.Honest)
			}
		}
	}
	if released < 5 || charged < 2 {
		t.Errorf("%d patterns were released and %d were not: these are not all", released, charged)
	}
}
