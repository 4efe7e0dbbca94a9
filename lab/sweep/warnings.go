package sweep

import (
	"fmt"
	"math"

	"github.com/starling-fl/starling/job"
)

// Warnings say why a run's figures may not be what a deployment would come to. They follow
// from the record alone, so that one made before is judged as well.
func (r *Record) Warnings() []string {
	var out []string
	for _, w := range []string{r.zeros(), r.shortOfNoise(), r.unlearned()} {
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

// zeros says how many updates training came to nothing for.
func (r *Record) zeros() string {
	zeros, of := 0, 0
	for _, round := range r.Curve {
		zeros, of = zeros+round.Zeros, of+round.Cohort-round.Empty-round.Dropped
	}
	if zeros == 0 {
		return ""
	}
	return fmt.Sprintf("training came to nothing for %d of %d updates, and zeros were sent in their place, as devices do: it diverges, or examples do not fit; "+
		"lower training.learning_rate", zeros, of)
}

// leastNoise is the share of the expected noise below which a round is short of it: the
// norm of d values strays from its expectation by 1/sqrt(2d) of it, of which five are
// allowed (one round in a million) beside a tenth.
func leastNoise(d int) float64 { return 0.9 - 5/math.Sqrt(2*float64(max(1, d))) }

// shortOfNoise holds every round's noise to what its own d and clip norm ask for: ranks
// differ in d, and the norm grows with its root.
func (r *Record) shortOfNoise() string {
	short, share, low, high := 0, 1.0, math.MaxInt, 0
	for _, round := range r.Curve {
		want := r.Rho * round.ClipNorm
		if r.Values > 0 && round.Values > 0 {
			want *= math.Sqrt(float64(round.Values) / float64(r.Values))
		}
		if want == 0 || round.NoiseNorm >= leastNoise(round.Values)*want {
			continue
		}
		short++
		share = min(share, round.NoiseNorm/want)
		low, high = min(low, round.Rank), max(high, round.Rank)
	}
	if short == 0 {
		return ""
	}
	ranks := fmt.Sprintf("rank %d", low)
	if high > low {
		ranks = fmt.Sprintf("ranks %d to %d", low, high)
	}
	finer := ""
	if next := finerUplink(r.uplink()); next != "" {
		finer = " or --set wire.uplink=" + next
	}
	return fmt.Sprintf("%d of %d rounds (%s) had as little as %.0f %% of the noise that they should have: it is finer than the uplink's grid "+
		"for so small a cohort. A larger --cohort%s shows what the deployment's noise does", short, len(r.Curve), ranks, 100*share, finer)
}

// finerUplink is the scheme to advise in place of one; "" if none is finer.
func finerUplink(of string) string {
	switch of {
	case "fixed32":
		return ""
	case "fixed16":
		return "fixed32"
	}
	return "fixed16"
}

// uplink is the scheme that the run's job named, or has by default.
func (r *Record) uplink() string {
	if name, ok := lookup(r.Settings.Job, "wire.uplink"); ok {
		return fmt.Sprint(name)
	}
	return job.Default().Wire.Uplink
}

// unlearned says that a model labels worse than one that always says the commonest label.
// The likeliest reason is a step that is too large: of the server where its optimizer was
// chosen, else of the devices.
func (r *Record) unlearned() string {
	if r.MajorityAccuracy == 0 || r.Accuracy >= r.MajorityAccuracy {
		return ""
	}
	return fmt.Sprintf("not learning: the test accuracy is %.1f %%, and always saying the commonest label gives %.1f %%. "+
		"See whether texts and labels fit each other and whether the noise leaves a signal (rho %.3g); else lower server.learning_rate or training.learning_rate",
		100*r.Accuracy, 100*r.MajorityAccuracy, r.Rho)
}

// judged is an evaluator that knows how often always saying the commonest label would be right.
type judged interface{ MajorityAccuracy() float64 }
