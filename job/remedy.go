package job

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Change gives a key of the job file another value; Value nil leaves the key out.
type Change struct {
	Key   string // dotted, as cohort.floor
	Value any
}

// A Remedy is a list of changes with which a refused job passes all checks that need no base.
type Remedy []Change

// String says what to do, as the end of an error's sentence.
func (r Remedy) String() string {
	var set, drop []string
	for _, c := range r {
		if c.Value == nil {
			drop = append(drop, c.Key)
		} else {
			set = append(set, fmt.Sprintf("%s: %v", c.Key, c.Value))
		}
	}
	var parts []string
	if len(set) > 0 {
		parts = append(parts, "set "+strings.Join(set, ", "))
	}
	if len(drop) > 0 {
		parts = append(parts, "leave "+strings.Join(drop, ", ")+" out")
	}
	out := strings.Join(parts, ", and ") + ", which would do"
	for _, c := range r {
		if c.Key == "shard.corrupt" {
			return out + " where every device is known and trusted not to collude with the coordinator"
		}
	}
	return out
}

// refusal is an error with a remedy.
type refusal struct {
	error
	remedy Remedy
}

func (r refusal) Error() string { return r.error.Error() + "; " + r.remedy.String() }
func (r refusal) Unwrap() error { return r.error }

// WithRemedy is an error that recommends a remedy: the caller has tried it.
func WithRemedy(err error, r Remedy) error { return refusal{err, r} }

// RemedyOf returns the remedy that an error of [Parse] recommends, and whether it does.
func RemedyOf(err error) (Remedy, bool) {
	var r refusal
	ok := errors.As(err, &r)
	return r.remedy, ok
}

// WithoutRemedy is what an error of [Parse] says without what it recommends, for callers that set these keys
// themselves.
func WithoutRemedy(err error) error {
	var r refusal
	if errors.As(err, &r) {
		return r.error
	}
	return err
}

// check is everything that a job is held to before its base is known.
func (j Job) check() error {
	if err := j.Validate(); err != nil {
		return err
	}
	if _, err := j.Quorum(); err != nil {
		return err
	}
	return errors.Join(j.validateStart(), j.CheckSlow())
}

// edit changes the keys of a job that say who takes part.
type edit func(*Job)

// edits are small changes of a job as it was written, before defaults were filled in. The first
// ones give up nothing. Each is tried in its order, so that a remedy gives up as little as it can. The last
// two give up most.
func (j Job) edits() []edit {
	expected := int(math.Round(j.ExpectedCohort()))
	cohortFloor := func(k *Job) { k.Cohort.Floor = 0 }
	shards := func(k *Job) { k.Shard.Size, k.Shard.Floor = 0, 0 }
	coins := func(k *Job) { k.Cohort.Dropout, k.Cohort.Quorum = 0, 0 }
	cut := func(k *Job) { k.Shard.Trim, k.Shard.Groups = 0, 0 }
	alone := func(k *Job) { k.Cohort.Sampling, k.Cohort.Size = "", 0 }
	everybody := func(k *Job) { alone(k); k.Cohort.SamplingRate = 1; coins(k) }
	fixed := func(k *Job) {
		size := cmp.Or(k.Cohort.Size, expected)
		k.Cohort.Sampling, k.Cohort.Size = samplingFixed, min(max(2, size), k.Cohort.Population)
		k.Cohort.SamplingRate = 1
		coins(k)
	}
	// The least shard that withstands the share of corrupted devices needs a cohort of its size.
	raised := func(k *Job) {
		d := k.Derived()
		k.Cohort.Floor = min(max(d.Cohort.Floor, d.Shard.Floor), int(k.ExpectedCohort()))
	}
	follows := func(k *Job) { k.Shard.SemiHonest = true }
	trusted := func(k *Job) { k.Shard.Corrupt, k.Shard.BreachBits = 0, 0 }
	plain := []edit{begin, lessSlow, cohortFloor, shards, cut, both(cohortFloor, shards), both(cohortFloor, shards, cut),
		raised, both(shards, raised), both(shards, cut, raised)}
	if !j.Sampled() { // where no coin is flipped these say nothing of the fleet
		plain = slices.Insert(plain, 0, coins)
	}
	some := []edit{fixed, both(fixed, cohortFloor, shards), both(fixed, cohortFloor, raised),
		both(fixed, cohortFloor, shards, cut, raised)}
	all := []edit{everybody, both(everybody, cohortFloor, shards),
		both(everybody, cohortFloor, raised), both(everybody, cohortFloor, shards, cut, raised)}
	most := []edit{follows, both(follows, shards), both(follows, cohortFloor, shards, cut), coins,
		both(follows, coins), both(follows, cohortFloor, shards, coins, cut)}
	var trust []edit
	for _, e := range slices.Concat([]edit{func(*Job) {}}, plain, some) {
		trust = append(trust, both(trusted, e))
	}
	last := []edit{both(trusted, fixed, cohortFloor, shards, cut, lessSlow), both(trusted, everybody, cohortFloor, shards, cut, lessSlow)}
	switch {
	case j.Cohort.Size > 0: // a size that somebody chose
		return slices.Concat(plain, some, trust, all, most, last)
	case j.Cohort.Population > largeFleet: // all of so many would be asked too much
		return slices.Concat(plain, most, some, all, trust, last)
	}
	return slices.Concat(plain, some, all, most, trust, last)
}

