package device

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/checkup"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/participation"
	"github.com/starling-fl/starling/internal/app/usage"
)

func newDoctorCmd(a *command.App) *cobra.Command {
	d := checkup.Device{Version: a.Version}
	policy := participation.Policy{Set: func(*edge.Policy) error { return nil }}
	cmd := &cobra.Command{
		Use:   "doctor [TOKEN|URL|@FILE|-]",
		Short: "Check whether this machine can take part, and name remedies",
		Long: `Look at this machine's processor, memory and disk and, given a join token or the
coordinator's address, at the way there (proxy, TLS, clock, WebSocket), at what the job asks for
beyond your limits, and at how long a step of it takes here. Nobody enrols, and nothing is sent.
It ends with 1 where something fails.`,
		Example: "  starling doctor\n  starling doctor starling2_... --data my.tsv\n  starling doctor https://fl.example.org:8443 --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage.Errorf("doctor takes at most one join token or URL, got %d", len(args))
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&d.Data, "data", "", "file that is to be trained on: it is read, and nothing is done with it")
	command.ColumnFlags(fl, &d.Columns)
	fl.StringVar(&d.Cache, "cache", "", "folder for the base and programs (default starling in the user's cache folder)")
	fl.IntVar(&d.Cores, "cores", 0, "most cores to train on; 0: half of this machine's")
	fl.DurationVar(&d.Trial, "for", time.Second, "how long a step of the job is tried, at least once; 0: it is not")
	fl.BoolVar(&d.Plain, "allow-plain-http", false, "ask a coordinator on another machine over http, which nobody encrypts")
	fl.StringVar(&policy.File, "policy", "", "file of limits on what a coordinator may ask for (YAML)")
	fl.BoolVar(&policy.TrustLocal, "trust-local", false, "the coordinator is your own, on this machine")
	var server func(context.Context) (*checkup.Report, error)
	if a.ServerChecks != nil {
		server = a.ServerChecks(cmd)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		var r *checkup.Report
		if server != nil {
			if r, err = server(cmd.Context()); err != nil {
				return err
			}
		}
		if r == nil {
			if len(args) == 1 {
				where, err := readToken(a.Stdin, args[0])
				if err != nil {
					return err
				}
				if d.Token, err = edge.JoinToken(where); err != nil {
					return usage.Wrap(err)
				}
				if d.Policy, _, err = policy.Toward(d.Token); err != nil {
					return err
				}
			}
			if r, err = d.Run(cmd.Context()); err != nil {
				return err
			}
		} else if len(args) > 0 {
			return usage.Errorf("give a join token, to look at this device, or --dir or --server, to look at a coordinator")
		}
		if err := a.Emit(r, r.Print); err != nil {
			return err
		}
		return r.Err()
	}
	return cmd
}
