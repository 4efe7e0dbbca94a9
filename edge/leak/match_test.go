package leak

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
)

// Matching finds short texts of which low-rank factors and a head are trained, though each
// value is rounded to one of sixteen; of the same number of values that the texts have no
// part in it finds nothing.
func TestMatching(t *testing.T) {
	s := settings(t, smallBase(t), func(j *job.Job) { j.Adapter.Sequence = 6 })
	o := Options{Trials: 8, Tries: 2000}
	if a := found(t, tries(t, s, o), "gradient matching"); a.Low < 0.15 {
		t.Errorf("nothing is found: %+v", a)
	}
	real := s.Trainer
	s.Trainer = &deaf{}
	if a := found(t, tries(t, s, o), "gradient matching"); a.Low > 0 || a.Share > 0.2 {
		t.Errorf("found where there is nothing: %+v", a)
	}
	s.Trainer = real
	s.Steps = 5
	if a := found(t, tries(t, s, Options{Trials: 1}), "gradient matching"); a.NotTried == "" {
		t.Errorf("tried with too many examples: %+v", a)
	}
}

// A training that takes long is not tried again and again: it is said.
func TestMatchingTooSlow(t *testing.T) {
	s := settings(t, smallBase(t), func(*job.Job) {})
	r, err := Check(watchdog.Context(t), s, Options{Trials: 2, Lasts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if a := found(t, r, "gradient matching"); a.NotTried == "" || r.Trials != 2 {
		t.Errorf("%d trials: %+v", r.Trials, a)
	}
}

// Where the job's own base is too slow for it gradients are matched on a tiny one, which
// says so, and decides nothing; a method that the tiny one does not have is said.
func TestMatchingOnTiny(t *testing.T) {
	s := settings(t, smallBase(t), func(*job.Job) {})
	tiny, err := TinyBase()
	if err != nil {
		t.Fatal(err)
	}
	on := settings(t, tiny, func(j *job.Job) { j.Adapter.Sequence = TinySequence })
	var missing error
	o := Options{Trials: 2, Lasts: 1, Seed: []byte("seed"), Tiny: func(context.Context) (Settings, error) { return on, missing }}
	r, err := Check(watchdog.Context(t), s, o)
	if err != nil {
		t.Fatal(err)
	}
	const name = nameMatching + " on a tiny base"
	// A machine that is busy enough is too slow for the tiny one as well.
	if a := found(t, r, name); !a.Tiny || (a.All == 0) != strings.HasPrefix(a.NotTried, "a training takes") {
		t.Errorf("%+v", a)
	}
	for i := range r.Attacks {
		if r.Attacks[i].Tiny {
			r.Attacks[i].Share = 1
		}
	}
	if worst, ok := r.Worst(Tokens); !ok || worst.Tiny {
		t.Errorf("it decides: %+v", worst)
	}
	missing = errors.New("no such module")
	if r, err = Check(watchdog.Context(t), s, o); err != nil {
		t.Fatal(err)
	}
	if a := found(t, r, name); !strings.Contains(a.NotTried, "no such module") {
		t.Errorf("%+v", a)
	}
}
