//go:build !unix && !windows

package coordinator

import "math"

// freeBytes returns the space that is left on the disk of a folder, if it is known.
func freeBytes(string) (uint64, error) { return math.MaxUint64, nil }
