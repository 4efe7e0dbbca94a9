package admin

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// Print writes the dashboard's first screen for a terminal.
func (o *Overview) Print(w io.Writer) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s  %s\n", name, terminal.Visible(fmt.Sprintf(format, args...), ""))
	}
	if s := o.Status; s != nil {
		printJob(line, s)
		if f := o.Forecast; f.Epsilon > 0 {
			line("budget", "epsilon %.4g at delta %.3g (%s); %d rounds are left, of which it holds %d", f.Epsilon, f.Delta, f.Bound, f.Left, f.Affords)
		}
	}
	if o.Paused != nil {
		line("paused", "%s", o.Paused.Reason)
	}
	for _, j := range o.Jobs {
		line("job", "%s: %s, %d of %d rounds released, pool %s %s", j.Name, j.State, j.Version, j.Rounds, j.Pool, j.Reason)
	}
	if o.Status == nil && len(o.Jobs) == 0 {
		line("jobs", "none was submitted")
	}
	printChecks(line, o.Ready, o.Checks)
	_, err := io.WriteString(w, b.String())
	return err
}

func printJob(line func(name, format string, args ...any), s *monitor.Status) {
	state := s.State
	if s.Reason != "" {
		state += ": " + s.Reason
	}
	line("job", "%s, %s", s.Job, state)
	if s.Round == 0 {
		line("rounds", "none of %d has begun", s.Rounds)
	} else {
		nothing := ""
		if n := s.Unreleased(); n > 0 {
			nothing = fmt.Sprintf(", %d before it released nothing", n)
		}
		line("rounds", "%d of %d are released; the last that began is round %d%s, %v after the job began", s.Version, s.Rounds, s.Round, nothing, s.Elapsed.Round(time.Second))
	}
	line("devices", "%d enrolled, %d connected", s.Enrolled, s.Connected)
	if s.Cohort > 0 {
		line("cohort", "%d drawn, %d answered, %d left, %d absent", s.Cohort, s.Answered, s.Dropped, s.Absent)
	}
	switch {
	case !s.Private:
		line("privacy", "none: the job promises none")
	case s.Version == 0 && (s.Delivered == nil || s.Delivered.Epsilon == 0):
		line("privacy", "nothing is spent")
	case s.Simulated != nil && s.Delivered != nil:
		line("privacy", "spent: epsilon %.4g at delta %.3g of the fleet that is simulated; these devices themselves: %.4g", s.Simulated.Epsilon, s.Simulated.Delta, s.Delivered.Epsilon)
	case s.Delivered != nil:
		line("privacy", "spent: epsilon %.4g at delta %.3g", s.Delivered.Epsilon, s.Delivered.Delta)
	default:
		line("privacy", "nothing is spent")
	}
	best := -1.0
	rank := 0
	for _, v := range s.Validation {
		if v.Accuracy > best {
			best, rank = v.Accuracy, v.Rank
		}
	}
	if best >= 0 {
		line("accuracy", "%.1f %% on public validation data, at rank %d, after %d rounds", 100*best, rank, s.ValidationVersion)
	}
	line("traffic", "%s from devices, %s to them", terminal.Bytes(int64(s.BytesUp)), terminal.Bytes(int64(s.BytesDown)))
}

func printChecks(line func(name, format string, args ...any), ready bool, checks []coordinator.Check) {
	if ready {
		line("ready", "yes, %d checks", len(checks))
		return
	}
	for _, c := range checks {
		if !c.OK {
			line("not ready", "%s: %s", c.Name, c.Detail)
		}
	}
}
