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
	for _, want := range []string{"epsilon up to 2", "delta 1e-06", "tight accountant", "add/remove", "do not see who takes part"} {
		if !strings.Contains(claim, want) {
			t.Errorf("%q does not say %q", claim, want)
		}
	}
	j.Privacy.SamplingRate, j.Privacy.Accountant = 1, ""
	if claim := j.claim(); strings.Contains(claim, "do not see") || strings.Contains(claim, "accountant") {
		t.Errorf("%q claims what the job does not", claim)
	}
}

// A job without noise says so to the device's owner.
func TestClaimWithoutNoise(t *testing.T) {
	j := &job{Job: wire.Job{Name: "x", Privacy: wire.Privacy{SamplingRate: 1}}}
	if got := j.claim(); !strings.Contains(got, "not private: nothing is added") {
		t.Error(got)
	}
	j.Privacy.NoiseMultiplier = 1
	if got := j.claim(); !strings.Contains(got, "reproducible") {
		t.Error(got)
	}
}
