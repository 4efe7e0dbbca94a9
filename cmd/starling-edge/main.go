// Command starling-edge is a device's part of starling: it joins jobs, tells an owner
// what a job would take and what the data has given, and predicts with what was released. It links no coordinator, no store
// and nothing of a simulation: the same commands are in starling, which is three times
// as large.
package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/command/device"
	"github.com/starling-fl/starling/internal/app/engine"
)

// version is set by the linker (make edge); of a plain go build it is the commit: see command.VersionOf.
var version = "devel"

func main() { command.Main(newRootCmd) }

func newRootCmd(a *command.App) *cobra.Command {
	a.Version = command.VersionOf(version)
	root := &cobra.Command{
		Use:   "starling-edge",
		Short: "Take part in federated fine-tuning; your data stays on this machine",
	}
	root.AddCommand(device.Commands(a, engine.Flags{})...)
	named(root)
	return root
}

// named has examples say this program's name.
func named(cmd *cobra.Command) {
	cmd.Example = strings.ReplaceAll(cmd.Example, "  starling ", "  starling-edge ")
	for _, c := range cmd.Commands() {
		named(c)
	}
}
