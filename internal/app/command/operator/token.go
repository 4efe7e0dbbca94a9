package operator

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/admin"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/service"
	"github.com/starling-fl/starling/internal/app/usage"
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
	var f admin.TokenConfig
	cmd := &cobra.Command{
		Use:     "create --dir DIR",
		Short:   "Make a join token, for one device unless said otherwise",
		Example: "  starling token create --dir run1 --note \"Ada's laptop\"\n  starling token create --dir run1 --uses 50 --expires 24h",
		Args:    command.NoArgs,
	}
	with := fleetFlags(cmd)
	cmd.Flags().IntVar(&f.Uses, "uses", 1, "devices that may enrol by it")
	cmd.Flags().DurationVar(&f.Life, "expires", 7*24*time.Hour, "how long new devices may enrol by it")
	cmd.Flags().StringVar(&f.Note, "note", "", "what it is for, for the list")
	cmd.Flags().StringVar(&f.URL, "url", "", "how devices reach the coordinator, if not as serve said")
	cmd.Flags().StringVar(&f.Of, "of", "", "of a server with several jobs, the job that it leads to, else all of them (starling join --fleet); the devices are the fleet's")
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := f.Check(); err != nil {
			return err
		}
		return with(func(h admin.Fleet) error {
			i, token, err := admin.NewToken(h, f)
			if err != nil {
				return err
			}
			return a.Emit(invited{i, token}, func(w io.Writer) error {
				plural := "s"
				if i.Uses == 1 {
					plural = ""
				}
				fmt.Fprintf(a.Stderr, "invitation %d, for %d new device%s until %s\n", i.ID, i.Uses, plural, i.Expires.Format(time.DateTime+" MST"))
				_, err := fmt.Fprintln(w, token)
				fmt.Fprint(a.Stderr, service.Link(token))
				return err
			})
		})
	}
	return cmd
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

func newTokenRevokeCmd(a *command.App) *cobra.Command {
	return eachCmd(a, "revoke --dir DIR ID...", "End invitations: no new device enrols by them", "the number of an invitation", func(f admin.Fleet, arg string) (string, string, error) {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return "", "", usage.Errorf("%q is not the number of an invitation", arg)
		}
		return arg, "revoked invitation " + arg, f.Revoke(id)
	})
}
