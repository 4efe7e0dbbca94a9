package dp

import "math"

// Attendance describes the devices of a round before their coins are flipped. Its methods bound how
// likely something other than the sum shows how one device's coin fell; docs/privacy/proofs.md, section 5,
// has the proof.
//
// Each of Ready devices flips a coin of probability Rate and is dealt into one of Groups groups,
// uniformly and independently. The drawn devices of a group are a shard. A shard is released if at
// least Threshold of its size answer every turn.
type Attendance struct {
	Ready int // devices that are there, the one in question included
	// Hostile counts the devices that may stay away, or leave, as they please.
	Hostile int
	Rate    float64 // in (0, 1)
	Groups  int     // at least 1
	// Dropout is the largest share of the honest that leave between the draw and the
	// round's end, at whatever turn, each by itself; any mixture of smaller shares is
	// covered, as when many leave together in some rounds.
	Dropout     float64
	Floor, Most int // sizes of a shard: a smaller one is not asked, a larger one loses its surplus
	// Threshold is the answers that a shard of n devices needs, n in Floor..Most, which
	// must not fall with n; 0 if no shard of that size can be.
	Threshold func(n int) int
}

// tipSlack covers the rounding of logarithms of factorials, relatively.
const tipSlack = 1e-6

// Hit bounds the probability, given the device's coin and all that it does, that the
// device can tip whether its shard is released.
//
// With G others in its group, of whom S honest ones stay to the end, it cannot where S
// reaches the threshold by itself: the shard is released with the device and without
// it, whatever the hostile do and whenever the others leave. A threshold that grows
// with the shard is the largest where all leave late, so that G counts all that are drawn.
// Below the mean of S each of G is taken to be honest and to stay by a coin of its own, which
// spreads S wider than the number of hostile devices does (Hoeffding 1956, theorem 5); above it,
// where a wider spread would be less, the number of hostile devices is summed over.
func (a Attendance) Hit() float64 {
	others := a.Ready - 1
	if others < 1 || a.Ready-1-a.Hostile < 1 {
		return 1
	}
	p := a.Rate / float64(a.Groups)
	mean := float64(others) * p
	spread := 9*math.Sqrt(mean) + 30
	lo, hi := max(0, int(mean-spread)), min(others, int(mean+spread))
	// Outside of lo..hi every group is taken to be hit (Chernoff; below 1e-17).
	sum := binomialBelow(others, p, lo) + binomialBelow(others, 1-p, others-hi)
	for g := lo; g <= hi; g++ {
		hit := 1.0
		if n := g + 1; n >= a.Floor && n <= a.Most {
			if t := a.Threshold(n); t > 0 {
				hit = a.fewStay(g, max(t, a.Floor))
			}
		}
		sum += math.Exp(logBinomial(others, g, p)) * hit
	}
	return min(1, sum*(1+tipSlack))
}

// fewStay bounds the probability that of g others in a group fewer than need are honest and stay.
func (a Attendance) fewStay(g, need int) float64 {
	others := a.Ready - 1
	stay := (1 - a.Dropout) * float64(others-a.Hostile) / float64(others)
	if float64(need) <= stay*float64(g) || a.Hostile == 0 {
		return binomialBelow(g, stay, need)
	}
	sum := 0.0
	for x := max(0, g-(others-a.Hostile)); x <= min(g, a.Hostile); x++ {
		few := 1.0
		if g-x >= need && a.Dropout > 0 {
			few = binomialBelow(g-x, 1-a.Dropout, need)
		} else if g-x >= need {
			few = 0
		}
		sum += Hypergeometric(others, a.Hostile, g, x) * few
	}
	return min(1, sum)
}

// Lost bounds the probability that more than the given number of groups yield no released sum,
// because too few or too many of their devices are drawn, or too few stay.
//
// A given group is lost with the probability p summed up here, and any of all with at most
// Groups*p. That several are lost is bounded by independent Poisson numbers of drawn devices:
// conditioned on there being Ready devices in all, which has a probability of at least 1/(e
// sqrt(Ready)), they are dealt as these are, and what decides about a group is independent of the
// others.
func (a Attendance) Lost(some int) float64 {
	if some >= a.Groups {
		return 0
	}
	others := max(1, a.Ready-1)
	stay := (1 - a.Dropout) * max(0, float64(others-a.Hostile)/float64(others))
	if stay <= 0 {
		return 1
	}
	mean := float64(a.Ready) * a.Rate / float64(a.Groups)
	spread := 9*math.Sqrt(mean) + 60
	lo, hi := max(0, int(mean-spread)), int(mean+spread)
	p := 1e-16 // Chernoff, outside of lo..hi
	for g := lo; g <= hi; g++ {
		lost := 1.0
		if g >= a.Floor && g <= a.Most {
			if t := a.Threshold(g); t > 0 {
				lost = binomialBelow(g, stay, max(t, a.Floor))
			}
		}
		lg, _ := math.Lgamma(float64(g + 1))
		p += math.Exp(float64(g)*math.Log(mean)-mean-lg) * lost
	}
	// Binomial numbers have at most e sqrt(Ready) times a Poisson's chance of anything.
	poissons := math.E * math.Sqrt(float64(a.Ready))
	all := float64(a.Groups) * p * (1 + tipSlack)
	bound := all
	for i := range some {
		bound *= all / float64(i+2)
	}
	return min(1, poissons*bound)
}

// Short bounds the probability that fewer than floor honest devices other than the one in question
// are drawn and stay: then its coin can decide whether there is a cohort.
func (a Attendance) Short(floor int) float64 {
	honest := a.Ready - 1 - a.Hostile
	if honest < floor {
		return 1
	}
	return min(1, binomialBelow(honest, a.Rate*(1-a.Dropout), floor)*(1+tipSlack))
}
