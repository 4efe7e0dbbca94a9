package report

import (
	"fmt"

	"github.com/dustin/go-humanize"
)

// takes is what a preset's runs compute at the publication's size, as an estimate.
type takes struct {
	Documents  float64 `yaml:"documents"`  // that are trained on, each as often as it is
	Operations float64 `yaml:"operations"` // of a step, for each of them
}

// What a core and an accelerator are taken to compute in a second. The first is what a step of
// T5-small comes to (docs/BENCHMARKS.md: four documents of 256 tokens in 0.669 s); the second is
// some part of what accelerators promise, which nobody measured here.
const (
	coreRate        = 150e9
	acceleratorRate = 40e12
)

// text says how long that takes; "" where nothing is estimated.
func (t takes) text() string {
	if t.Documents == 0 {
		return ""
	}
	all := t.Documents * t.Operations / 3600
	return fmt.Sprintf("%.3g million documents: %s hours of a core or %s of an accelerator.",
		t.Documents/1e6, rounded(all/coreRate), rounded(all/acceleratorRate))
}

// rounded is a number to two digits.
func rounded(x float64) string {
	unit := 1
	for x/float64(unit) >= 100 {
		unit *= 10
	}
	return humanize.Comma(int64(x/float64(unit)+0.5) * int64(unit))
}
