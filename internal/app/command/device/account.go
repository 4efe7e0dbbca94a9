package device

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/accounts"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
)

func newAccountCmd(a *command.App) *cobra.Command {
	var data, identity, folder, proof, forget, forgetLogKey, export string
	var round uint64
	var columns dataset.Columns
	cmd := &cobra.Command{
		Use:   "account --data FILE",
		Short: "Show the contributions of a data set on this machine, job by job and in all",
		Long: `Show what 'starling join' has noted of a data set: rounds announced, begun, handed
over and said to be released, for each job, and what all of them have cost
together. The data set is known by its examples: a copy of the file, or the file
with more lines, has the same account. Each round in which an update was handed over counts in full, at the
noise that its job says it adds; nothing here proves that noise but what this
device added itself (privacy.noise: devices), whose epsilon stands beside it. It
also says what this device knows of the jobs' logs of enrolled keys.

Each job has its rounds, bytes, the most bits that it could have been told, epsilon, and
a picture of its rounds over time; --export writes them into a file. --forget takes out
what tells of a job: its name, times and bytes. What protects the data stays under the
job's number, so that a coordinator whose owner was made to forget cannot ask for all of
its rounds again.

--proof writes who was in the device's shard of its last round, or of --round, into a
file that anybody can verify; without --data it verifies such a file.`,
		Example: "  starling account --data my.tsv\n  starling account --data my.tsv --export given.csv\n  starling account --data my.tsv --forget \"invoices\"\n  starling account --data my.tsv --proof roster.json\n  starling account --proof roster.json",
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if n := len(slices.DeleteFunc([]string{proof, forget, forgetLogKey, export}, func(s string) bool { return s == "" })); n > 1 {
				return usage.Errorf("--proof, --forget, --forget-log and --export are one at a time: take along before you forget")
			}
			if data == "" && proof != "" {
				proven, _, err := accounts.ReadRosterProof(proof)
				if err != nil {
					return err
				}
				return a.Emit(proven, func(w io.Writer) error { return accounts.PrintRoster(w, proven) })
			}
			if data == "" {
				return usage.Errorf("--data is required: the file that was joined with; or --proof with a file to verify")
			}
			if identity == "" {
				var err error
				if identity, err = accounts.IdentityPath(data); err != nil {
					return err
				}
			}
			set, err := columns.Load(data)
			if err != nil {
				return err
			}
			kept, err := accounts.Open(folder)
			if err != nil {
				return err
			}
			account, err := kept.Look(set, data, identity)
			if err != nil {
				return err
			}
			if account == nil {
				return fmt.Errorf("%s has no account in %s: it has not taken part in a job, or another user's accounts have it (--accounts)", data, kept.Dir())
			}
			switch {
			case forgetLogKey != "":
				return forgetLog(a, kept, set, data, identity, forgetLogKey)
			case forget != "":
				return forgetJob(a, func() (*edge.Account, func() error, error) { return kept.Take(set, data, identity) }, forget)
			case proof != "":
				proven, err := kept.RosterProof(accounts.SortedJobs(account), round, proof)
				if err != nil {
					return err
				}
				return a.Emit(proven, func(w io.Writer) error { return accounts.PrintRoster(w, proven) })
			}
			report, err := accounts.ReportOf(data, account)
			if err != nil {
				return err
			}
			if export != "" {
				if err := report.Export(export, account); err != nil {
					return err
				}
				fmt.Fprintf(a.Stderr, "written to %s\n", export)
			}
			return a.Emit(report, func(w io.Writer) error { return accounts.Print(w, account) })
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "the data file")
	cmd.Flags().StringVar(&proof, "proof", "", "file to write who was in the device's shard into; without --data: to verify")
	cmd.Flags().Uint64Var(&round, "round", 0, "of --proof: the round's number (default the last)")
	cmd.Flags().StringVar(&forgetLogKey, "forget-log", "", "first digits of the key of a log of enrolled keys: follow whatever is next shown of it")
	cmd.Flags().StringVar(&forget, "forget", "", "job to forget, by its whole name or the first digits of its id (8 or more): what tells of it goes, what protects your data stays")
	cmd.Flags().StringVar(&export, "export", "", "file to write all of it into, with what was given when: .json or .csv")
	command.ColumnFlags(cmd.Flags(), &columns)
	cmd.Flags().StringVar(&folder, "accounts", "", "folder of accounts (default starling/accounts in the user's configuration folder)")
	cmd.Flags().StringVar(&identity, "identity", "", "the identity file, next to which older versions kept the account (default: the data file's own)")
	return cmd
}

// forgetLog takes a log out of the account, which no join may hold meanwhile.
func forgetLog(a *command.App, kept *accounts.Folder, set *dataset.Set, data, identity, prefix string) error {
	account, release, err := kept.Take(set, data, identity)
	if err != nil {
		return err
	}
	key, err := account.ForgetLog(prefix)
	if err = errors.Join(err, release()); err != nil {
		return err
	}
	return a.Emit(map[string]string{"forgotten": key}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "forgot the log of enrolled keys %s: the next head that its coordinator shows is followed\n", key)
		return err
	})
}

// whatForgettingMeans is said where a job was forgotten.
const whatForgettingMeans = "its name, its times, its bytes and its picture are gone. What protects your data stays under a number: how many rounds the job " +
	"was promised and had, and at what noise. So it cannot ask for them again, and the total still counts them. What was sent is not taken back"

// forgetJob takes out of the account what tells of a job; no join may hold it meanwhile.
func forgetJob(a *command.App, take func() (*edge.Account, func() error, error), which string) (err error) {
	account, release, err := take()
	if err != nil {
		return err
	}
	was, err := account.Forget(which)
	if e := release(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return a.Emit(map[string]string{"forgotten": was.Task}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "forgot %q: %s\n", was.Name, whatForgettingMeans)
		return err
	})
}
