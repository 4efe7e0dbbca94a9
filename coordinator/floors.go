package coordinator

import (
	"fmt"

	"github.com/starling-fl/starling/dp"
)

// sampled reports whether coins choose the cohort. What then depends on who was
// drawn, depends on a coin that protects somebody.
func (t *terms) sampled() bool { return t.job.Cohort.SamplingRate < 1 }

// draws is the largest number of rounds that the job may draw.
func (t *terms) draws() int { return t.job.Draws() }

// checkDelta holds delta against those who are enrolled by now.
func (t *terms) checkDelta(enrolled int) error {
	n := max(t.job.Protected(), int(float64(enrolled)*max(1, t.job.Providers.Expected)))
	if _, err := dp.CheckDelta(t.budget.Delta, n); err != nil {
		return fmt.Errorf("coordinator: %d devices are enrolled: %w", enrolled, err)
	}
	return nil
}

// mostEnrolled is the number of devices that may enrol: max_enrolled, or as many
// as delta allows.
func (t *terms) mostEnrolled() int {
	allowed := 1 / t.budget.Delta / max(1, t.job.Providers.Expected)
	most := max(t.job.Cohort.Population, int(min(float64(t.job.Cohort.MaxEnrolled), allowed+1)))
	for most > t.job.Cohort.Population && t.checkDelta(most) != nil { // a quotient may be off by one
		most--
	}
	return most
}
