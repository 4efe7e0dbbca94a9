package commands

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/starling-fl/starling/lab/sweep"
)

// sayReferences says what the accuracy is held to.
func (r simulation) sayReferences(line func(string, ...any)) {
	f := r.References
	if f == nil {
		return
	}
	if r.MajorityAccuracy > 0 {
		line("  for comparison  %5.1f %%  by always saying the commonest label", 100*r.MajorityAccuracy)
	}
	line("                  %5.1f %%  by the untouched base", 100*f.Untouched)
	if f.Linear != nil {
		line("                  %5.1f %%  by a linear model over words (macro-F1 %.1f %%), trained on all clients' %d texts in one place", 100*f.Linear.Accuracy,
			100*f.Linear.MacroF1, f.Linear.Texts)
	} else {
		line("                  %s", f.NoLinear)
	}
	if f.Unnoised != nil {
		line("                  %5.1f %%  by the same run without noise", 100**f.Unnoised)
	}
	if f.Unclipped != nil {
		line("                  %5.1f %%  by the same run without noise and without clipping", 100**f.Unclipped)
	}
}

// controls simulates a run without noise, and without clipping either, and notes what they come to.
func controls(ctx context.Context, w io.Writer, lab *sweep.Lab, view *simulateView, out string, r *sweep.Record) error {
	if r.References == nil {
		return errors.New("--reference: this result was made by an older program: simulate it again in another --out")
	}
	for _, c := range []struct {
		what      string
		unclipped bool
		to        **float64
	}{{"without noise", false, &r.References.Unnoised}, {"without noise and clipping", true, &r.References.Unclipped}} {
		if r.Settings.Unprotected() && (!c.unclipped || r.Settings.Unclipped) {
			continue // it is that run
		}
		s := r.Settings.WithoutNoise(r.Curve[0].ClipNorm, c.unclipped)
		if err := lab.Check(s); err != nil {
			fmt.Fprintf(w, "--reference: the same run %s is refused: %v\n", c.what, err)
			continue
		}
		fmt.Fprintf(w, "the same run %s:\n", c.what)
		view.headed = false
		control, _, err := lab.Make(ctx, sweep.Point{Settings: s}, out)
		if err != nil && !errors.Is(err, sweep.ErrCheckpoint) {
			return err
		}
		*c.to = &control.Accuracy
	}
	return nil
}
