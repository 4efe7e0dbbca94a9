package audit

import (
	"fmt"
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/starling-fl/starling/dp"
)

// alike are rounds with the same coin, noise and chance of a hit.
type alike struct {
	rate, noise, hit float64
	rounds           int
}

const (
	cells  = 1 << 15 // of the privacy loss
	points = 1 << 14 // of a release
)

// recompose is a second accountant, which shares nothing with package accounting: the distribution
// of the privacy loss of each kind of rounds on a grid that keeps means, raised to its power by
// Fourier transforms, and the epsilon at which its tail is delta. About says how large it may be.
// It is no bound: it is within a few thousandths of the truth.
func recompose(parts []alike, delta, about float64) float64 {
	reach := 3*about + 30
	worst := 0.0
	for _, removed := range []bool{true, false} {
		fft := fourier.NewCmplxFFT(cells)
		total := make([]complex128, cells)
		for i := range total {
			total[i] = 1
		}
		for _, p := range parts {
			loss := p.loss(removed, reach)
			for i, c := range fft.Coefficients(nil, loss) {
				total[i] *= cmplx.Pow(c, complex(float64(p.rounds), 0))
			}
		}
		pmf := fft.Sequence(nil, total)
		for i := range pmf {
			pmf[i] /= cells
		}
		worst = max(worst, epsilonOf(pmf, reach, delta))
	}
	return worst
}

// loss is the distribution of a round's privacy loss on the cells of -reach..reach: cell 0 is loss 0,
// and negative losses are behind the positive ones.
func (p alike) loss(removed bool, reach float64) []complex128 {
	out, width := make([]complex128, cells), 2*reach/cells
	put := func(loss, mass float64) {
		x := min(max(loss, -reach+width), reach-2*width) / width
		low := math.Floor(x)
		i := (int(low) + cells) % cells
		out[i] += complex(mass*(1-x+low), 0)
		out[(i+1)%cells] += complex(mass*(x-low), 0)
	}
	gauss := func(x, mean float64) float64 {
		return math.Exp(-(x-mean)*(x-mean)/(2*p.noise*p.noise)) / (p.noise * math.Sqrt(2*math.Pi))
	}
	// log of the mixture's density over that of noise alone
	ratio := func(x, rate float64) float64 {
		e := (2*x - 1) / (2 * p.noise * p.noise)
		if e > 500 {
			return e + math.Log(rate)
		}
		return math.Log1p(rate * math.Expm1(e))
	}
	low, high := -10*p.noise, 1+10*p.noise
	dx := (high - low) / points
	sum := 0.0
	spread := func(rate, share float64) {
		for k := range points {
			x := low + (float64(k)+0.5)*dx
			mass := gauss(x, 0)
			loss := -ratio(x, rate)
			if removed {
				mass, loss = (1-rate)*mass+rate*gauss(x, 1), -loss
			}
			put(loss, share*mass*dx)
			sum += share * mass * dx
		}
	}
	spread(p.rate, 1-p.hit)
	if p.hit > 0 { // the coin is shown: no sampling where it fell on in, nothing where it did not
		spread(1, p.hit*p.rate)
		put(0, p.hit*(1-p.rate))
		sum += p.hit * (1 - p.rate)
	}
	for i := range out {
		out[i] /= complex(sum, 0)
	}
	return out
}

// epsilonOf is where sum (1 - exp(epsilon - loss)) over larger losses is delta.
func epsilonOf(pmf []complex128, reach, delta float64) float64 {
	width := 2 * reach / cells
	tail := func(epsilon float64) float64 {
		sum := 0.0
		for i := int(epsilon/width) + 1; i < cells/2; i++ {
			sum += real(pmf[i]) * -math.Expm1(epsilon-float64(i)*width)
		}
		return sum
	}
	low, high := 0.0, reach
	for range 50 {
		if mid := (low + high) / 2; tail(mid) > delta {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// slackLedger is how far the ledger's epsilon may be below the second accountant's.
const slackLedger = 0.01

// ledger holds what the job says that it spent against what the rounds that were played cost.
func ledger(events []dp.Event, said dp.Guarantee, played int, rate float64) []Check {
	count := 0
	at := map[alike]int{}
	for _, e := range events {
		if e.Kind != dp.KindUnnoised && e.B2 > 0 {
			count += int(e.Count)
		}
		at[alike{rate: rate, noise: e.NoiseMultiplier * e.NoiseScale, hit: e.Hit}]++
	}
	charged := within(CheckCharged, fmt.Sprintf("rounds in the ledger, of %d that were drawn or unmasked", played),
		float64(min(count, said.Rounds)), float64(played), float64(played), 0)
	var parts []alike
	for p, n := range at {
		// What was played and not written down cost as much as what was.
		p.rounds = n * played / max(1, len(events))
		parts = append(parts, p)
	}
	again := recompose(parts, said.Delta-said.FloorDelta, said.Epsilon)
	return []Check{charged, within(CheckLedger, fmt.Sprintf("its epsilon, %.4g by a second accountant", again),
		said.Epsilon, again*(1-slackLedger), math.Inf(1), 0)}
}
