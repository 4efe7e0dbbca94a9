package operator

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/admin"
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
		Short: "Say whether a job file can be run, and with what defaults",
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
			report := struct {
				Name       string `json:"name"`
				Labels     int    `json:"labels"`
				Rounds     int    `json:"rounds"`
				Population int    `json:"population"`
				Cohort     int    `json:"expected_cohort"`
				Connected  int    `json:"least_connected"`

				Rehearsal    *rehearsal.Report `json:"rehearsal,omitempty"`
				NotRehearsed string            `json:"not_rehearsed,omitempty"`
			}{j.Name, len(j.Labels), j.Rounds, j.Cohort.Population, int(j.ExpectedCohort()), j.MinConnected(), nil, ""}
			report.Rehearsal, err = rehearsal.File(cmd.Context(), args[0], j)
			if errors.Is(err, rehearsal.ErrNoBase) { // it is the machine's that serves
				report.NotRehearsed = err.Error()
			} else if err != nil {
				return err
			}
			return a.Emit(report, func(w io.Writer) error {
				if _, err := fmt.Fprintf(w, "%s: %d labels, %d rounds, %d of %d devices expected a round, %d must be connected\n",
					report.Name, report.Labels, report.Rounds, report.Cohort, report.Population, report.Connected); err != nil {
					return err
				}
				if report.Rehearsal == nil {
					_, err := fmt.Fprintln(w, "not rehearsed:", report.NotRehearsed)
					return err
				}
				return report.Rehearsal.Print(w)
			})
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
	cmd.AddCommand(newJobSubmitCmd(a),
		listCmd(a, "List a server's jobs", "name\tpool\tpriority\tstate\trounds\tsubmitted\treason", admin.Fleet.Jobs, jobLine),
		jobActCmd(a, "pause", "Make no more rounds of jobs, until they are resumed; their devices stay", store.WantPause),
		jobActCmd(a, "resume", "Go on with jobs that are paused, or that failed", store.WantRun),
		jobActCmd(a, "stop", "End jobs for good: devices are told, what was released stays", store.WantStop),
		jobActCmd(a, "archive", "Close jobs that are over; what they spent counts on", store.WantArchive),
		newJobLedgerCmd(a))
	return cmd
}
