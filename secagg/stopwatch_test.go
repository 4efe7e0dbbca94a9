package secagg

import (
	"time"

	"github.com/starling-fl/starling/internal/leaf/cputime"
)

// A stopwatch adds up processor time: benchmarks report each turn on its own, and
// a busy neighbour on the same machine counts for less than with wall time.
type stopwatch struct{ began, total time.Duration }

func (w *stopwatch) start()      { w.began = cputime.Now() }
func (w *stopwatch) stop()       { w.total += cputime.Now() - w.began }
func (w *stopwatch) ms() float64 { return float64(w.total.Microseconds()) / 1000 }
