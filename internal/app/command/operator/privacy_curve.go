package operator

import (
	"errors"
	"io"
	"os"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/audit"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/guarantee"
	"github.com/starling-fl/starling/internal/app/usage"
)

// Plots draw what commands are asked to, in the format "svg", "pdf" or "png". A program that links
// nothing that draws has none.
type Plots interface {
	Curve(w io.Writer, format string, c *guarantee.Curve) error
	Audit(w io.Writer, format string, r audit.Result) error
}

// checkPlotName refuses a file that is of none of the formats, and a plot where nothing draws.
func checkPlotName(p Plots, flag, name string, formats ...string) error {
	if err := command.CheckFormat(flag, name, formats...); err != nil {
		return err
	}
	if p == nil && command.Format(name) != "csv" {
		return usage.Errorf("--%s %q: this program was built without plots: make build makes one with them", flag, name)
	}
	return nil
}

// writePlot has a file written. One that could not be written whole is removed.
func writePlot(name string, to func(w io.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(name)
		}
	}()
	return to(f)
}

// writeCurve writes the file of --curve.
func (f *privacyFlags) writeCurve(r *guarantee.Report, acct dp.Accountant) error {
	if f.curve == "" {
		return nil
	}
	r.Curve = f.curve
	c := &guarantee.Curve{Rate: f.Rate, Noise: f.Noise, Provider: f.ProviderRate, Delta: f.Delta, Target: r.Target}
	if err := c.Compute(f.Rounds, f.Event, acct); err != nil {
		return err
	}
	return writePlot(f.curve, func(w io.Writer) error {
		if format := command.Format(f.curve); format != "csv" {
			return f.plots.Curve(w, format, c)
		}
		return c.WriteCSV(w)
	})
}
