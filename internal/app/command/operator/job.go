package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/admin"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/rehearsal"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/job"
)

func newJobCmd(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job",
		Short: "Check a job file; submit jobs to a server of several, and steer them",
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "check FILE",
		Short: "Check whether a job file can be run, and print its defaults",
		Long: `Read a job file as serve does and name the first key that cannot be. If its base is
here, the job is rehearsed: what devices would ask their owners about whose owners have set
nothing, elsewhere and with --trust-local, and whether two steps on made-up examples diverge.`,
		Example: "  starling job check examples/job.yaml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("%s takes one job file, got %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := job.Load(args[0])
			if err != nil {
				return err
			}
			report, err := checked(cmd.Context(), args[0], j)
			if err != nil {
				return err
			}
			return a.Emit(report, report.print)
		},
	}, &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of job files, for editors",
		Args:  command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Stdout.Write(job.Schema)
			return err
		},
	})
	cmd.AddCommand(newJobSignCmd(a), newJobBeginCmd(a), newJobSubmitCmd(a),
		listCmd(a, "List a server's jobs", "name\tpool\tpriority\tstate\trounds\tsubmitted\treason", admin.Fleet.Jobs, jobLine),
		jobActCmd(a, "pause", "Make no more rounds of jobs, until they are resumed; their devices stay", store.WantPause),
		jobActCmd(a, "resume", "Go on with jobs that are paused, or that failed", store.WantRun),
		jobActCmd(a, "stop", "End jobs for good: devices are told, what was released stays", store.WantStop),
		jobActCmd(a, "archive", "Close jobs that are over; what they spent counts on", store.WantArchive),
		newJobLedgerCmd(a))
	return cmd
}

func newJobBeginCmd(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "begin --dir DIR",
		Short: "Have a job's rounds begin with the devices that have enrolled",
		Long: `A job waits until its whole population has enrolled, or cohort.start of it. This has its
rounds begin with those that have, as soon as they are enough for a round. Devices that
enrol later take part from the next round. What is promised stays promised for the population.`,
		Example: "  starling job begin --dir run1\n  starling job begin --server https://fl.example.org:9443 --token-file admin.token",
		Args:    command.NoArgs,
	}
	with := fleetFlags(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		return with(func(f admin.Fleet) error {
			begins, err := f.Begin()
			if err != nil {
				return err
			}
			return acted(a, "begin", "job", begins.String())
		})
	}
	return cmd
}

// jobReport is what "job check" says of a job that can be run.
type jobReport struct {
	Name       string `json:"name"`
	Labels     int    `json:"labels"`
	Rounds     int    `json:"rounds"`
	Population int    `json:"population"`
	Cohort     int    `json:"expected_cohort"`
	Connected  int    `json:"least_connected"`
	// Begins is how many devices must have enrolled before the first round, Within the seconds after which
	// rounds begin with fewer, at least Least; 0: never.
	Begins int   `json:"begins_with"`
	Within int64 `json:"begins_within_s,omitempty"`
	Least  int   `json:"least_start"`
	// Unchecked is why nothing that follows from the base was checked; "" if it was.
	Unchecked string `json:"unchecked,omitempty"`

	Rehearsal *rehearsal.Report `json:"rehearsal,omitempty"` // nil where it was not checked
}

// checked checks a job as a coordinator does, with its base if that is here.
func checked(ctx context.Context, file string, j job.Job) (jobReport, error) {
	least, err := j.LeastStart()
	if err == nil {
		err = j.Served()
	}
	if err != nil {
		return jobReport{}, err
	}
	r := jobReport{Name: j.Name, Labels: len(j.Labels), Rounds: j.Rounds, Population: j.Cohort.Population, Cohort: int(j.ExpectedCohort()),
		Connected: j.MinConnected(), Begins: j.StartsWith(), Within: int64(j.Cohort.StartWithin / time.Second), Least: least}
	base, err := bases.ForJob(j)
	if err != nil {
		if _, e := os.Stat(j.Base); j.Base != "" && errors.Is(e, fs.ErrNotExist) { // a model that another machine has
			r.Unchecked = fmt.Sprintf("not checked: what follows from the base. %v", err)
			err = nil
		}
		return r, err
	}
	c, err := core.New(j, base, nil)
	if err != nil {
		return r, err
	}
	if r.Rehearsal, err = rehearsal.File(ctx, file, j, base); err == nil {
		r.Rehearsal.Weigh(c.Terms().Rho(), c.Job())
	}
	return r, err
}

func (r jobReport) print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d labels, %d rounds, %d of %d devices expected a round, %d must be connected\n",
		r.Name, r.Labels, r.Rounds, r.Cohort, r.Population, r.Connected)
	begins := fmt.Sprintf("rounds begin when %d devices have enrolled", r.Begins)
	if r.Within > 0 {
		begins += fmt.Sprintf(", or %v after the job is first served with at least %d", time.Duration(r.Within)*time.Second, r.Least)
	}
	if r.Begins > r.Least {
		begins += fmt.Sprintf("; with %d or more by starling job begin", r.Least)
	}
	fmt.Fprintln(w, begins)
	if r.Unchecked != "" {
		fmt.Fprintln(w, r.Unchecked)
	}
	if r.Rehearsal == nil {
		return nil
	}
	return r.Rehearsal.Print(w)
}
