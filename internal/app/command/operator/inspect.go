package operator

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/inspection"
	"github.com/starling-fl/starling/internal/app/usage"
)

func newInspectCmd(a *command.App) *cobra.Command {
	var segments bool
	cmd := &cobra.Command{
		Use:   "inspect FILE.wasm",
		Short: "Verify a training program and describe it",
		Long: `Verify a training program as an edge would before running it, and print what it
is: its hash, its memory, the tensors that it reads and writes, and the proved
bound on what a segment may cost. A file that an edge would refuse is refused
here with the same reason (exit code 1).`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("inspect takes one file, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := inspection.Program(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.Emit(r, func(w io.Writer) error { return r.Print(w, segments) })
		},
	}
	cmd.Flags().BoolVar(&segments, "segments", false, "list every segment")
	return cmd
}
