package core

import (
	"fmt"

	"github.com/starling-fl/starling/dp"
)

// Sampled reports whether coins choose the cohort. Whatever depends on the draw then depends on a
// coin that protects a device.
func (t *Terms) Sampled() bool { return t.Job.Cohort.SamplingRate < 1 }

// Draws is the largest number of rounds that the job may draw.
func (t *Terms) Draws() int { return t.Job.Draws() }

// CheckDelta compares delta with the number of identities enrolled so far.
func (t *Terms) CheckDelta(enrolled int) error {
	n := max(t.Job.Protected(), int(float64(enrolled)*max(1, t.Job.Providers.Expected)))
	if _, err := dp.CheckDelta(t.Budget.Delta, n); err != nil {
		return fmt.Errorf("core: %d devices are enrolled: %w", enrolled, err)
	}
	return nil
}

// MostEnrolled is the largest number of devices that may enrol: max_enrolled, or as many as delta allows.
func (t *Terms) MostEnrolled() int {
	allowed := 1 / t.Budget.Delta / max(1, t.Job.Providers.Expected)
	most := max(t.Job.Cohort.Population, int(min(float64(t.Job.Cohort.MaxEnrolled), allowed+1)))
	for most > t.Job.Cohort.Population && t.CheckDelta(most) != nil { // a quotient may be off by one
		most--
	}
	return most
}
