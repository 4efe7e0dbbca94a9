package kernel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestTeam has one team compute products of every size, one behind the other and with rests that its helpers fall
// asleep in, on as many processors as there are and on one.
func TestTeam(t *testing.T) {
	for _, processors := range []int{runtime.GOMAXPROCS(0), 1} {
		t.Run(fmt.Sprint(processors), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			testTeam(t)
		})
	}
}

func testTeam(t *testing.T) {
	rnd := rand.New(rand.NewPCG(16, 17))
	team := NewTeam(4)
	defer team.Stop()
	for i := range 60 {
		m, n, k := 1+rnd.IntN(200), 1+rnd.IntN(200), 1+rnd.IntN(100)
		p := Product{B: 4 * m * k, C: 4 * (m*k + n*k), Rows: []Axis{{m, k, 0, n}}, Cols: []Axis{{n, 0, 1, 1}},
			Terms: []Axis{{k, 1, n, 0}}}
		got := make([]float32, m*k+n*k+m*n)
		fill(rnd, bytesOf(got), .01)
		want := slices.Clone(got)
		define(&p, bytesOf(want))
		pl, err := Prepare(p, 4*len(got))
		if err != nil {
			t.Fatal(err)
		}
		if i%8 == 0 {
			time.Sleep(2 * awake)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if i%8 == 1 {
			cancel()
		}
		if err := Plain.Run(ctx, pl, bytesOf(got), team); !errors.Is(err, ctx.Err()) {
			t.Fatal(err)
		}
		if cancel(); i%8 != 1 {
			same(t, fmt.Sprintf("product %d, %d x %d x %d", i, m, n, k), bytesOf(got), bytesOf(want))
		}
	}
}

// TestTeamStops starts teams that never work, or are done at once, and ends them.
func TestTeamStops(t *testing.T) {
	others := goleak.IgnoreCurrent()
	for i := range 20 {
		team := NewTeam(1 + i%4)
		if i%5 == 4 {
			time.Sleep(2 * awake)
		}
		team.Stop()
	}
	goleak.VerifyNone(t, others)
}

// TestCut: blocks keep all workers busy, are as square as may be, and no smaller than need be.
func TestCut(t *testing.T) {
	for _, c := range []struct{ entries, rows, cols, workers, byRows, byCols int }{
		{1, 512, 512, 1, 1, 1},
		{1, 512, 2048, 1, 1, 4}, // for the cache
		{1, 512, 128, 2, 2, 1},
		{1, 128, 512, 2, 1, 2},
		{1, 512, 2048, 2, 1, 4},
		{1, 512, 512, 4, 2, 2},
		{1, 512, 16, 4, 4, 1},
		{1, 16, 512, 4, 1, 4},
		{64, 32, 32, 2, 1, 1},
		{3, 64, 64, 2, 2, 1},
		{1, 3, 5, 7, 1, 1},
	} {
		j := &job{Plan: &Plan{entries: c.entries, rows: c.rows, n: c.cols}}
		j.cut(c.workers)
		if j.rowBlocks != c.byRows || j.colBlocks != c.byCols {
			t.Errorf("%d of %d x %d for %d workers: %d by %d blocks, want %d by %d", c.entries, c.rows, c.cols, c.workers,
				j.rowBlocks, j.colBlocks, c.byRows, c.byCols)
		}
	}
}
