package dp

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"sync"
)

// Banded says that a round is a row of banded matrix-factorization noise: what is released is the
// round's sum plus noise that partly cancels what earlier rounds added, and a device takes part at
// most once in any Separation rows. The zero value is a round with noise of its own.
//
// Let x_t be the sum of row t, and c_0..c_(b-1) the coefficients of (1-x)^-(Eighths/8), each rounded
// up to a multiple of 2^-16. The mechanism is y_t = sum over i < b of c_i x_(t-i), plus a discrete
// Gaussian (Kairouz et al. 2021; Choquette-Choo et al. 2023). A device in row t moves rows t to
// t+b-1, by c_i times its update. Rows of two of its rounds are apart, since b is at most the
// separation. So m rows move by at most the root of the sum of their Cost, times the norm bound.
type Banded struct {
	Band       uint32 `json:"band"`       // b, in 1..MaxBand: rows that one round's noise reaches
	Separation uint32 `json:"separation"` // rows from one round of a device to its next, at least Band
	Eighths    uint8  `json:"eighths"`    // exponent of the coefficients, in 1..7: see Exponent
	Row        uint64 `json:"row"`        // from 1; an event of several rounds has the rows from here on
}

const (
	// MaxBand bounds Banded.Band: beyond it coefficients hardly fall, and each row's noise is kept.
	MaxBand = 4096

	coefficientBits = 16 // of their fractions
)

// Exponent is the best of two exponents, in eighths, for so many rows: the root, whose prefix sums
// have the least noise if a device takes part few times, or 5/8, with 5 to 12 % less of it if
// it may do so sixteen times or more (docs/RATIONALE.md).
func Exponent(rows int, separation uint32) uint8 {
	if uint64(rows) > 15*uint64(separation) {
		return 5
	}
	return 4
}

// BandOf is the longest band that a separation allows, and that of a job that names none.
func BandOf(separation int) int { return min(separation, MaxBand) }

var coefficientTables sync.Map // of []int64, by eighths

// coefficients are the first MaxBand of an exponent's times 2^16, rounded up. They never rise, and
// the second is below the first: so noise does not grow from row to row (Enestrom and Kakeya).
func coefficients(eighths uint8) []int64 {
	if table, ok := coefficientTables.Load(eighths); ok {
		return table.([]int64)
	}
	const bits62 = 62 // each step rounds up in its last place
	table, c := make([]int64, MaxBand), uint64(1)<<bits62
	for i := range uint64(MaxBand) {
		if i > 0 {
			hi, lo := bits.Mul64(c, 8*(i-1)+uint64(eighths))
			quotient, rest := bits.Div64(hi, lo, 8*i)
			c = quotient + min(rest, 1)
		}
		table[i] = int64((c + 1<<(bits62-coefficientBits) - 1) >> (bits62 - coefficientBits))
	}
	coefficientTables.Store(eighths, table)
	return table
}

// squares is the sum of the first n coefficients' squares, in units of 2^-32. It is below 2^44.
func squares(eighths uint8, n uint64) int64 {
	var sum int64
	for _, c := range coefficients(eighths)[:n] {
		sum += c * c
	}
	return sum
}

// check holds a row to its event.
func (b Banded) check(e Event) error {
	if b == (Banded{}) {
		return nil
	}
	switch {
	case b.Band < 1 || b.Band > MaxBand:
		return fmt.Errorf("dp: event of round %d: band %d, want 1 to %d: %w", e.Round, b.Band, MaxBand, ErrEvent)
	case b.Separation < b.Band || b.Separation > MaxRounds:
		return fmt.Errorf("dp: event of round %d: separation %d, want at least the band %d and at most %d: %w",
			e.Round, b.Separation, b.Band, MaxRounds, ErrEvent)
	case b.Eighths < 1 || b.Eighths > 7:
		return fmt.Errorf("dp: event of round %d: exponent of %d eighths, want 1 to 7: %w", e.Round, b.Eighths, ErrEvent)
	case b.Row < 1 || b.Row > MaxRounds:
		return fmt.Errorf("dp: event of round %d: row %d, want 1 to %d: %w", e.Round, b.Row, MaxRounds, ErrEvent)
	case !e.Fixed || e.NoiseScale != 1 || e.ProviderRate != 0 || e.Own != (OwnNoise{}):
		return fmt.Errorf("dp: event of round %d: banded noise needs cohorts of a fixed size, and noise of the coordinator "+
			"alone, unscaled, for whole devices: %w", e.Round, ErrEvent)
	}
	return nil
}

