package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/command/device"
)

// version is set by the linker (make build); a plain go build leaves "devel".
var version = "devel"

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return command.Run(ctx, newRootCmd, args, stdin, stdout, stderr)
}

func newRootCmd(a *command.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "starling",
		Short: "Federated fine-tuning across laptops and browsers, with privacy you can check",
	}
	root.AddCommand(
		newDemoCmd(a),
		newSimulateCmd(a),
		newSweepCmd(a),
		newReportCmd(a),
		newPartitionCmd(a),
		newReproduceCmd(a),
		newWorkerCmd(a),
		newServeCmd(a),
		newTokenCmd(a),
		newDevicesCmd(a),
		newInvoicesCmd(a),
		newPaintingsCmd(a),
		newInspectCmd(a),
		newBaseCmd(a),
		newPretrainCmd(a),
		newPredictCmd(a),
		newExportCmd(a),
		newImportCmd(a),
		newEvaluateCmd(a),
		newBandwidthCmd(a),
		newJobCmd(a),
		newPrivacyCmd(a),
		newSecaggCmd(a),
		command.NewVersion(a, version),
		newManCmd(),
	)
	root.AddCommand(device.Commands(a)...)
	return root
}
