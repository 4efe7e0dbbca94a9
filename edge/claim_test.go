package edge

import (
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// What a device's owner is told has the number's delta, accountant and adjacency,
// and from whom it holds.
func TestClaimIsWhole(t *testing.T) {
	j := &job{Job: wire.Job{Name: "x", Privacy: wire.Privacy{Private: true, SamplingRate: 0.1, Delta: 1e-6, Budget: 2, Accountant: "tight"}}}
	claim := j.claim()
	for _, want := range []string{"epsilon up to 2", "delta 1e-06", "tight accountant", "zero-out", "do not see who takes part"} {
		if !strings.Contains(claim, want) {
			t.Errorf("%q does not say %q", claim, want)
		}
	}
	j.Privacy.SamplingRate, j.Privacy.Accountant, j.Privacy.Observer = 1, "", wire.ObserverParticipants
	if claim := j.claim(); strings.Contains(claim, "do not see") || !strings.Contains(claim, "also against those who see who takes part") || strings.Contains(claim, "accountant") {
		t.Errorf("%q claims what the job does not", claim)
	}
	j.Privacy.SamplingRate, j.Privacy.Observer, j.CorruptPPM = 0.1, wire.ObserverCoalition, 50_000
	if claim := j.claim(); !strings.Contains(claim, "also against 5 % of the devices that tell") {
		t.Errorf("%q does not name the coalition", claim)
	}
}

// A job without noise says so to the device's owner.
func TestClaimWithoutNoise(t *testing.T) {
	j := &job{Job: wire.Job{Name: "x", Privacy: wire.Privacy{SamplingRate: 1}}}
	if got := j.claim(); !strings.Contains(got, "not private: no noise is added") {
		t.Error(got)
	}
	j.Privacy.NoiseMultiplier = 1
	if got := j.claim(); !strings.Contains(got, "reproducible") {
		t.Error(got)
	}
}
