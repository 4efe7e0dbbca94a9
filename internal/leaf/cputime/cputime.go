// Package cputime measures in processor time, which a busy machine stretches far
// less than it does a wall clock.
package cputime

import (
	"testing"
	"time"
)

// Benchmark reports the processor time of an operation of b as "cpu-ns/op", from
// now until the function it returns is called: what is set up comes before it.
//
//	defer cputime.Benchmark(b)()
func Benchmark(b *testing.B) (stop func()) {
	b.Helper()
	began := Now()
	return func() { b.ReportMetric(Each(b, began), "cpu-ns/op") }
}

// Each is the processor time of one operation of b, in nanoseconds, where all of
// them have run since began.
func Each(b *testing.B, began time.Duration) float64 {
	return float64((Now() - began).Nanoseconds()) / float64(b.N)
}
