// Command starling fine-tunes models across many devices without seeing their data: it runs
// the coordinator, joins as an edge, and answers what a privacy budget costs. The program that
// make build makes, lab/cmd/starling, has these commands and the laboratory's: simulations,
// sweeps, what schemes cost on the wire, the making of bases, and plots.
package main

import (
	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/command/device"
	"github.com/starling-fl/starling/internal/app/command/operator"
	"github.com/starling-fl/starling/internal/app/engine/plugins"
)

// version is set by the linker; of a plain go build it is the commit: see command.VersionOf.
var version = "devel"

func main() { command.Main(newRootCmd) }

func newRootCmd(a *command.App) *cobra.Command {
	a.Version = command.VersionOf(version)
	root := &cobra.Command{
		Use:   "starling",
		Short: "Federated fine-tuning across laptops and browsers, with privacy you can check",
	}
	root.AddCommand(operator.Commands(a, nil, nil)...)
	root.AddCommand(device.Commands(a, plugins.Flags())...)
	command.AddMakers(root, operator.Makers(a)...)
	return root
}
