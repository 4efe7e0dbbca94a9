// Package rehearsal says, before a job has devices, what those of owners who have set nothing would make of it.
package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/bench"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// Report is what stock devices would make of a job.
type Report struct {
	// Elsewhere are the limits that the default policy asks an owner about before joining, Trusted
	// those that remain with --trust-local.
	Elsewhere []edge.PolicyError `json:"asked_elsewhere"`
	Trusted   []edge.PolicyError `json:"asked_with_trust_local"`
	// Diverges says why made-up training came to nothing; "": it did not, or was not tried.
	Diverges string `json:"diverges,omitempty"`
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

// Announced rehearses an announced job over its base: what the default policies would refuse.
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

// Print says it to an operator.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	if r.Diverges != "" {
		b.WriteString("warning: " + r.Diverges + "\n")
	}
	b.WriteString("a device elsewhere whose owner has set nothing " + asks(r.Elsewhere) + "\n")
	b.WriteString("one on this machine, with --trust-local, " + asks(r.Trusted) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func asks(found []edge.PolicyError) string {
	if len(found) == 0 {
		return "would join"
	}
	var list []string
	for _, f := range found {
		list = append(list, fmt.Sprintf("%s (%s; limit: %s)", f.Key, f.What, f.Want))
	}
	return "would decline, or ask its owner, for: " + strings.Join(list, "; ")
}
