package coordinator

import (
	"fmt"

	"github.com/starling-fl/starling/internal/contract"
	"github.com/starling-fl/starling/job"
)

// Job is what a Coordinator is made for; package job reads it.
type Job = job.Job

// refuseJob wraps the reason for which a job does not fit its base or cannot meet its target.
func refuseJob(format string, args ...any) error {
	return fmt.Errorf("%w: %w", job.ErrInvalid, fmt.Errorf(format, args...))
}

// contractOf returns the part of a job that devices derive from, too.
func contractOf(j Job) contract.Job {
	return contract.Job{Uplink: j.Wire.Uplink, Providers: j.Providers.Max, Masking: j.Masking()}
}
