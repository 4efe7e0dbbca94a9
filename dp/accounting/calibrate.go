package accounting

import (
	"errors"
	"fmt"
	"math"

	"github.com/starling-fl/starling/dp"
)

// ErrUnreachable reports a target that no value of the parameter can meet.
var ErrUnreachable = errors.New("privacy target out of reach")

// Limits of the searches: no sensible job is outside of them.
const (
	minNoise  = 1e-2
	maxNoise  = 1e7
	maxRounds = dp.MaxRounds
	minRate   = 1e-12
)

// CalibrateNoise returns a noise multiplier z, rounded up to 7 significant
// digits, for which rounds rounds at sampling rate q stay within (epsilon, delta): Epsilon
// at the returned z has been computed and is at most epsilon. z exceeds the least
// such value by less than 5e-5 relative.
func CalibrateNoise(epsilon, delta, q float64, rounds int, acct dp.Accountant) (z float64, err error) {
	return calibrateNoise(epsilon, delta, rounds, acct, "", func(z float64) dp.Event {
		return dp.Rounds(dp.Mechanism{SamplingRate: q, NoiseMultiplier: z}, rounds)
	})
}

// CalibrateEvent is CalibrateNoise for rounds of any kind, against any observer: event makes all
// of them, for a noise multiplier. Epsilon must fall as the multiplier grows.
func CalibrateEvent(epsilon, delta float64, acct dp.Accountant, of dp.Observer, event func(z float64) dp.Event) (z float64, err error) {
	return calibrateNoise(epsilon, delta, int(event(1).Count), acct, of, event)
}

func calibrateNoise(epsilon, delta float64, rounds int, acct dp.Accountant, of dp.Observer, event func(z float64) dp.Event) (z float64, err error) {
	if err := checkTarget(epsilon, delta); err != nil {
		return 0, err
	}
	if rounds < 1 || rounds > maxRounds {
		return 0, fmt.Errorf("accounting: %d rounds, want 1 to %d", rounds, maxRounds)
	}
	against := dp.View{Observer: of}
	f := func(z float64, a dp.Accountant) (float64, error) {
		b, err := boundsOf(event(z), delta, a, query{View: against})
		return b.upper, err
	}
	start, err := least(epsilon, 1, minNoise, maxNoise, 1e-7, 0.05, func(z float64) (float64, error) { return f(z, dp.RDP) })
	if err != nil {
		return 0, fmt.Errorf("accounting: noise for epsilon %v: %w", epsilon, err)
	}
	if acct == dp.RDP {
		return verified(start, epsilon, 7, func(z float64) (float64, error) { return f(z, dp.RDP) })
	}
	snap := func(z float64) float64 { return roundUp(z, 7) }
	z, err = refine(epsilon, start, minNoise, maxNoise, snap, func(z float64, want query) (bounds, error) {
		want.View = against
		return boundsOf(event(z), delta, acct, want)
	})
	if err != nil {
		return 0, fmt.Errorf("accounting: noise for epsilon %v: %w", epsilon, err)
	}
	return z, nil
}

// CalibrateRounds returns the largest number of rounds of m within (epsilon,
// delta), 0 where not even one fits.
func CalibrateRounds(epsilon, delta float64, m dp.Mechanism, acct dp.Accountant) (rounds int, err error) {
	return CalibrateCount(epsilon, delta, acct, func(n int) dp.Event { return dp.Rounds(m, n) })
}

// CalibrateCount is CalibrateRounds for rounds of any kind: event makes n of them. Epsilon must not
// fall as n grows.
func CalibrateCount(epsilon, delta float64, acct dp.Accountant, event func(n int) dp.Event) (rounds int, err error) {
	if err := checkTarget(epsilon, delta); err != nil {
		return 0, err
	}
	f := func(n int, a dp.Accountant) (bool, error) {
		e, err := epsilonOf(event(n), delta, a)
		return e <= epsilon, err
	}
	if ok, err := f(1, acct); err != nil || !ok {
		return 0, err
	}
	// The Rényi bound is cheap and never above: start where it stops.
	lo := 1
	for _, a := range []dp.Accountant{dp.RDP, acct} {
		hi := lo
		for step := max(1, lo/8); ; step *= 2 {
			hi = min(lo+step, maxRounds)
			ok, err := f(hi, a)
			if err != nil {
				return 0, err
			}
			if !ok {
				break
			}
			lo = hi
			if hi == maxRounds {
				return maxRounds, nil
			}
		}
		for hi-lo > 1 {
			mid := lo + (hi-lo)/2
			ok, err := f(mid, a)
			if err != nil {
				return 0, err
			}
			if ok {
				lo = mid
			} else {
				hi = mid
			}
		}
		if acct == dp.RDP {
			break
		}
	}
	return lo, nil
}

