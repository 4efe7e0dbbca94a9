package operator

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/admin"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/usage"
	"github.com/starling-fl/starling/internal/wire"
)

func newTokenCmd(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Invite devices to a coordinator: create, list and revoke join tokens",
		Long: `Each token lets a number of new devices enrol until it expires or is revoked. A
coordinator may be running in the folder: it takes part at once. Devices that have
enrolled come back by the token they came with, however it ended; to keep one out
see "starling devices ban".`,
	}
	cmd.AddCommand(newTokenCreateCmd(a), newTokenListCmd(a), newTokenRevokeCmd(a))
	return cmd
}

// invited is a new invitation and its token.
type invited struct {
	store.Invitation
	Token string `json:"token"`
}

func newTokenCreateCmd(a *command.App) *cobra.Command {
	var uses int
	var expires time.Duration
	var note, url, of string
	cmd := &cobra.Command{
		Use:     "create --dir DIR",
		Short:   "Make a join token, for one device unless said otherwise",
		Example: "  starling token create --dir run1 --note \"Ada's laptop\"\n  starling token create --dir run1 --uses 50 --expires 24h",
		Args:    command.NoArgs,
	}
	with := fleetFlags(cmd)
	cmd.Flags().IntVar(&uses, "uses", 1, "devices that may enrol by it")
	cmd.Flags().DurationVar(&expires, "expires", 7*24*time.Hour, "how long new devices may enrol by it")
	cmd.Flags().StringVar(&note, "note", "", "what it is for, for the list")
	cmd.Flags().StringVar(&url, "url", "", "how devices reach the coordinator, if not as serve said")
	cmd.Flags().StringVar(&of, "of", "", "of a server with several jobs, the job that it leads to, else all of them (starling join --fleet); the devices are the fleet's")
	cmd.RunE = func(*cobra.Command, []string) error {
		if uses < 1 || uses > store.MaxUses {
			return usage.Errorf("--uses is %d, want 1..%d", uses, store.MaxUses)
		}
		if expires < time.Minute || expires > store.MaxLife {
			return usage.Errorf("--expires is %v, want a minute to ten years", expires)
		}
		if len(note) > store.MaxNote {
			return usage.Errorf("--note has %d bytes, limit %d", len(note), store.MaxNote)
		}
		return with(func(h admin.Fleet) error {
			reached, err := h.Reached()
			if err != nil {
				return err
			}
			if reached == "" {
				return fmt.Errorf("it is not known how devices reach this coordinator: start serve with this folder once")
			}
			token, err := wire.ParseToken(reached)
			if err != nil {
				return err
			}
			if url != "" {
				token.URL = url
			}
			if token.URL, err = below(h, token.URL, of); err != nil {
				return err
			}
			if err := token.Validate(); err != nil {
				return usage.Wrap(err)
			}
			i, secret, err := h.Invite(note, uses, expires)
			if err != nil {
				return err
			}
			token.Secret = secret
			out := invited{i, token.String()}
			return a.Emit(out, func(w io.Writer) error {
				plural := "s"
				if i.Uses == 1 {
					plural = ""
				}
				fmt.Fprintf(a.Stderr, "invitation %d, for %d new device%s until %s\n", i.ID, i.Uses, plural, i.Expires.Format(time.DateTime+" MST"))
				_, err := fmt.Fprintln(w, out.Token)
				return err
			})
		})
	}
	return cmd
}

// below is where a server has a job, at the address itself if it has one alone.
func below(h admin.Fleet, url, name string) (string, error) {
	all, err := h.Jobs()
	if err != nil && name == "" {
		return url, nil // of one job, whose listener knows of no others
	}
	if err != nil || name == "" { // of all jobs of the fleet: join --fleet
		return url, err
	}
	for _, j := range all {
		if j.Name == name {
			return strings.TrimRight(url, "/") + wire.JobPath + name, nil
		}
	}
	return "", usage.Errorf("--of is %q: give one of the jobs that starling job list names, or leave it out for all of them", name)
}

func newTokenListCmd(a *command.App) *cobra.Command {
	return listCmd(a, "List the invitations, without their secrets", "id\tused\tstate\texpires\tnote",
		admin.Fleet.Invitations, invitationLine)
}

func invitationLine(i store.Invitation) string {
	state := "good"
	switch {
	case i.Revoked:
		state = "revoked"
	case i.Used >= i.Uses:
		state = "spent"
	case time.Now().After(i.Expires):
		state = "expired"
	}
	return fmt.Sprintf("%d\t%d of %d\t%s\t%s\t%q", i.ID, i.Used, i.Uses, state, i.Expires.Format(time.DateTime), i.Note)
}

// listCmd shows what a coordinator holds as a table, a line each.
func listCmd[T any](a *command.App, short, heads string, list func(admin.Fleet) ([]T, error), line func(T) string) *cobra.Command {
	cmd := &cobra.Command{Use: "list --dir DIR", Short: short, Args: command.NoArgs}
	with := fleetFlags(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		return with(func(f admin.Fleet) error {
			all, err := list(f)
			if err != nil {
				return err
			}
			return a.Emit(all, func(w io.Writer) error {
				t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
				fmt.Fprintln(t, heads)
				for _, one := range all {
					fmt.Fprintln(t, line(one))
				}
				return t.Flush()
			})
		})
	}
	return cmd
}

func newTokenRevokeCmd(a *command.App) *cobra.Command {
	cmd := &cobra.Command{Use: "revoke --dir DIR ID...", Short: "End invitations: no new device enrols by them"}
	with := fleetFlags(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage.Errorf("token revoke wants the number of an invitation: see starling token list")
		}
		return with(func(f admin.Fleet) error {
			for _, arg := range args {
				id, err := strconv.ParseInt(arg, 10, 64)
				if err != nil {
					return usage.Errorf("%q is not the number of an invitation", arg)
				}
				if err := f.Revoke(id); err != nil {
					return err
				}
				if err := acted(a, "revoke", arg, fmt.Sprintf("revoked invitation %d", id)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}
