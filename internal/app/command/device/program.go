package device

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/inspection"
	"github.com/starling-fl/starling/internal/app/usage"
)

func newProgramCmd(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "program",
		Short: "Make a job's training programs, to know what runs on devices",
		Long: `A device trains in a program that the coordinator sends. It follows from the
job and the base, and the compiler makes the same bytes everywhere: whoever has
the job file can make them again. 'starling join' does so by itself before it
runs one.`,
	}
	cmd.AddCommand(newProgramVerifyCmd(a))
	return cmd
}

func newProgramVerifyCmd(a *command.App) *cobra.Command {
	var file string
	var work float64
	cmd := &cobra.Command{
		Use:   "verify --job job.yaml [SHA256...]",
		Short: "Make a job's programs again and compare their hashes",
		Long: `Make the programs of a job, at every rank and for every host, and print their
SHA-256: the names that an owner's policy (programs) may hold. With hashes given,
fail unless each is one of them.`,
		RunE: func(cmd *cobra.Command, given []string) error {
			if file == "" {
				return usage.Errorf("--job is required: the job file that the coordinator serves")
			}
			all, err := inspection.Programs(cmd.Context(), file, work, given)
			if all != nil {
				err = errors.Join(a.Emit(all, all.Print), err)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&file, "job", "", "job file (YAML)")
	cmd.Flags().Float64Var(&work, "work", edge.DefaultPolicy().Work, "most work of making them all, in eighths of an instruction")
	return cmd
}
