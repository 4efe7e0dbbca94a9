package job

import "math"

// StartsWith is the number of devices that must have enrolled before the first round.
func (j Job) StartsWith() int {
	switch n := j.Cohort.Start; {
	case n == 0:
		return j.Cohort.Population
	case n <= 1:
		return int(math.Ceil(n*float64(j.Cohort.Population) - 1e-9))
	default:
		return int(n)
	}
}

// LeastStart is the least number of devices with which a round can be made: its quorum, and where no coins
// choose the cohort its floor, since fewer commit noise only. Where noise cancels between rounds it is a cohort for each of
// privacy.separation rounds.
func (j Job) LeastStart() (int, error) {
	q, err := j.Quorum()
	if err != nil || j.Sampled() {
		return q.Ready, err
	}
	least := max(q.Ready, j.Cohort.Floor)
	if j.Banded() { // with fewer all rest at some time, and no release ends that
		least = max(least, j.Privacy.Separation*j.Cohort.Size)
	}
	return least, nil
}

// validateStart checks when rounds begin.
func (j Job) validateStart() error {
	co := j.Cohort
	switch n := co.Start; {
	case !(n >= 0) || n > float64(co.Population):
		return refuse("cohort.start is %v, must be in 0..cohort.population = %d, or a share of it in (0, 1]", n, co.Population)
	case n > 1 && n != math.Trunc(n):
		return refuse("cohort.start is %v, must be a whole number of devices, or a share of the population in (0, 1]", n)
	case co.StartWithin < 0:
		return refuse("cohort.start_within is %v, must not be negative", co.StartWithin)
	}
	least, err := j.LeastStart()
	if err != nil {
		return err
	}
	if n := j.StartsWith(); n < least {
		return refuse("cohort.start is %v, that is %d of %d devices, but a round needs %d", co.Start, n, co.Population, least)
	}
	return nil
}
