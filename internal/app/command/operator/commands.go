// Package operator has the commands for running and planning a job, and for using its model:
// serve and what goes with it, demo, privacy, evaluate, import and export.
package operator

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator/natsaccess"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/command"
)

// Commands are an operator's, over the streams of a. p draws, and n starts NATS servers; nil
// where the program links nothing that does.
func Commands(a *command.App, p Plots, n natsaccess.Start) []*cobra.Command {
	a.ServerChecks = serverChecks
	a.Input = append(a.Input, store.ErrNoStore)
	return slices.Concat(
		command.In(command.RunJob, newDemoCmd(a), newServeCmd(a, n), newStatusCmd(a), newJobCmd(a), newTokenCmd(a), newDevicesCmd(a), newOperatorCmd(a),
			newGatewayCmd(a), newBaseCmd(a), newBackupCmd(a), newRestoreCmd(a)),
		command.In(command.UseModel, newEvaluateCmd(a), newExportCmd(a), newImportCmd(a)),
		command.In(command.PlanPrivacy, newPrivacyCmd(a, p), newAuditCmd(a, p), newSecaggCmd(a)),
		command.In(command.TakePart, newInspectCmd(a)),
		[]*cobra.Command{newManCmd(a)})
}

// Makers write test data: they are below the command lab.
func Makers(a *command.App) []*cobra.Command { return []*cobra.Command{newInvoicesCmd(a)} }
