package accounting

import (
	"errors"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// A device that is drawn takes another's place, so that what is promised cannot be about
// whether it is enrolled: its guarantee says so, and its epsilon is that of every round.
func TestFixedCohortsAreAccountedWithoutAmplification(t *testing.T) {
	every := dp.Rounds(dp.Mechanism{SamplingRate: 1, NoiseMultiplier: 3}, 10)
	fixed := every
	fixed.Fixed = true
	want, err := Epsilon([]dp.Event{every}, 1e-6, dp.Tight)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Epsilon([]dp.Event{fixed}, 1e-6, dp.Tight)
	if err != nil {
		t.Fatal(err)
	}
	if got.Epsilon != want.Epsilon || got.Adjacency != dp.ZeroOut(dp.AdjacencyAddRemove) || want.Adjacency != got.Adjacency {
		t.Errorf("fixed: %v\nall:   %v", got, want)
	}
	fixed.SamplingRate = 0.5
	if err := fixed.Check(); !errors.Is(err, dp.ErrEvent) {
		t.Errorf("amplified: %v", err)
	}
}

// Of a provider's presence in a device that is drawn, too.
func TestFixedCohortsOfProviders(t *testing.T) {
	fixed := dp.GroupSampling{ClientRate: 1, ProviderRate: 0.5}.Rounds(3, 10)
	without, err := Epsilon([]dp.Event{fixed}, 1e-6, dp.RDP)
	if err != nil {
		t.Fatal(err)
	}
	fixed.Fixed = true
	g, err := Epsilon([]dp.Event{fixed}, 1e-6, dp.RDP)
	if err != nil {
		t.Fatal(err)
	}
	if g.Adjacency != dp.ZeroOut(dp.AdjacencyProvider) || without.Adjacency != dp.AdjacencyProvider {
		t.Errorf("%q; by coins %q", g.Adjacency, without.Adjacency)
	}
}
