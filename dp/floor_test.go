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
	// A coin of .3 among ten decides where at most one of the nine others is in.
	if d, want := FloorDelta(10, 0.3, 2, 3), 3*0.3*(math.Pow(0.7, 9)+9*0.3*math.Pow(0.7, 8)); math.Abs(d/want-1) > 1e-6 {
		t.Errorf("three rounds of ten devices: %v, want %v", d, want)
	}
	if d := FloorDelta(2, 1e-3, 5, 5000); d != 1 {
		t.Errorf("5,000 of them: %v", d)
	}
}
