package quant

import (
	"errors"
	"fmt"
)

var (
	// ErrUnknown is returned for a scheme, format or codec that is not known.
	ErrUnknown = errors.New("quant: unknown name")
	// ErrNotFinite is returned for input that holds a NaN or an infinity.
	ErrNotFinite = errors.New("quant: value is not finite")
	// ErrLength is returned for a slice whose length does not fit.
	ErrLength = errors.New("quant: wrong length")
	// ErrRange is returned for a parameter or value outside its range.
	ErrRange = errors.New("quant: out of range")
	// ErrCorrupt is returned for bytes that are not what they should be.
	ErrCorrupt = errors.New("quant: corrupt data")
)

// SumRangeError reports that the sum of a shard holds a coordinate that honest devices could not
// have produced: at least one device sent symbols outside of the scheme's range. The round is
// charged whether or not its sum is still within what differential privacy assumes.
type SumRangeError struct {
	Index     int   // first coordinate out of range
	Value     int64 // its centre-lifted sum
	Limit     int64 // MaxSymbol * Survivors
	Survivors int
	Count     int // how many coordinates are out of range
}

func (e *SumRangeError) Error() string {
	return fmt.Sprintf("quant: shard sum out of range: coordinate %d is %d, limit is %d for %d survivors (%d coordinates in all)",
		e.Index, e.Value, e.Limit, e.Survivors, e.Count)
}

// Is makes errors.Is(err, ErrRange) true.
func (e *SumRangeError) Is(target error) bool { return target == ErrRange }
