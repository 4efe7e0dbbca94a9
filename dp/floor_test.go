package dp

import (
	"math"
	"testing"
)

// The chance that a coin decides is a chance, however large that of a small cohort is:
// a cap before the coin's own probability would let rates below delta pass.
func TestFloorDeltaIsOfAllRounds(t *testing.T) {
	if d := FloorDelta(2, 1e-3, 5, 500); math.Abs(d-0.5) > 1e-6 {
		t.Errorf("500 rounds in which nothing but a coin of 1e-3 decides: %v, want 0.5", d)
	}
	if d := FloorDelta(2, 1e-3, 5, 5000); d != 1 {
		t.Errorf("5,000 of them: %v", d)
	}
}