// CalibrateSamplingRate returns a sampling rate, rounded down to 7 significant
// digits, at which rounds rounds with noise multiplier z stay within (epsilon, delta);
// 1 if no sampling is needed. It falls short of the largest such rate by less
// than 5e-5 relative.
func CalibrateSamplingRate(epsilon, delta, z float64, rounds int, acct dp.Accountant) (q float64, err error) {
	if err := checkTarget(epsilon, delta); err != nil {
		return 0, err
	}
	if rounds < 1 || rounds > maxRounds {
		return 0, fmt.Errorf("accounting: %d rounds, want 1 to %d", rounds, maxRounds)
	}
	exact := map[float64]float64{} // what snap has rounded, by its inverse
	rate := func(inv float64) float64 {
		if q, ok := exact[inv]; ok {
			return q
		}
		return min(1, 1/inv)
	}
	event := func(inv float64) dp.Event {
		return dp.Rounds(dp.Mechanism{SamplingRate: rate(inv), NoiseMultiplier: z}, rounds)
	}
	f := func(inv float64, a dp.Accountant) (float64, error) { return epsilonOf(event(inv), delta, a) }
	if e, err := f(1, acct); err != nil || e <= epsilon {
		return 1, err
	}
	// Searched as 1/q, so that epsilon falls with it as it falls with z.
	start, err := least(epsilon, 100, 1, 1/minRate, 1e-7, 0.05, func(x float64) (float64, error) { return f(x, dp.RDP) })
	if err != nil {
		return 0, fmt.Errorf("accounting: sampling rate for epsilon %v: %w", epsilon, err)
	}
	snap := func(inv float64) float64 {
		q := roundDown(1/inv, 7)
		exact[1/q] = q
		return 1 / q
	}
	if acct == dp.RDP {
		inv := start
		for range 4 {
			q = roundDown(1/inv, 7)
			if e, err := f(1/q, acct); err != nil || e <= epsilon {
				return q, err
			}
			inv *= 1 + 1e-5
		}
		return 0, fmt.Errorf("accounting: sampling rate %v does not verify: %w", q, ErrUnreachable)
	}
	inv, err := refine(epsilon, start, 1, 1/minRate, snap, func(x float64, want query) (bounds, error) {
		return boundsOf(event(x), delta, acct, want)
	})
	if err != nil {
		return 0, fmt.Errorf("accounting: sampling rate for epsilon %v: %w", epsilon, err)
	}
	return rate(inv), nil
}

func checkTarget(epsilon, delta float64) error {
	if !(epsilon > 0) || math.IsInf(epsilon, 1) {
		return fmt.Errorf("accounting: target epsilon %v, want finite and positive", epsilon)
	}
	_, err := dp.CheckDelta(delta, 0)
	return err
}

func epsilonOf(e dp.Event, delta float64, acct dp.Accountant) (float64, error) {
	b, err := boundsOf(e, delta, acct, query{})
	return b.upper, err
}

func boundsOf(e dp.Event, delta float64, acct dp.Accountant, want query) (bounds, error) {
	g, err := account([]dp.Event{e}, delta, acct, want)
	return bounds{g.EpsilonLower, g.Epsilon}, err
}

// refine is least in two steps: cheap bounds until the answer is within 5e-4, then as
// few full ones as there must be, each of which can take a second. The x it returns is
// one that snap gives; its full bound was computed, is at most target, and shows that x
// is less than 5e-5 above the least such value, relatively.
func refine(target, start, low, high float64, snap func(float64) float64, f func(x float64, want query) (bounds, error)) (float64, error) {
	var near bounds // at the end of the bracket that is within the target
	b, err := narrow(target, start, low, high, 5e-4, 0.05, func(x float64) (float64, error) {
		b, err := f(x, query{coarse: true, near: target})
		if b.upper <= target {
			near = b
		}
		return b.upper, err
	})
	if err != nil {
		return 0, err
	}
	slope := 1.0 // of log(epsilon) over log(x), fallen
	if b.hi > b.lo {
		slope = max((b.ylo-b.yhi)/(b.hi-b.lo), 0.3)
	}
	// Full bounds lie within the cheap ones, nearer to the lower.
	y := math.Log(near.upper / target)
	if near.lower > 0 {
		y += 0.8 * math.Log(near.lower/near.upper)
	}
	const aside = 3e-6 // rather a little within
	within, beyond := math.Inf(1), 0.0
	x := math.Exp(b.hi)
	for evals := range 12 {
		next := snap(min(max(x*math.Exp((y+aside*slope)/slope), low), high))
		if next <= beyond || next >= within { // where secants lead nowhere
			next = snap(math.Sqrt(beyond * within))
			if beyond == 0 {
				next = within
			} else if math.IsInf(within, 1) {
				next = snap(min(beyond*(1+1e-5), high))
			}
		}
		if next == within || next <= beyond {
			break // nothing is in between
		}
		e, err := f(next, query{})
		if err != nil {
			return 0, err
		}
		was := y
		if y = math.Log(e.upper / target); y > 0 {
			beyond = next
		} else {
			within = next
		}
		// The secant through the last two full bounds.
		if d := math.Log(next / x); evals > 0 && math.Abs(d) > 1e-5 {
			slope = max((was-y)/d, 0.3)
		}
		x = next
		if y <= 0 && -y < 1e-5*slope || within <= beyond*(1+1e-5) {
			break
		}
	}
	if math.IsInf(within, 1) {
		return 0, fmt.Errorf("accounting: %v does not verify: %w", x, ErrUnreachable)
	}
	return within, nil
}

