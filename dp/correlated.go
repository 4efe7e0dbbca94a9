package dp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrCorrelated reports kept noise that does not fit its mechanism.
var ErrCorrelated = errors.New("kept noise does not fit")

// Correlated is the state of banded noise: what the last band-1 rows had added. It is as secret as
// the sums, since it is what hides them. See [Banded].
//
// With z_t a discrete Gaussian in units of 2^-16, row t adds w_t, the nearest whole number to
// z_t minus the sum over 1 <= i < b of c_i w_(t-i). So x_t + w_t is a function of the y_t of the
// mechanism alone: the nearest whole number to y_t minus the sum of c_i (x+w)_(t-i). What rounding
// leaves is cancelled by later rows as the noise is.
//
// A Correlated is owned by one goroutine.
type Correlated struct {
	coefficients []int64 // c_0 to c_(b-1), times 2^16
	dim          int
	kept         [][]int32 // of the rows before, the last first
	next         []int32   // of the row that Keep takes over; nil: none
}

// NewCorrelated is the state before the first row of b, for sums of dim coordinates.
func NewCorrelated(b Banded, dim int) (*Correlated, error) {
	if b.Band < 1 || b.Band > MaxBand || b.Eighths < 1 || b.Eighths > 7 || dim < 1 {
		return nil, fmt.Errorf("dp: a band of %d rows at %d eighths over %d coordinates, want 1 to %d, 1 to 7, and at least 1: %w",
			b.Band, b.Eighths, dim, MaxBand, ErrCorrelated)
	}
	return &Correlated{coefficients: coefficients(b.Eighths)[:b.Band], dim: dim}, nil
}

// add adds the next row's noise to sum, made of what noise draws with variance v, in units of 2^-16.
// The row counts once Keep was called; until then another call takes its place.
func (c *Correlated) add(sum []int64, v Variance, noise Noise) error {
	if c == nil {
		return fmt.Errorf("dp: banded noise without what rows before had added: %w", ErrCorrelated)
	}
	if len(sum) != c.dim {
		return fmt.Errorf("dp: a sum of %d coordinates, the kept noise has %d: %w", len(sum), c.dim, ErrCorrelated)
	}
	z := make([]int64, c.dim)
	defer clear(z) // as secret as the sums
	if err := noise.AddNoise(z, v); err != nil {
		return err
	}
	for i, row := range c.kept {
		coefficient := c.coefficients[i+1]
		for k, w := range row {
			z[k] -= coefficient * int64(w) // below 2^60: 4095 coefficients of at most 2^16
		}
	}
	next := make([]int32, c.dim)
	for k, x := range z {
		w := (x + 1<<(coefficientBits-1)) >> coefficientBits
		if w > math.MaxInt32 || w < -math.MaxInt32 {
			return fmt.Errorf("dp: coordinate %d: banded noise does not fit 32 bits: %w", k, ErrVariance)
		}
		var err error
		if sum[k], err = addChecked(sum[k], w); err != nil {
			return fmt.Errorf("dp: coordinate %d: %w", k, err)
		}
		next[k] = int32(w)
	}
	c.next = next
	return nil
}

// forget drops a row that was drawn and not kept.
func (c *Correlated) forget() {
	if c != nil {
		c.next = nil
	}
}

// Keep counts the row that was added last as released.
func (c *Correlated) Keep() {
	if c.next == nil {
		return
	}
	most := len(c.coefficients) - 1
	c.kept = append([][]int32{c.next}, c.kept...)
	for _, row := range c.kept[min(most, len(c.kept)):] {
		clear(row)
	}
	c.kept = c.kept[:min(most, len(c.kept))]
	c.next = nil
}

// AppendNext appends the row that Keep takes over as AppendBinary would, and returns how many rows
// are kept then. ok is false if there is none.
func (c *Correlated) AppendNext(b []byte) (next []byte, rows int, ok bool) {
	if c == nil || c.next == nil {
		return b, 0, false
	}
	return appendRow(b, c.next), min(len(c.kept)+1, len(c.coefficients)-1), true
}

func appendRow(b []byte, row []int32) []byte {
	for _, w := range row {
		b = binary.BigEndian.AppendUint32(b, uint32(w))
	}
	return b
}

// Rows is the number of kept rows, at most the band less 1.
func (c *Correlated) Rows() int { return len(c.kept) }

// AppendBinary appends the kept rows, the last first, four bytes a coordinate, big-endian. A row
// that was not kept is not in it.
func (c *Correlated) AppendBinary(b []byte) ([]byte, error) {
	for _, row := range c.kept {
		b = appendRow(b, row)
	}
	return b, nil
}

// UnmarshalBinary takes over what AppendBinary of a state of the same band and coordinates wrote.
// The error is ErrCorrelated otherwise, and nothing is changed.
func (c *Correlated) UnmarshalBinary(b []byte) error {
	size := 4 * c.dim
	rows := len(b) / size
	if len(b)%size != 0 || rows >= len(c.coefficients) {
		return fmt.Errorf("dp: %d bytes of kept noise, want at most %d rows of %d: %w", len(b), len(c.coefficients)-1, size, ErrCorrelated)
	}
	kept := make([][]int32, rows)
	for i := range kept {
		kept[i] = make([]int32, c.dim)
		for k := range kept[i] {
			kept[i][k] = int32(binary.BigEndian.Uint32(b[i*size+4*k:]))
		}
	}
	c.kept, c.next = kept, nil
	return nil
}
