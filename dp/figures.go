package dp

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Figures are what a unit reports about its own examples: each a number in [-1, 1]. The first is 1
// if the unit reports anything. An absent unit's figures are all 0.
type Figures [FigureCount]float64

// FigureCount is the number of figures of a unit: see [Figures].
const FigureCount = 4

// MaxFigureCoordinates bounds FigureCode.Coordinates.
const MaxFigureCoordinates = MaxCountCoordinates / FigureCount

// FigureCode places a unit's figures on the integer lattice, behind the vector's symbols and count,
// so that one draw of noise covers all coordinates. Each figure has Coordinates coordinates, each
// within Symbol, so that no unit moves the sum by more than sqrt(B2()). The zero value has no
// figures.
//
// The squared sensitivity of the whole vector becomes b2 + B2(), its noise sigma^2 = z^2*(b2 +
// B2()): one release of the joint vector with the same z, which costs the same privacy as without
// figures. The price is that the update's own noise grows by sqrt(1 + B2()/b2).
type FigureCode struct {
	Coordinates int   // of each figure
	Symbol      int32 // the largest, at least 1 if there are coordinates
}

// NewFigureCode returns the code that uses up a given share of the noise budget: the noise of the
// rest of the vector, of squared sensitivity b2, grows by at most the share growth (0.03: 3 %).
// Symbols are at most maxSymbol. It is an error if that leaves the figures nothing.
func NewFigureCode(b2 int64, maxSymbol int32, growth float64) (FigureCode, error) {
	if b2 <= 0 || maxSymbol < 1 || !(growth > 0 && growth <= 1) {
		return FigureCode{}, fmt.Errorf("dp: figures with a squared sensitivity of %d, largest symbol %d and an addition of %v to the noise: want all positive, the addition at most 1",
			b2, maxSymbol, growth)
	}
	each := float64(b2) * growth * (2 + growth) / FigureCount // the squared norm of a figure
	if each < 1 {
		return FigureCode{}, fmt.Errorf("dp: figures that add %v to the noise have no room with a squared sensitivity of %d: allow %.2g",
			growth, b2, math.Sqrt(1+FigureCount/float64(b2))-1)
	}
	q := float64(maxSymbol)
	m := min(max(1, math.Floor(each/(q*q))), MaxFigureCoordinates)
	return FigureCode{Coordinates: int(m), Symbol: int32(min(q, math.Floor(math.Sqrt(each/m))))}, nil
}

// Check returns an error for a code that has only one of its two fields, or is too large.
func (c FigureCode) Check() error {
	if (c.Coordinates == 0) != (c.Symbol == 0) || c.Coordinates < 0 || c.Symbol < 0 || c.Coordinates > MaxFigureCoordinates {
		return fmt.Errorf("dp: figures of %d coordinates of %d: want both or neither, of at most %d", c.Coordinates, c.Symbol, MaxFigureCoordinates)
	}
	return nil
}

// Size is the number of coordinates of all figures.
func (c FigureCode) Size() int { return FigureCount * c.Coordinates }

// B2 bounds the squared norm of a unit's figures.
func (c FigureCode) B2() int64 {
	return FigureCount * int64(c.Coordinates) * int64(c.Symbol) * int64(c.Symbol)
}

// Encode writes a unit's figures to dst, which has Size elements. Each is clipped to [-1, 1] and
// rounded without bias by rnd; a NaN becomes 0. Coordinates of one figure differ by 1 at most.
func (c FigureCode) Encode(dst []int32, f Figures, rnd io.Reader) error {
	if len(dst) != c.Size() {
		return fmt.Errorf("dp: figures take %d coordinates, there are %d", c.Size(), len(dst))
	}
	var coins [8 * FigureCount]byte
	if _, err := io.ReadFull(rnd, coins[:]); err != nil {
		return fmt.Errorf("dp: figures: %w", err)
	}
	whole := int64(c.Coordinates) * int64(c.Symbol)
	for k, v := range f {
		coin := float64(binary.LittleEndian.Uint64(coins[8*k:])>>11) / (1 << 53)
		if math.IsNaN(v) {
			v = 0
		}
		total := min(whole, int64(math.Floor(min(max(v, -1), 1)*float64(whole)+coin))) // the sum may have been rounded up
		each, more := total/int64(c.Coordinates), total%int64(c.Coordinates)
		if more < 0 {
			each, more = each-1, more+int64(c.Coordinates)
		}
		for i := range dst[k*c.Coordinates : (k+1)*c.Coordinates] {
			dst[k*c.Coordinates+i] = int32(each)
			if int64(i) < more {
				dst[k*c.Coordinates+i]++
			}
		}
	}
	return nil
}

// Sums returns the sum over all units of each figure, from the sums of the figures' coordinates,
// noisy or not. If each coordinate has noise of standard deviation sigma, each result has noise of
// FigureCode.Noise(sigma).
func (c FigureCode) Sums(sum []int64) (out Figures) {
	if c.Coordinates == 0 {
		return out
	}
	for k := range out {
		total := 0.0
		for _, v := range sum[k*c.Coordinates : (k+1)*c.Coordinates] {
			total += float64(v)
		}
		out[k] = total / (float64(c.Coordinates) * float64(c.Symbol))
	}
	return out
}

// Noise returns the standard deviation of the noise in a sum of figures, given sigma of each coordinate.
func (c FigureCode) Noise(sigma float64) float64 {
	if c.Coordinates == 0 {
		return 0
	}
	return sigma / (math.Sqrt(float64(c.Coordinates)) * float64(c.Symbol))
}

// Mean returns the mean of figure k over the units that reported anything, and the standard
// deviation of its noise. f must be the result of FigureCode.Sums, and noise that of
// FigureCode.Noise. ok is false if the number of units is within three standard deviations of zero.
func (f Figures) Mean(k int, noise float64) (mean, sd float64, ok bool) {
	n := f[0]
	if !(n > 3*noise) {
		return 0, 0, false
	}
	mean = min(max(f[k]/n, -1), 1)
	return mean, noise * math.Sqrt(1+mean*mean) / n, true // a quotient's, to first order
}