// least finds the smallest x in [low, high], to a relative tolerance, with
// f(x) <= target, f falling: bracketing from start, then the secant rule on logarithms,
// kept inside the bracket. The x it returns was evaluated.
func least(target, start, low, high, tol, step float64, f func(x float64) (float64, error)) (float64, error) {
	b, err := narrow(target, start, low, high, tol, step, f)
	return math.Exp(b.hi), err
}

// bracket is two logarithms of x and of f there, over the target: f(lo) is above it,
// f(hi) not. Both ends are the least x there is where f is below even there.
type bracket struct{ lo, ylo, hi, yhi float64 }

func narrow(target, start, low, high, tol, step float64, f func(x float64) (float64, error)) (bracket, error) {
	// Where f has no finite value x is too small.
	at := func(lx float64) float64 {
		e, err := f(math.Exp(lx))
		if err != nil || math.IsInf(e, 1) {
			return 1e3
		}
		return max(math.Log(e/target), -1e3)
	}
	x := math.Log(min(max(start, low), high))
	y := at(x)
	lo, hi := x, x
	ylo, yhi := y, y
	step = max(step, min(math.Abs(y)*0.7, 1))
	for yhi > 0 {
		if hi >= math.Log(high) {
			return bracket{}, ErrUnreachable
		}
		lo, ylo = hi, yhi
		hi = min(hi+step, math.Log(high))
		yhi = at(hi)
		step *= 2
	}
	for ylo <= 0 {
		if lo <= math.Log(low) {
			return bracket{lo, ylo, lo, ylo}, nil
		}
		hi, yhi = lo, ylo
		lo = max(lo-step, math.Log(low))
		ylo = at(lo)
		step *= 2
	}
	for i := 0; hi-lo > tol && i < 60; i++ {
		mid := (lo + hi) / 2
		if i%3 != 2 && ylo < 900 && yhi > -900 {
			mid = lo + (hi-lo)*ylo/(ylo-yhi)
			// A little to the side where the other end comes close too.
			edge := max(tol/4, 0.01*(hi-lo))
			if mid-lo < hi-mid {
				mid += edge
			} else {
				mid -= edge
			}
			mid = min(max(mid, lo+tol/4), hi-tol/4)
		}
		if ym := at(mid); ym <= 0 {
			hi, yhi = mid, ym
		} else {
			lo, ylo = mid, ym
		}
	}
	return bracket{lo, ylo, hi, yhi}, nil
}

// verified rounds x up and evaluates f there; the tight bound's last digits
// may wobble by its gap, hence the few steps.
func verified(x, target float64, digits int, f func(x float64) (float64, error)) (float64, error) {
	for range 6 {
		r := roundUp(x, digits)
		e, err := f(r)
		if err != nil {
			return 0, err
		}
		if e <= target {
			return r, nil
		}
		x *= 1 + 5e-6
	}
	return 0, fmt.Errorf("accounting: %v does not verify: %w", x, ErrUnreachable)
}

// roundUp rounds x > 0 up to a number of significant decimal digits.
func roundUp(x float64, digits int) float64 { return roundDigits(x, digits, math.Ceil) }

// roundDown rounds x > 0 down.
func roundDown(x float64, digits int) float64 { return roundDigits(x, digits, math.Floor) }

func roundDigits(x float64, digits int, round func(float64) float64) float64 {
	exp := digits - 1 - int(math.Floor(math.Log10(x)))
	if exp >= 0 {
		unit := math.Pow(10, float64(exp))
		return round(x*unit) / unit
	}
	unit := math.Pow(10, float64(-exp))
	return round(x/unit) * unit
}