// begin raises cohort.start to what a round needs.
func begin(k *Job) {
	if n, err := k.Derived().LeastStart(); err == nil && k.StartsWith() < n {
		k.Cohort.Start = float64(min(n, k.Cohort.Population))
	}
}

// lessSlow lowers deadlines.slow to the largest share, in hundredths, that the job's rounds can lack.
func lessSlow(k *Job) {
	if k.Deadlines.Slow == 0 {
		return
	}
	d := k.Derived()
	if d.CheckSlow() == nil {
		return
	}
	most := 49
	if slow := k.Deadlines.Slow; slow > 0 && slow < 0.5 {
		most = int(100*slow + 1e-9)
	}
	for ; most > 0; most-- {
		if d.Deadlines.Slow = float64(most) / 100; d.CheckSlow() == nil {
			break
		}
	}
	k.Deadlines.Slow = float64(most) / 100
}

// largeFleet is how many devices are too many to ask all of them in every round.
const largeFleet = 500

func both(of ...edit) edit {
	return func(k *Job) {
		for _, e := range of {
			e(k)
		}
	}
}

// advise adds to an error about a job, as it was written, the first remedy that passes. If not even the last
// two pass, then the error is about something else.
func (j Job) advise(err error) error {
	edits := j.edits()
	passes := func(e edit) bool {
		k := j
		e(&k)
		return k.Derived().check() == nil
	}
	if j.Cohort.Start != 0 { // what a round needs follows from all else
		for i, e := range edits {
			edits[i] = both(e, begin)
		}
	}
	if n := len(edits); !passes(edits[n-1]) && !passes(edits[n-2]) {
		return err
	}
	for _, e := range edits {
		k := j
		e(&k)
		if r := changes(j, k); len(r) > 0 && passes(e) {
			return refusal{err, r}
		}
	}
	return err
}

// changes lists the keys in which two jobs differ.
func changes(from, to Job) Remedy {
	var r Remedy
	none := Default()
	for _, key := range []struct {
		name string
		of   func(Job) any
	}{
		{"cohort.sampling", func(j Job) any { return j.Cohort.Sampling }},
		{"cohort.size", func(j Job) any { return j.Cohort.Size }},
		{"cohort.sampling_rate", func(j Job) any { return j.Cohort.SamplingRate }},
		{"cohort.floor", func(j Job) any { return j.Cohort.Floor }},
		{"cohort.start", func(j Job) any { return j.Cohort.Start }},
		{"cohort.dropout", func(j Job) any { return j.Cohort.Dropout }},
		{"cohort.quorum", func(j Job) any { return j.Cohort.Quorum }},
		{"shard.size", func(j Job) any { return j.Shard.Size }},
		{"shard.floor", func(j Job) any { return j.Shard.Floor }},
		{"shard.trim", func(j Job) any { return j.Shard.Trim }},
		{"shard.groups", func(j Job) any { return j.Shard.Groups }},
		{"shard.corrupt", func(j Job) any { return j.Shard.Corrupt }},
		{"shard.breach_bits", func(j Job) any { return j.Shard.BreachBits }},
		{"shard.semi_honest", func(j Job) any { return j.Shard.SemiHonest }},
		{"deadlines.slow", func(j Job) any { return j.Deadlines.Slow }},
	} {
		switch was, is := key.of(from), key.of(to); {
		case was == is:
		case is == key.of(none):
			r = append(r, Change{key.name, nil})
		default:
			r = append(r, Change{key.name, is})
		}
	}
	return r
}
