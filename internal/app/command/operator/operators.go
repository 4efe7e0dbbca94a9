package operator

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/admin"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
)

func newOperatorCmd(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Name a coordinator's operators, and list their acts",
		Long: `An operator shows a token of its own to the dashboard, to /metrics and to the commands
that take --server. A viewer sees; an operator invites, bans and pardons devices, pauses
the job and names viewers, too; an admin also names operators. Who has the coordinator's folder is an admin without a
name. All that is done is noted in a chain of hashes, under the name.`,
	}
	cmd.AddCommand(newOperatorAddCmd(a),
		listCmd(a, "List the operators, without their tokens", "name\trole\tstate\tmade\texpires", admin.Fleet.Operators, operatorLine),
		newOperatorRevokeCmd(a), newOperatorActsCmd(a))
	return cmd
}

// added is a new operator and its token.
type added struct {
	store.Operator
	Token string `json:"token"`
}

func newOperatorAddCmd(a *command.App) *cobra.Command {
	var role string
	var expires time.Duration
	cmd := &cobra.Command{
		Use:   "add --dir DIR NAME",
		Short: "Name an operator; prints its token, which nothing shows again",
		Example: "  starling operator add --dir run1 --role operator \"Ada Lovelace\"\n" +
			"  starling operator add --dir run1 --role viewer --expires 8760h prometheus",
	}
	with := fleetFlags(cmd)
	cmd.Flags().StringVar(&role, "role", string(store.RoleViewer), "viewer, operator or admin")
	cmd.Flags().DurationVar(&expires, "expires", 90*24*time.Hour, "how long the token is good")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage.Errorf("operator add wants one name")
		}
		return with(func(h admin.Fleet) error {
			o, token, err := h.AddOperator(args[0], store.Role(role), expires)
			if err != nil {
				return err
			}
			return a.Emit(added{o, token}, func(w io.Writer) error {
				fmt.Fprintf(a.Stderr, "%s is %s until %s; the token is shown this once\n", o.Name, o.Role, o.Expires.Format(time.DateTime+" MST"))
				_, err := fmt.Fprintln(w, token)
				return err
			})
		})
	}
	return cmd
}

func operatorLine(o store.Operator) string {
	state := "good"
	switch {
	case o.Revoked:
		state = "revoked"
	case time.Now().After(o.Expires):
		state = "expired"
	}
	role := string(o.Role)
	if o.Job != "" {
		role += " of " + o.Job
	}
	return fmt.Sprintf("%q\t%s\t%s\t%s\t%s", o.Name, role, state, o.Made.Format(time.DateTime), o.Expires.Format(time.DateTime))
}

func newOperatorRevokeCmd(a *command.App) *cobra.Command {
	return eachCmd(a, "revoke --dir DIR NAME...", "End operators' tokens at once; their names stay theirs", "a name", func(f admin.Fleet, name string) (string, string, error) {
		return name, fmt.Sprintf("revoked %q", name), f.RevokeOperator(name)
	})
}

// acts are what was done, and the last hash.
type acts struct {
	Acts []store.Act `json:"acts"`
	Head string      `json:"head"`
}

func newOperatorActsCmd(a *command.App) *cobra.Command {
	cmd := &cobra.Command{Use: "log --dir DIR", Short: "List operators' acts, and verify that the list was not changed", Args: command.NoArgs}
	with := fleetFlags(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		return with(func(h admin.Fleet) error {
			all, head, err := h.Acts()
			if err != nil {
				return err
			}
			return a.Emit(acts{all, fmt.Sprintf("%x", head)}, func(w io.Writer) error {
				err := printTable(w, "act\tat\tby\twhat\tof", all, func(one store.Act) string {
					return fmt.Sprintf("%d\t%s\t%q\t%s\t%q", one.Seq, one.At.Format(time.DateTime), one.By, one.Act, one.Subject)
				})
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(w, "head %x: keep it elsewhere to see that a rewritten file is another\n", head)
				return err
			})
		})
	}
	return cmd
}
