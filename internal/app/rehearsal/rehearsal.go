// Package rehearsal says, before a job has devices, what those of owners who have set nothing would make of it.
package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/bench"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// Report says how stock devices would respond to a job.
type Report struct {
	// Elsewhere are the limits that the default policy asks an owner about before joining, Trusted
	// those that remain with --trust-local.
	Elsewhere []edge.PolicyError `json:"asked_elsewhere"`
	Trusted   []edge.PolicyError `json:"asked_with_trust_local"`
	// Diverges says why made-up training came to nothing; "": it did not, or was not tried.
	Diverges string `json:"diverges,omitempty"`
	// Rho is the noise in a released mean over what clipping bounds that mean by (core.Terms.Rho), Weighed what
	// follows if the noise is the larger; "": it is not.
	Rho     float64 `json:"rho"`
	Weighed string  `json:"noise,omitempty"`
}

// File rehearses the job of a file over its base, and takes two made-up steps of it.
func File(ctx context.Context, path string, j job.Job, base *model.Base) (*Report, error) {
	announced, err := coordinator.Announcement(j, base)
	if err != nil {
		return nil, err
	}
	r, err := Announced(announced, base)
	if err != nil {
		return nil, err
	}
	return r, r.Train(ctx, bench.Config{Job: path, Read: base}, j.ForBase(base.Config).Privacy.ClipNorm)
}

// Announced returns what the default policies would refuse of an announced job over its base.
func Announced(announced []byte, base *model.Base) (*Report, error) {
	r := new(Report)
	for _, c := range []struct {
		to     *[]edge.PolicyError
		policy edge.Policy
	}{{&r.Elsewhere, edge.DefaultPolicy()}, {&r.Trusted, edge.LocalPolicy()}} {
		var err error
		if *c.to, err = edge.Rehearse(announced, base, &c.policy); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Train takes two made-up steps of the job at its own learning rate, and holds what they come to against the clip norm.
func (r *Report) Train(ctx context.Context, f bench.Config, clip float64) error {
	b, err := f.FromFile(ctx, io.Discard)
	if err != nil {
		return err
	}
	const largest = 1000 // of an update over the clip norm: of AdamW's at the defaults it is 4 at most
	switch norm, err := b.Moves(ctx); {
	case errors.Is(err, edge.ErrDiverged):
		r.Diverges = fmt.Sprintf("training diverges on made-up examples at training.learning_rate %.4g (%v): no device would contribute", b.LearningRate, err)
	case err != nil:
		return err
	case norm > largest*clip:
		r.Diverges = fmt.Sprintf("two steps at training.learning_rate %.4g move the adapter by %.3g, and privacy.clip_norm is %.3g: nothing is learnt at such a rate", b.LearningRate, norm, clip)
	}
	return nil
}

// Weigh takes the noise of the job's releases, over what clipping bounds them by, and warns if it is the larger.
func (r *Report) Weigh(rho float64, j job.Job) {
	r.Rho = rho
	if rho <= 1 {
		return
	}
	devices := j.Cohort.Population
	if j.Privacy.SimulatedPopulation > 0 {
		devices = j.Privacy.SimulatedPopulation
	}
	expect := "accuracy suffers"
	if rho > hopeless {
		expect = "expect nothing to be learnt"
	}
	r.Weighed = fmt.Sprintf("noise outweighs signal: it is %.2g times as long as clipping lets a mean update be, so %s. At this privacy.epsilon "+
		"about %.0f devices would make them equal; starling init tries on your data what %d can have", rho, expect, twoDigits(float64(devices)*rho), devices)
}

// twoDigits rounds to two of them.
func twoDigits(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x))-1)
	return math.Round(x/unit) * unit
}

// hopeless is the noise over the bound of a mean update beyond which nothing was seen to be learnt: with 1.7 forty
// devices came to 86 % on R8, with 5 and 17 to less than by always saying the commonest label.
const hopeless = 4

// Print writes the report as text, with a line for each limit.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	if r.Diverges != "" {
		b.WriteString("warning: " + r.Diverges + "\n")
	}
	if r.Weighed != "" {
		b.WriteString("warning: " + r.Weighed + "\n")
	}
	b.WriteString("a device on another machine, with default limits, " + asks(r.Elsewhere) + "\n")
	b.WriteString("one on this machine, with --trust-local, " + asks(r.Trusted) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func asks(found []edge.PolicyError) string {
	if len(found) == 0 {
		return "would join"
	}
	list := "would decline, or ask its owner about:"
	for _, f := range found {
		list += fmt.Sprintf("\n  %s (%s; limit: %s)", f.Key, f.What, f.Want)
	}
	return list
}
