package operator

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dp/audit"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/dossier"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/job"
)

type auditFlags struct {
	job, base, trace, plot      string
	canaries                    int
	confidence, online, dropout float64
	limit                       time.Duration
	plots                       Plots // what draws --plot
}

// auditReport is what "privacy audit" prints with --json.
type auditReport struct {
	Name string `json:"name"`
	audit.Result
	Plot string `json:"plot,omitempty"` // the file that was written

	alone bool // the checks are of the job without its simulated population
}

// errFlawed is an audit that found more given away than the ledger says, or a check that fails.
type errFlawed struct{ audit.Result }

func (e errFlawed) Error() string {
	var failed []string
	for _, c := range e.Checks {
		if c.Verdict == audit.Flawed {
			failed = append(failed, c.Name)
		}
	}
	if len(failed) > 0 {
		return fmt.Sprintf("the job's rounds are not what its ledger says (%s): do not run it, and report this as SECURITY.md says", strings.Join(failed, "; "))
	}
	return fmt.Sprintf("the job gives away an epsilon of %.4g at least, its ledger says %.4g: do not run it, and report this as SECURITY.md says",
		e.Epsilon, e.Ledger.Epsilon)
}

func newPrivacyAuditCmd(a *command.App, p Plots) *cobra.Command {
	f := auditFlags{plots: p}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Test a job's noise, coins and ledger, and compare its epsilon with what canaries show",
		Long: `First come the checks: the audit knows each exact sum, and so the noise. It holds its
variance, in all and by coordinate, its correlation within and between rounds, the
size and members of cohorts, the rate of hits, the norm of an extremal device and the
number of charged rounds against the ledger, whose epsilon a second accountant
composes again. docs/privacy/audit.md says what each check finds, how surely.

Then run the job's rounds with canaries among its devices: synthetic members that are
in or out by a secret coin. From everything that becomes public (released sums,
clip norms, whether a round was released or charged, numbers of shards) it is
guessed which were in. Draw, encoding, thresholds and release are the job's own;
masks cancel and are left out, and nothing is trained.

Too many right guesses are a lower bound of the job's real epsilon (Steinke, Nasr,
Jagielski 2023). Above the ledger's epsilon it is a flaw: exit code 1. Below it
nothing is proven: "could show" is the most that so many canaries can find. A sound
job is called flawed with the probability that --confidence leaves.`,
		Example: `  starling privacy audit --job job.yaml
  starling privacy audit --job job.yaml --canaries 2000 --dropout 0.1 --plot audit.svg
  starling privacy audit --job job.yaml --trace fleet.csv --json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runAudit(cmd.Context(), a, f, cmd.Flags().Changed) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.job, "job", "", "job file (required)")
	fl.StringVar(&f.base, "base", "", "base folder in place of the job file's: what matters of it is how many values are trained")
	fl.IntVar(&f.canaries, "canaries", 0, fmt.Sprintf("synthetic devices, each in or out by a coin, of the job's population, or of several runs where that is below 8; 0: %d, or as many as fit", audit.DefaultCanaries))
	fl.Float64Var(&f.confidence, "confidence", 1-audit.DefaultLevel, "probability with which the lower bound holds")
	fl.Float64Var(&f.online, "online", 1, "share of the devices that is there before a draw")
	fl.Float64Var(&f.dropout, "dropout", 0, "share of the drawn devices that vanishes in mid-round")
	fl.StringVar(&f.trace, "trace", "", "CSV file with the columns online,dropout: both, round by round, in place of the two flags")
	fl.DurationVar(&f.limit, "limit", audit.DefaultLimit, "time for all of it; rounds that are not made by then are in neither epsilon")
	fl.StringVar(&f.plot, "plot", "", "also draw the canaries' scores to FILE.svg, FILE.pdf or FILE.png")
	return cmd
}

// config puts flags and job file together.
func (f auditFlags) config(given func(string) bool) (audit.Config, error) {
	cfg := audit.Config{Canaries: f.canaries, Level: 1 - f.confidence, Limit: f.limit}
	switch {
	case f.job == "":
		return cfg, usage.Errorf("--job is required")
	case f.canaries < 0:
		return cfg, usage.Errorf("--canaries %d, want at least 8, or 0 to choose", f.canaries)
	case !(f.confidence > 0.5 && f.confidence < 1):
		return cfg, usage.Errorf("--confidence %v, want in (0.5, 1)", f.confidence)
	case !(f.online > 0 && f.online <= 1):
		return cfg, usage.Errorf("--online %v, want in (0, 1]", f.online)
	case !(f.dropout >= 0 && f.dropout < 1):
		return cfg, usage.Errorf("--dropout %v, want in [0, 1)", f.dropout)
	case f.limit <= 0:
		return cfg, usage.Errorf("--limit %v, want positive", f.limit)
	case f.trace != "" && (given("online") || given("dropout")):
		return cfg, usage.Errorf("--trace has both shares: give it, or --online and --dropout")
	}
	if f.plot != "" {
		if err := checkPlotName(f.plots, "plot", f.plot, "svg", "pdf", "png"); err != nil {
			return cfg, err
		}
	}
	cfg.Trace = []audit.Attendance{{Online: f.online, Dropout: f.dropout}}
	var err error
	if f.trace != "" {
		if cfg.Trace, err = readTrace(f.trace); err != nil {
			return cfg, err
		}
	}
	if cfg.Job, err = job.Load(f.job); err != nil {
		return cfg, err
	}
	if f.base != "" {
		cfg.Job.Base = f.base
	}
	cfg.Base, err = bases.ForJob(cfg.Job)
	return cfg, err
}

func readTrace(path string) ([]audit.Attendance, error) {
	f, err := named.Once(path)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	defer f.Close()
	trace, err := audit.ReadTrace(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return trace, nil
}

func runAudit(ctx context.Context, a *command.App, f auditFlags, given func(string) bool) error {
	cfg, err := f.config(given)
	if err != nil {
		return err
	}
	view := &auditView{w: a.Stderr}
	_, view.live = terminal.Width(a.Stderr)
	cfg.Progress = view.show
	r, err := audit.Run(ctx, cfg)
	view.end()
	if err != nil {
		return err
	}
	report := auditReport{cfg.Job.Name, r, f.plot, cfg.Job.Simulated()}
	if f.plot != "" {
		if err := writePlot(f.plot, func(w io.Writer) error { return f.plots.Audit(w, command.Format(f.plot), r) }); err != nil {
			return err
		}
	}
	if err := a.Emit(report, report.print); err != nil {
		return err
	}
	if r.Flawed {
		return errFlawed{r}
	}
	return nil
}

// table is the checks, for a terminal.
func (r auditReport) table() dossier.Dossier {
	t := dossier.Table{Title: fmt.Sprintf("Checks: a sound job fails one with probability %.1g at most", r.FalseAlarms), Words: true,
		Head: []string{"check", "verdict", "value", "must be", "of what"}}
	for _, c := range r.Checks {
		row := []string{c.Name, string(c.Verdict), "", "", c.Why}
		if c.Statistic != "" {
			row[2], row[3], row[4] = fmt.Sprintf("%.4g", c.Value), bounds(c.Low, c.High), c.Statistic
		}
		if c.Statistic != "" && c.Why != "" {
			row[4] += ": " + c.Why
		}
		t.Rows = append(t.Rows, row)
	}
	if r.alone {
		t.About = "With the noise that the job's own devices would need: a simulated population's is too little to be seen."
	}
	return dossier.Dossier{Title: "Conformance", Tables: []dossier.Table{t}}
}

// bounds is a range in words.
func bounds(low, high float64) string {
	switch {
	case low == high:
		return fmt.Sprintf("%.4g", low)
	case high >= math.MaxFloat64:
		return fmt.Sprintf("%.4g or more", low)
	case high == 1 && low > 0 && low < 1e-3: // a p-value
		return fmt.Sprintf("%.2g or more", low)
	}
	return fmt.Sprintf("%.4g to %.4g", low, high)
}

// auditView follows an audit on standard error: one line that is rewritten on a
// terminal, elsewhere a line for each tenth.
type auditView struct {
	w     io.Writer
	live  bool
	said  string
	tenth int
}

func (v *auditView) show(pass audit.Pass, round, of int) {
	line := fmt.Sprintf("canaries' %s: round %d of %d", pass, round, of)
	if v.live {
		fmt.Fprintf(v.w, "\r%s%s", line, strings.Repeat(" ", max(0, len(v.said)-len(line))))
		v.said = line
		return
	}
	if tenth := 10 * round / of; tenth != v.tenth {
		v.tenth = tenth
		fmt.Fprintln(v.w, line)
	}
}

func (v *auditView) end() {
	if v.said != "" {
		fmt.Fprintln(v.w)
	}
}

func (r auditReport) print(w io.Writer) error {
	fmt.Fprintf(w, "Job %s\n\n", r.Name)
	if err := r.table().Text(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "epsilon           %.4g at least, with %.4g %% confidence: what %d canaries show\n", r.Epsilon, 100*r.Confidence, r.Canaries)
	fmt.Fprintf(w, "  could show      %.4g, if every guess were right\n", r.Most)
	fmt.Fprintf(w, "  ledger          %.4g at delta %.3g, %s adjacency, %s accountant, sampling %s, %d rounds\n",
		r.Ledger.Epsilon, r.Ledger.Delta, r.Ledger.Adjacency, r.Ledger.Accountant, r.Ledger.Sampling, r.Ledger.Rounds)
	for _, p := range r.Passes {
		again := ""
		if p.Runs > 1 {
			again = fmt.Sprintf(" of %d runs, since the job's population is small", p.Runs)
		}
		fmt.Fprintf(w, "\n%s: %d canaries%s, %d of %d rounds, %d released\n", p.Pass, p.Canaries, again, p.Rounds, p.Of, p.Released)
		for _, g := range p.Guesses {
			fmt.Fprintf(w, "  by %-12s %d guessed in, %d out: %d of %d right, epsilon %.4g at least\n", g.Score, g.In, g.Out, g.Right, g.In+g.Out, g.Epsilon)
		}
	}
	fmt.Fprintln(w)
	switch {
	case r.Flawed && r.Epsilon <= r.Ledger.Epsilon:
		fmt.Fprintln(w, "FLAWED: the job's rounds are not what its ledger says: see the checks.")
	case r.Flawed:
		fmt.Fprintln(w, "FLAWED: the job gives away more than its ledger says.")
	case r.Most <= r.Ledger.Epsilon:
		fmt.Fprintln(w, "Nothing found, and nothing could be: the ledger's epsilon is above what so many\ncanaries can show. More canaries, or the same job with a smaller epsilon, would.")
	default:
		fmt.Fprintln(w, "No flaw found. That proves none absent: the ledger's epsilon is an upper bound of\nthe mechanism, this a lower one of what these canaries reach.")
	}
	if r.Plot != "" {
		fmt.Fprintf(w, "plot              %s\n", r.Plot)
	}
	return nil
}
