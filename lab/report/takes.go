package report

import "fmt"

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

// takesWhy says once how the estimates are made.
const takesWhy = `What a preset of documents would take at its publication's size stands with each that was not run, as an estimate: of the documents that are trained on in all of its runs, of the
operations of a step (410 * 10^9 a document with LoRA over a VT5-base of 512 tokens and a page, 600 trained whole, 560 over a T5-base with patches, scaled from the 87 that are counted at T5-small's size, docs/MODELS.md),
of 150 * 10^9 operations a second of a core, which T5-small's measured step comes to, and of 40 * 10^12 of an accelerator with a plugin (--engine xla), which was not measured. Scoring comes on top.
Rows that are refused are left out, unless all of a preset's are: those first need a round that carries more values, and the 3.6 GB that a program of a whole VT5-base holds besides its states.
`

// text says how long that takes; "" where nothing is estimated.
func (t takes) text() string {
	if t.Documents == 0 {
		return ""
	}
	all := t.Documents * t.Operations / 3600
	return fmt.Sprintf("\nAt the paper's size, estimated: %.3g million documents, %s hours of a core or %s of an accelerator.\n",
		t.Documents/1e6, rounded(all/coreRate), rounded(all/acceleratorRate))
}

// rounded is a number to two digits.
func rounded(x float64) string {
	unit := 1
	for x/float64(unit) >= 100 {
		unit *= 10
	}
	return thousands(int(x/float64(unit)+0.5) * unit)
}

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
