package device

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/command"
)

// accountReport is what a data set has given.
type accountReport struct {
	Data  string            `json:"data"`
	Jobs  []edge.JobAccount `json:"jobs"`
	Spent edge.Spent        `json:"spent"`
}

func newAccountCmd(a *command.App) *cobra.Command {
	var data, identity, folder string
	var columns dataset.Columns
	cmd := &cobra.Command{
		Use:   "account --data FILE",
		Short: "Show what a data set on this machine has given, job by job and in all",
		Long: `Show what 'starling join' has noted of a data set: rounds announced, begun, handed
over and said to be released, for each job, and what all of them have cost
together. The data set is known by its examples: a copy of the file, or the file
with more lines, has the same account. Each round in which an update was handed over counts in full, at the
noise that its job says it adds; nothing here proves that noise but what this
device added itself (privacy.noise: devices), whose epsilon stands beside it.`,
		Example: "  starling account --data my.tsv",
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if data == "" {
				return command.Usagef("--data is required: the file that was joined with")
			}
			if identity == "" {
				var err error
				if identity, err = identityPath(data); err != nil {
					return err
				}
			}
			set, err := command.LoadLabelled(data, columns)
			if err != nil {
				return err
			}
			kept, err := openAccounts(folder)
			if err != nil {
				return err
			}
			account, err := kept.look(set, data, identity)
			if err != nil {
				return err
			}
			if account == nil {
				return fmt.Errorf("%s has no account in %s: it has not taken part in a job, or another user's accounts have it (--accounts)", data, kept.dir)
			}
			report := accountReport{Data: data, Jobs: sortedJobs(account)}
			if report.Spent, err = account.Spent(); err != nil {
				return err
			}
			return a.Emit(report, func(w io.Writer) error { return printAccount(w, account) })
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "the data file")
	command.ColumnFlags(cmd.Flags(), &columns)
	cmd.Flags().StringVar(&folder, "accounts", "", "folder of accounts (default starling/accounts in the user's configuration folder)")
	cmd.Flags().StringVar(&identity, "identity", "", "the identity file that versions before kept the account beside (default: the file's own)")
	return cmd
}

// sortedJobs are an account's jobs, the last answered first.
func sortedJobs(account *edge.Account) []edge.JobAccount {
	jobs := account.Jobs()
	slices.SortFunc(jobs, func(a, b edge.JobAccount) int {
		if a.Last != b.Last {
			return int(b.Last - a.Last)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return jobs
}

// printAccount says what the data has given to each job so far, and what that comes
// to.
func printAccount(w io.Writer, account *edge.Account) error {
	var b strings.Builder
	jobs := sortedJobs(account)
	for _, j := range jobs {
		cost := ""
		if g, ok, err := j.Epsilon(); err == nil && ok {
			cost = fmt.Sprintf("; seen from here, if the noise is as announced: %v", g)
			if own, ok, err := j.Untrusted(); err == nil && ok {
				cost += fmt.Sprintf("; if everybody else lies, by this device's own noise: %v", own)
			} else {
				cost += "; without trust in the coordinator: no bound"
			}
		}
		fmt.Fprintf(&b, "given so far to %q: %d of %d rounds%s\n", j.Name, j.Contributed, j.Promised, cost)
	}
	s, err := account.Spent()
	if err != nil {
		return err
	}
	if s.Jobs > 1 {
		if s.Devices != nil {
			fmt.Fprintf(&b, "in all, to jobs that protect devices: %v\n", *s.Devices)
		}
		if s.Providers != nil {
			fmt.Fprintf(&b, "in all, to jobs that protect providers: %v\n", *s.Providers)
		}
	}
	if len(s.Noiseless) > 0 {
		fmt.Fprintf(&b, "of what was given to %s there is no bound: no noise that protects was announced\n", quoted(s.Noiseless))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(out, ", ")
}
