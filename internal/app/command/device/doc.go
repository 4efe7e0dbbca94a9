// Package device is the commands that a data owner runs: join, service, bench, account, identity,
// predict, generate and program verify. starling has them beside an operator's, starling-edge has no others.
package device

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/engine"
)

// Commands are all of them; engines are what predict and generate may compute with.
func Commands(a *command.App, engines engine.Flags) []*cobra.Command {
	return slices.Concat(
		command.In(command.TakePart, newJoinCmd(a), newServiceCmd(a), newBenchCmd(a), newDoctorCmd(a), newAccountCmd(a), newIdentityCmd(a), newProgramCmd(a)),
		command.In(command.UseModel, newPredictCmd(a, engines), newGenerateCmd(a, engines)))
}
