package commands

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

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
		Use:   "reproduce FOLDER --out FOLDER",
		Short: "Compare the results of presets with published ones",
		Long: `Read the tables in FOLDER, each the results.csv of starling sweep --preset NAME under
the name NAME.csv. Write REPRODUCTION.md with a verdict on each claim, and results/NAME.md for each
preset: means and spreads over seeds, paired differences with intervals, rho, and why ours differ.
A preset without a table is listed as not run.`,
		Example: "  starling reproduce docs/reproduction --out docs",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("want one folder, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				return usage.Errorf("--out is missing: the folder to write to")
			}
			info, err := os.Stat(args[0])
			if err != nil {
				return err
			}
			if !info.IsDir() {
				return usage.Errorf("%s is not a folder", args[0])
			}
			pages, err := grids.Reproduction(os.DirFS(args[0]))
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Join(out, grids.Results), 0o755); err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(pages)) {
				if err := durable.Replace(filepath.Join(out, filepath.FromSlash(name)), pages[name], 0o644); err != nil {
					return err
				}
			}
			return a.Emit(reproduceReport{out}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "written: %s and %s\n", filepath.Join(out, grids.Document), filepath.Join(out, grids.Results))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder to write to")
	return cmd
}
