package membership

import (
	"errors"
	"fmt"
	"math"
)

// Metric is one mean over a provider's examples.
type Metric int

// The metrics, by what they are called in the paper and here.
const (
	ACC        Metric = iota // share of right answers
	NLS                      // normalized Levenshtein similarity of the answers
	Loss                     // cross-entropy of what is right
	Confidence               // how sure the model is of what it says
	DeltaLoss                // Loss less the base's
	DeltaConfidence
	MemoryNLS      // NLS where the answer was removed from the document
	DeltaMemoryNLS // how alike what is said without a question is, before and after it is removed
	BaseACC        // of the base alone: a control
	BaseNLS
	BaseLoss
	BaseConfidence

	Metrics // how many there are
)

var metricNames = [Metrics]string{"ACC", "NLS", "loss", "confidence", "Δloss", "Δconfidence", "NLS_mem", "ΔNLS_mem",
	"base ACC", "base NLS", "base loss", "base confidence"}

func (m Metric) String() string { return metricNames[m] }

// The paper's groups of metrics.
var (
	G1 = []Metric{ACC, NLS}
	G2 = []Metric{Loss, Confidence}
	G3 = []Metric{DeltaLoss, DeltaConfidence}
	G4 = []Metric{MemoryNLS, DeltaMemoryNLS}

	ofBase = []Metric{BaseACC, BaseNLS, BaseLoss, BaseConfidence}
)

// A Unit is a provider, or anybody else who may be a member, with the means over its examples.
type Unit struct {
	Name      string
	Member    bool
	Questions int              // examples that the means are of
	Means     [Metrics]float64 // NaN: there is none

	// Target is the statistic of the likelihood ratio in the attacked model; In and Out are those
	// in the attacker's own models that have the unit among their members, and that do not. See
	// LiRA.
	Target  float64
	In, Out []float64
}

// ErrUnits is a list of units that cannot be attacked.
var ErrUnits = errors.New("membership")

// has reports whether some unit has all of the metrics.
func has(units []Unit, metrics []Metric) bool {
	for _, u := range units {
		all := true
		for _, m := range metrics {
			all = all && !math.IsNaN(u.Means[m])
		}
		if all {
			return true
		}
	}
	return false
}

// rows are the units' metrics; one that a unit lacks is the mean of those that have it.
func rows(units []Unit, metrics []Metric) [][]float64 {
	mean := make([]float64, len(metrics))
	for k, m := range metrics {
		sum, n := 0.0, 0.0
		for _, u := range units {
			if x := u.Means[m]; !math.IsNaN(x) {
				sum, n = sum+x, n+1
			}
		}
		if n > 0 {
			mean[k] = sum / n
		}
	}
	out := make([][]float64, len(units))
	for i, u := range units {
		out[i] = make([]float64, len(metrics))
		for k, m := range metrics {
			if out[i][k] = u.Means[m]; math.IsNaN(out[i][k]) {
				out[i][k] = mean[k]
			}
		}
	}
	return out
}

// count is how many units are members, and how many are not.
func count(units []Unit) (members, others int) {
	for _, u := range units {
		if u.Member {
			members++
		} else {
			others++
		}
	}
	return members, others
}

// check refuses units of which nothing can be told.
const leastUnits = 10 // of each kind that can be attacked

func check(units []Unit) error {
	seen := map[string]bool{}
	for _, u := range units {
		if seen[u.Name] {
			return fmt.Errorf("%w: %.60q is among members and others, or twice", ErrUnits, u.Name)
		}
		seen[u.Name] = true
		for m, x := range u.Means {
			if math.IsInf(x, 0) {
				return fmt.Errorf("%w: %s of %.60q is %v", ErrUnits, Metric(m), u.Name, x)
			}
		}
	}
	if in, out := count(units); in < leastUnits || out < leastUnits {
		return fmt.Errorf("%w: %d members and %d others, want at least %d of each", ErrUnits, in, out, leastUnits)
	}
	return nil
}
