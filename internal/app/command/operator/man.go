package operator

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// newManCmd writes the manual pages that a package puts into the system: one a
// command. make man calls it.
func newManCmd(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := named.MakeDir(args[0]); err != nil {
				return err
			}
			// A date would make two builds of one commit differ.
			date := time.Unix(0, 0).UTC()
			root := cmd.Root()
			root.DisableAutoGenTag = true
			head := &doc.GenManHeader{Title: "STARLING", Section: "1", Source: "Starling " + a.Version, Manual: "Starling", Date: &date}
			if err := doc.GenManTree(root, head, args[0]); err != nil {
				return fmt.Errorf("manual pages: %w", err)
			}
			return nil
		},
	}
}
