// Package nightly keeps make test short: of cases that repeat one another a test plays a few by day, and all of them
// where STARLING_NIGHTLY is set, as make nightly and make mutants set it.
package nightly

import (
	"os"
	"testing"
)

// Variable is the variable of the environment that asks for all cases.
const Variable = "STARLING_NIGHTLY"

// All reports whether all cases are to be played.
func All() bool { return os.Getenv(Variable) != "" }

// Only skips a test by day: why says what notices its faults then.
func Only(t testing.TB, why string) {
	t.Helper()
	if !All() {
		t.Skipf("runs where %s is set: %s", Variable, why)
	}
}

// Few takes the first cases of each class by day, and all of them at night.
type Few struct {
	Each  int // of a class, by day
	taken map[string]int
}

// Take reports whether to play the next case of a class.
func (f *Few) Take(class string) bool {
	if f.taken == nil {
		f.taken = map[string]int{}
	}
	f.taken[class]++
	return All() || f.taken[class] <= f.Each
}

// Classes is how many classes there were.
func (f *Few) Classes() int { return len(f.taken) }
