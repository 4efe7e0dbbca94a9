package edge

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/starling-fl/starling/dp"
)

// Spent is what all jobs together have cost a data set as seen from this device: each contribution
// counts in full, at the noise that its job says it adds. Rounds that protect devices and rounds
// that protect providers have no common guarantee.
type Spent struct {
	Jobs      int           `json:"jobs"`                // that the data has given to
	Devices   *dp.Guarantee `json:"devices,omitempty"`   // of jobs that protect devices; nil: none, or Noiseless
	Providers *dp.Guarantee `json:"providers,omitempty"` // of jobs that protect providers
	// Noiseless lists jobs that announce no noise: contributions to them have no bound.
	Noiseless []string `json:"noiseless,omitempty"`
}

// Spent composes the cost of all jobs of the account.
func (a *Account) Spent() (Spent, error) {
	a.mu.Lock()
	jobs := make([]JobAccount, 0, len(a.state.Jobs))
	for _, task := range slices.Sorted(maps.Keys(a.state.Jobs)) {
		jobs = append(jobs, *a.state.Jobs[task])
	}
	a.mu.Unlock()
	return spentOn(jobs)
}

// leastDelta is the smallest delta that totals are stated at, whatever a job says of
// its own: a guarantee may be read off at any.
const leastDelta = 1e-12

// spentOn composes at the smallest delta of the jobs of a kind. What a coordinator
// announces must not keep the others' total from being known: a job whose figures no
// accountant takes is one without noise.
func spentOn(jobs []JobAccount) (s Spent, err error) {
	var events [2][]dp.Event // of devices, of providers
	deltas := [2]float64{math.Inf(1), math.Inf(1)}
	for i := range jobs {
		j := &jobs[i]
		if j.Contributed == 0 {
			continue
		}
		s.Jobs++
		if g, bounded, err := j.Epsilon(); err != nil || !bounded || math.IsInf(g.Epsilon, 0) {
			name := j.Name
			if j.Forgotten {
				name = "a job that was forgotten"
			}
			s.Noiseless = append(s.Noiseless, name)
			continue
		}
		kind := 0
		if j.ProviderRate > 0 {
			kind = 1
		}
		events[kind], deltas[kind] = append(events[kind], j.event()), min(deltas[kind], max(j.Delta, leastDelta))
	}
	for kind, to := range []**dp.Guarantee{&s.Devices, &s.Providers} {
		if len(events[kind]) == 0 {
			continue
		}
		g, err := dp.RDPEpsilon(events[kind], deltas[kind])
		if err != nil {
			return s, fmt.Errorf("%w: its contributions: %w", ErrAccount, err)
		}
		*to = &g
	}
	return s, nil
}

// afford refuses a round of a job after which all jobs together would have cost or told more than
// the owner allows.
func (a *Account) afford(j *job, p *Policy) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.affordable(j, p)
}

// affordFirst is afford before a device enrols: it leaves no trace of the job.
func (a *Account) affordFirst(j *job, p *Policy) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	task := hex.EncodeToString(j.task[:])
	_, had := a.state.Jobs[task]
	err := a.affordable(j, p)
	if !had {
		delete(a.state.Jobs, task)
	}
	return err
}

// affordable is afford for callers that hold a.mu.
func (a *Account) affordable(j *job, p *Policy) error {
	if err := a.affordBits(&j.Job, p); err != nil || p.Epsilon == 0 {
		return err
	}
	a.of(j).Contributed++ // as it would be; nobody sees it, the lock is held
	jobs := make([]JobAccount, 0, len(a.state.Jobs))
	for _, task := range slices.Sorted(maps.Keys(a.state.Jobs)) {
		jobs = append(jobs, *a.state.Jobs[task])
	}
	a.of(j).Contributed--
	s, err := spentOn(jobs)
	if err != nil {
		return err
	}
	refuse := func(have string) error {
		return fmt.Errorf("%w:\n%w", ErrPolicy, &PolicyError{Key: "epsilon", What: "with one more round all jobs together would have cost this data an epsilon of " + have,
			Why: whyRounds, Have: have, Want: fmt.Sprintf("at most %.6g", p.Epsilon)})
	}
	if len(s.Noiseless) > 0 {
		return refuse("inf")
	}
	for _, g := range []*dp.Guarantee{s.Devices, s.Providers} {
		if g != nil && g.Epsilon > p.Epsilon {
			return refuse(fmt.Sprintf("%.6g", math.Ceil(g.Epsilon*1000)/1000))
		}
	}
	return nil
}
