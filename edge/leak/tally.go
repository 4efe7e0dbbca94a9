package leak

import "math"

// tally counts what was guessed right, trial by trial.
type tally struct {
	right, all int
	trials     [][2]int
}

func (t *tally) add(right, all int) {
	t.right, t.all = t.right+right, t.all+all
	t.trials = append(t.trials, [2]int{right, all})
}

func (t *tally) share() float64 {
	if t.all == 0 {
		return 0
	}
	return float64(t.right) / float64(t.all)
}

// effective is how many independent guesses the tally is worth: what is in one update
// is found or missed together, so that shares differ more from trial to trial than those
// of as many coins would (the dispersion of a quasi-binomial; McCullagh and Nelder 1989,
// section 4.5). If all trials agree, that nothing is found or everything, how far guesses
// stand together cannot be seen, and each counts as one: the interval is then a narrow one.
func (t *tally) effective() float64 {
	p := t.share()
	if len(t.trials) < 2 || p == 0 || p == 1 {
		return float64(t.all)
	}
	chi := 0.0
	for _, x := range t.trials {
		if n := float64(x[1]); n > 0 {
			d := float64(x[0]) - n*p
			chi += d * d / (n * p * (1 - p))
		}
	}
	return float64(t.all) / max(1, chi/float64(len(t.trials)-1))
}

// wilson is the interval of Wilson 1927 at 95 %.
func wilson(p, n float64) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959963984540054
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}

// beyond is by how much what is there is found more often than what is not, and that
// difference's interval at 95 % (Newcombe 1998, method 10).
func beyond(in, out *tally) (share, low, high float64) {
	p, q := in.share(), out.share()
	l1, u1 := wilson(p, in.effective())
	l2, u2 := wilson(q, out.effective())
	d := p - q
	return max(0, d), max(0, d-math.Hypot(p-l1, u2-q)), max(0, min(1, d+math.Hypot(u1-p, q-l2)))
}
