package secagg

import "time"

// A stopwatch adds up intervals: benchmarks report each turn on its own.
type stopwatch struct {
	began time.Time
	total time.Duration
}

func (w *stopwatch) start()      { w.began = time.Now() }
func (w *stopwatch) stop()       { w.total += time.Since(w.began) }
func (w *stopwatch) ms() float64 { return float64(w.total.Microseconds()) / 1000 }
