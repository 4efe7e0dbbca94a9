package commands

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/durable"
	grids "github.com/starling-fl/starling/lab/report"
)

type reproduceReport struct {
	Out string `json:"out"`
}

func newReproduceCmd(a *command.App) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "reproduce FOLDER --out FILE",
		Short: "Hold the results of presets against what was published",
		Long: `Read the tables in FOLDER, each the results.csv of starling sweep --preset NAME under
the name NAME.csv, and write them beside the published figures: means and spreads over seeds, paired
differences with intervals, rho, and why ours differ. A preset without a table is
listed as not run.`,
		Example: "  starling reproduce docs/reproduction --out docs/REPRODUCTION.md",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("want one folder, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				return usage.Errorf("--out is missing: the file to write")
			}
			info, err := os.Stat(args[0])
			if err != nil {
				return err
			}
			if !info.IsDir() {
				return usage.Errorf("%s is no folder", args[0])
			}
			text, err := grids.Reproduction(os.DirFS(args[0]))
			if err != nil {
				return err
			}
			if err := durable.Replace(out, text, 0o644); err != nil {
				return err
			}
			return a.Emit(reproduceReport{out}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "written: %s\n", out)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write")
	return cmd
}
