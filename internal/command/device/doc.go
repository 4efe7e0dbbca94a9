// Package device is the commands that a data owner runs: join, bench, account, identity
// and program verify. starling has them beside an operator's, starling-edge has no others.
package device

import (
	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/command"
)

// Commands are all of them.
func Commands(a *command.App) []*cobra.Command {
	return []*cobra.Command{newJoinCmd(a), newBenchCmd(a), newAccountCmd(a), newIdentityCmd(a), newProgramCmd(a)}
}
