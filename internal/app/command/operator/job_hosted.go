package operator

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator/jobs"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/admin"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/evaluation"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/job"
)

var notOfAName = regexp.MustCompile(`[^a-z0-9]+`)

func newJobSubmitCmd(a *command.App) *cobra.Command {
	var name, pool string
	var priority int
	cmd := &cobra.Command{
		Use:   "submit --dir DIR FILE",
		Short: "Give a server one more job for its fleet",
		Long: `Give a server one more job. It is opened when there is room among those that are open,
the highest priority first. A folder that is none yet becomes a server's: an empty one, or
one in which one job ran, of which that job's own file must be submitted first; its
devices, invitations and operators are the fleet's from then on.

Jobs of one pool share their devices, one round at a time, and what they cost adds up;
a device of one pool cannot enrol in another.`,
		Example: "  starling job submit --dir fleet job.yaml\n  starling job submit --server https://fl.example.org:9443 --token-file admin.token --priority 5 job.yaml",
	}
	with := fleetFlags(cmd)
	cmd.Flags().StringVar(&name, "name", "", "the job's name in addresses and lists, of a-z, 0-9 and - (default: made of its file's name key)")
	cmd.Flags().StringVar(&pool, "pool", store.DefaultPool, "whose data it is for; pools share no device")
	cmd.Flags().IntVar(&priority, "priority", 0, "whose turn it is where several could make a round: the higher first")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage.Errorf("job submit wants one job file")
		}
		file, err := named.Open(args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		text, err := io.ReadAll(io.LimitReader(file, strict.MaxBytes+1)) // job.Load refuses more
		if err != nil {
			return named.Wrap(err)
		}
		j, err := job.Parse(bytes.NewReader(text))
		if err != nil {
			return err
		}
		in := store.Hosted{Name: name, Pool: pool, Priority: priority, File: text}
		if in.Name == "" {
			in.Name = strings.Trim(notOfAName.ReplaceAllString(strings.ToLower(j.Name), "-"), "-")
		}
		dir := cmd.Flag("dir").Value.String()
		if dir != "" {
			if in.Folder, err = admin.Adopt(dir, j); err != nil {
				return err
			}
		}
		if in.Folder != "." { // else it ran here alone: its paths are the machine's
			if err := evaluation.CheckHosted(dir, j); err != nil {
				return err
			}
		}
		return with(func(h admin.Fleet) error {
			if err := h.Submit(in); err != nil {
				return err
			}
			return acted(a, "submit", in.Name, fmt.Sprintf("submitted %s; see starling job list", in.Name))
		})
	}
	return cmd
}

func jobLine(j server.JobLine) string {
	made := ""
	if j.Rounds > 0 {
		made = fmt.Sprintf("%d of %d", j.Version, j.Rounds)
	}
	return fmt.Sprintf("%s\t%s\t%d\t%s\t%s\t%s\t%q", j.Name, j.Pool, j.Priority, j.State, made, j.Submitted.Format(time.DateTime), j.Reason)
}

// jobActCmd asks something of jobs.
func jobActCmd(a *command.App, name, short string, want store.Want) *cobra.Command {
	var reason string
	cmd := eachCmd(a, name+" --dir DIR NAME...", short, "a job's name", func(f admin.Fleet, one string) (string, string, error) {
		return one, one + ": " + name, f.Steer(one, want, reason)
	})
	cmd.Flags().StringVar(&reason, "reason", "", "kept with your name among the acts")
	return cmd
}

func newJobLedgerCmd(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ledger --dir DIR",
		Short: "Verify a server's ledger, and print the joint cost of its jobs",
		Args:  command.NoArgs,
	}
	with := fleetFlags(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		return with(func(h admin.Fleet) error {
			l, err := h.Spending()
			if err != nil {
				return err
			}
			return a.Emit(l, func(w io.Writer) error {
				fmt.Fprintf(w, "%d entries, chain verified\nhead %s\n", len(l.Entries), l.Head)
				if l.Epsilon > 0 {
					fmt.Fprintf(w, "budget of each pool: epsilon %.6g at delta %.3g\n", l.Epsilon, l.Delta)
				} else {
					fmt.Fprintln(w, "no budget but each job's own: see serve --fleet-epsilon")
				}
				return printTable(w, "pool\tjobs\trounds\twho is in all of them has", l.Totals, func(p jobs.Total) string {
					what := p.Why
					if p.Guarantee != nil {
						what = p.Guarantee.String()
					}
					return fmt.Sprintf("%s\t%d\t%d\t%s", p.Pool, p.Jobs, p.Rounds, what)
				})
			})
		})
	}
	return cmd
}
