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

// SumRangeError is the alarm that a shard sum holds a coordinate that no set
// of honest devices could have produced: at least one of them sent symbols
// outside the scheme's range. The sum may still be within differential
// privacy's assumptions or not; the round is charged either way.
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
