// Package operator has the commands for running and planning a job, and for using its model:
// serve and what goes with it, demo, privacy, evaluate, import and export.
package operator

import (
	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator/natsaccess"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/command"
)

// Commands are an operator's, over the streams of a. p draws, and n starts NATS servers; nil
// where the program links nothing that does.
func Commands(a *command.App, p Plots, n natsaccess.Start) []*cobra.Command {
	a.Input = append(a.Input, store.ErrNoStore)
	return []*cobra.Command{
		newDemoCmd(a),
		newServeCmd(a, n),
		newGatewayCmd(a),
		newTokenCmd(a),
		newDevicesCmd(a),
		newOperatorCmd(a),
		newInvoicesCmd(a),
		newInspectCmd(a),
		newBaseCmd(a),
		newExportCmd(a),
		newImportCmd(a),
		newEvaluateCmd(a),
		newJobCmd(a),
		newPrivacyCmd(a, p),
		newAuditCmd(a, p),
		newSecaggCmd(a),
		newManCmd(a),
	}
}