// Cost is what count rows from b.Row on add to the squared sensitivity of all rows before them, over
// the squared norm bound, rounded up. Added from row 1 to row n it is the exact sensitivity: with
// k = ceil(n/separation) it is that of a device in rows 1, 1+separation and so on. Rows that no
// such device moves for the first time cost nothing.
func (b Banded) Cost(count uint32) float64 {
	upTo := func(row uint64) *big.Int {
		periods, rest := row/uint64(b.Separation), row%uint64(b.Separation)
		sum := new(big.Int).SetInt64(squares(b.Eighths, uint64(b.Band)))
		sum.Mul(sum, new(big.Int).SetUint64(periods))
		return sum.Add(sum, big.NewInt(squares(b.Eighths, min(rest, uint64(b.Band)))))
	}
	whole := upTo(b.Row - 1 + uint64(count))
	cost, accuracy := new(big.Float).SetInt(whole.Sub(whole, upTo(b.Row-1))).Float64()
	if accuracy == big.Below {
		cost = math.Nextafter(cost, math.Inf(1))
	}
	return math.Ldexp(cost, -2*coefficientBits)
}

// Spread is the variance of what the n-th row since the first without noise before it adds, over
// that of what is drawn for it: 1 for n = 1, and up to 1.3 for the root.
func (b Banded) Spread(n int) float64 {
	sum := 0.0
	for _, d := range b.inverse(n) {
		sum += d * d
	}
	return sum
}

// Prefix is the root mean square noise of the sums of the first 1 to n rows, over that of rows with
// noise of their own of the same standard deviation. Noise does not cancel beyond a block of rows.
func (b Banded) Prefix(n, block int) float64 {
	block = min(block, n)
	inverse, whole, sum := b.inverse(block), 0.0, 0.0
	for from := 0; from < n; from += block {
		prefix, variance := 0.0, 0.0
		for _, d := range inverse[:min(block, n-from)] {
			prefix += d
			variance += prefix * prefix
			sum += whole + variance
		}
		whole += variance
	}
	return math.Sqrt(sum / (float64(n) * float64(n+1) / 2))
}

// inverse are the first n coefficients of the inverse series of the band's: what a draw adds to its
// own row and those after it.
func (b Banded) inverse(n int) []float64 {
	c, d := coefficients(b.Eighths)[:b.Band], make([]float64, n)
	for t := range d {
		if t == 0 {
			d[t] = 1
		}
		for i := 1; i < len(c) && i <= t; i++ {
			d[t] -= float64(c[i]) * 0x1p-16 * d[t-i]
		}
	}
	return d
}

// charge is the squared distance, over the noise's variance, by which an event with noise multiplier
// z tells two worlds apart: one Gaussian's. A charged row that was not released may have been seen
// in part, and another has its place: it costs as much as the largest coefficient, c_0 = 1, moves it.
func (b Banded) charge(e Event, z float64) float64 {
	cost := b.Cost(e.Count)
	if e.Kind == KindCharged {
		cost = float64(e.Count)
	}
	return cost / (z * z) * (1 + 0x1p-50)
}

// AtMost is what a round that was drawn as e may come to in a ledger: e or, with banded noise, e charged without a release,
// which costs no less.
func AtMost(e Event) Event {
	if e.Banded != (Banded{}) {
		e.Kind = KindCharged
	}
	return e
}

// leastSeparation is the least separation of rows, 0 standing for none yet.
func leastSeparation(least int, b Banded) int {
	if least == 0 {
		return int(b.Separation)
	}
	return min(least, int(b.Separation))
}

// fine is the variance that is drawn for a sum's own variance v: of whole multiples of 2^-16.
func fine(v Variance) (Variance, error) {
	for range 2 * coefficientBits {
		if v.Shift > 0 {
			v.Shift--
			continue
		}
		if v.Hi>>63 != 0 {
			return Variance{}, fmt.Errorf("dp: banded noise of variance %v: %w", v.Float(), ErrVariance)
		}
		v.Hi, v.Lo = v.Hi<<1|v.Lo>>63, v.Lo<<1
	}
	if err := v.check(); err != nil {
		return Variance{}, fmt.Errorf("dp: banded noise on a lattice of 2^-%d steps: %w", coefficientBits, err)
	}
	return v, nil
}
