package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/command/device"
	"github.com/starling-fl/starling/internal/app/command/operator"
	"github.com/starling-fl/starling/internal/app/engine/plugins"
	"github.com/starling-fl/starling/lab/internal/commands"
	"github.com/starling-fl/starling/lab/internal/plots"
	"github.com/starling-fl/starling/lab/natsserver"
)

// version is set by the linker (make build); of a plain go build it is the commit: see command.VersionOf.
var version = "devel"

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return command.Run(ctx, newRootCmd, args, stdin, stdout, stderr)
}

func newRootCmd(a *command.App) *cobra.Command {
	a.Version = command.VersionOf(version)
	root := &cobra.Command{
		Use:   "starling",
		Short: "Federated fine-tuning across laptops and browsers, with privacy you can check",
	}
	root.AddCommand(operator.Commands(a, plots.Plots{}, natsserver.Start)...)
	root.AddCommand(commands.Commands(a)...)
	root.AddCommand(device.Commands(a, plugins.Flags())...)
	command.AddMakers(root, append(operator.Makers(a), commands.Makers(a)...)...)
	return root
}
