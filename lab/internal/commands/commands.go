// Package commands is the laboratory's: simulations, sweeps and their reports, what schemes
// cost on the wire, and the making of bases.
package commands

import (
	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/lab/sweep"
)

// Commands are the laboratory's, over the streams of a.
func Commands(a *command.App) []*cobra.Command {
	a.Input = append(a.Input, sweep.ErrSettings)
	return append(command.In(command.RunJob, newInitCmd(a)), command.In(command.Laboratory,
		newSimulateCmd(a),
		newShadowsCmd(a),
		newSweepCmd(a),
		newReportCmd(a),
		newPartitionCmd(a),
		newReproduceCmd(a),
		newWorkerCmd(a),
		newPretrainCmd(a),
		newBandwidthCmd(a),
		newLoadtestCmd(a),
	)...)
}

// Makers write test data: they are below the command lab.
func Makers(a *command.App) []*cobra.Command {
	return []*cobra.Command{newPaintingsCmd(a), newCommandsCmd(a), newVoicesCmd(a), newFederationCmd(a)}
}
