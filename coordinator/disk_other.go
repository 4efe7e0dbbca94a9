//go:build !unix && !windows

package coordinator

import "math"

// freeBytes is not known here.
func freeBytes(string) (uint64, error) { return math.MaxUint64, nil }
