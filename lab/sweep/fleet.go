package sweep

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/job"
)

// usualCohort is how many clients a round trains where nobody says.
const usualCohort = 100

// ownKeys are keys of a job file that are settings of a simulation as well.
var ownKeys = map[string]string{
	"cohort.population": "population", "cohort.sampling_rate": "sampling_rate", "cohort.size": "cohort",
}

// deployment takes over what a job file says of who takes part: the population, its rate or size, and the larger
// population that it simulates. Settings that were given elsewhere stay. It returns those that are given now.
func (s Settings) deployment(given func(setting string) bool) (Settings, func(setting string) bool, error) {
	if !s.namesFleet() {
		return s, given, nil
	}
	named := map[string]bool{}
	is := func(setting string) bool { return given(setting) || named[setting] }
	s.Job = clone(s.Job)
	for _, key := range slices.Sorted(maps.Keys(ownKeys)) {
		v, ok := lookup(s.Job, key)
		if !ok {
			continue
		}
		drop(s.Job, key)
		as := ownKeys[key]
		if v == nil || given(as) {
			continue
		}
		var err error
		if s, err = s.With(as, v); err != nil {
			return s, nil, badSetting("%s: %w", key, strict.Unplaced(err))
		}
		named[as] = true
	}
	if named["population"] && !is("sampling_rate") {
		s.SamplingRate, named["sampling_rate"] = 1, true // as a job file has it
	}
	large, simulated := lookup(s.Job, "privacy.simulated_population")
	drawn, _ := lookup(s.Job, "privacy.simulated_cohort")
	if !simulated {
		return s, is, nil
	}
	n, m := number(large), number(drawn)
	if !(n > 0 && m > 0 && m <= n) || n != math.Trunc(n) || n > job.MaxPopulation {
		return s, nil, badSetting("privacy.simulated_population is %v and privacy.simulated_cohort %v: want two numbers, "+
			"the second no larger", large, drawn)
	}
	drop(s.Job, "privacy.simulated_population")
	drop(s.Job, "privacy.simulated_cohort")
	if !given("population") {
		s.Population, named["population"] = int(n), true
	}
	if !given("sampling_rate") {
		s.SamplingRate, named["sampling_rate"] = m/n, true
	}
	if !given("cohort") { // few devices stand for the cohort there, a hundred clients here
		s.Cohort, named["cohort"] = usualCohort, false
	}
	return s, is, nil
}

// namesFleet reports whether the job has keys that are settings.
func (s Settings) namesFleet() bool {
	for key := range ownKeys {
		if _, ok := lookup(s.Job, key); ok {
			return true
		}
	}
	_, ok := lookup(s.Job, "privacy.simulated_population")
	return ok
}

func number(v any) float64 {
	var f float64
	if _, err := fmt.Sscan(fmt.Sprint(v), &f); err != nil {
		return math.NaN()
	}
	return f
}

// Fill takes over what the job says of who takes part, and chooses what nobody gave: a hundred clients
// a round, all of them where there are fewer. given says which settings were.
func (s Settings) Fill(given func(setting string) bool) (Settings, error) {
	s, given, err := s.deployment(given)
	if err != nil {
		return s, err
	}
	return s.filled(given), nil
}

func (s Settings) filled(given func(setting string) bool) Settings {
	n := float64(s.Population)
	switch {
	case s.Fixed():
		if !given("cohort") && s.Cohort > s.Population {
			s.Cohort = 0 // which Check asks for
		}
		return s
	case !given("sampling_rate") && given("cohort") && s.Cohort > 0 && float64(s.Cohort) > s.SamplingRate*n:
		s.SamplingRate = min(1, float64(s.Cohort)/n)
	case !given("sampling_rate") && !given("cohort") && usualCohort > s.SamplingRate*n:
		s.SamplingRate = min(1, usualCohort/n)
	}
	if !given("cohort") && float64(s.Cohort) > s.SamplingRate*n {
		s.Cohort = 0
	}
	return s
}

// advise adds to an error about the job what would do in its place, where something does.
func (s Settings) advise(name string, labels []string, err error) error {
	if s.Cohort == 0 || s.Fixed() {
		return translated(err)
	}
	err = job.WithoutRemedy(err)
	takes := func(s Settings) bool {
		_, bad := s.jobOf(name, labels)
		return bad == nil && s.Check() == nil
	}
	for more := s; more.Cohort < enough; {
		more.Cohort++
		if more.WithTrueCohort().Cohort > 0 && takes(more) {
			return job.WithRemedy(err, job.Remedy{{Key: "cohort", Value: more.Cohort}})
		}
	}
	whole := s
	if whole.Cohort = 0; takes(whole) {
		return job.WithRemedy(err, job.Remedy{{Key: "cohort", Value: 0}})
	}
	if whole.SamplingRate = 1; takes(whole) {
		return job.WithRemedy(err, job.Remedy{{Key: "cohort", Value: 0}, {Key: "sampling_rate", Value: 1}})
	}
	fixed := s
	fixed.Job = clone(s.Job)
	if set(fixed.Job, "cohort.sampling", "fixed"); takes(fixed) {
		return job.WithRemedy(err, job.Remedy{{Key: "cohort.sampling", Value: "fixed"}})
	}
	return err
}

// translated has an error's remedy name settings where a job file has keys of its own.
func translated(err error) error {
	of, ok := job.RemedyOf(err)
	if !ok {
		return err
	}
	fixed := slices.ContainsFunc(of, func(c job.Change) bool { return c.Key == "cohort.size" && c.Value != nil })
	var r job.Remedy
	for _, c := range of {
		switch {
		case c.Key == "cohort.size" && c.Value != nil:
			r = append(r, job.Change{Key: "cohort", Value: c.Value})
		case c.Key == "cohort.size", c.Key == "cohort.sampling_rate" && fixed: // what has no meaning then
		case c.Key == "cohort.sampling_rate" && c.Value == nil:
			r = append(r, job.Change{Key: "cohort", Value: 0}, job.Change{Key: "sampling_rate", Value: 1})
		case c.Key == "cohort.sampling" && c.Value == nil:
			r = append(r, job.Change{Key: "cohort.sampling", Value: "poisson"}, job.Change{Key: "cohort", Value: 0},
				job.Change{Key: "sampling_rate", Value: 1})
		default:
			r = append(r, c)
		}
	}
	return badSetting("%w", job.WithRemedy(job.WithoutRemedy(err), r))
}
