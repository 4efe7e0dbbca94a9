// Package allocation bounds, in tests, what decoders allocate.
package allocation

import (
	"runtime"
	"testing"
)

// Bounded fails where decode allocates more than 1 MiB and 200 bytes for each of the input's:
// a file of a coordinator's or a stranger's must not fill memory by what it announces.
func Bounded(t *testing.T, input int, decode func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	decode()
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+200*input); got > most {
		t.Errorf("%d bytes were allocated for an input of %d, limit %d", got, input, most)
	}
}
