//go:build !race

package kernel

import (
	"runtime/debug"
	"testing"
)

// TestLoopAllocates: a run takes its buffers from those of the runs before.
func TestLoopAllocates(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would empty the pools
	team := NewTeam(2)
	defer team.Stop()
	s := geluGradient(64, 512)
	pl, err := PrepareLoop(s.Loop, 4*s.words)
	if err != nil {
		t.Fatal(err)
	}
	memory := make([]float32, s.words)
	for _, with := range []*Team{nil, team} {
		for _, k := range append(Native(), Plain) {
			n := testing.AllocsPerRun(50, func() {
				if err := k.RunLoop(t.Context(), pl, bytesOf(memory), with); err != nil {
					t.Fatal(err)
				}
			})
			if n >= 8 { // a worker that is made anew takes twice as many
				t.Errorf("%s, team of %d: %v allocations a run", k.name, with.size(), n)
			}
		}
	}
}
