package device

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/bases"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/usage"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/program"
	"github.com/starling-fl/starling/wasm"
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

// programLine is one program of a job.
type programLine struct {
	Rank   int    `json:"rank"`
	Host   string `json:"host"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
	Memory uint64 `json:"memory_bytes"`    // what an instance takes, frozen weights with it
	FLOPs  uint64 `json:"flops"`           // of a step; more than with more training.memory is what is computed again
	Given  bool   `json:"given,omitempty"` // it is among those asked about
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
			return verifyPrograms(cmd.Context(), a, file, work, given)
		},
	}
	cmd.Flags().StringVar(&file, "job", "", "job file (YAML)")
	cmd.Flags().Float64Var(&work, "work", edge.DefaultPolicy().Work, "most work of making them all, in eighths of an instruction")
	return cmd
}

func verifyPrograms(ctx context.Context, a *command.App, file string, work float64, given []string) error {
	unknown := map[string]bool{}
	for _, s := range given {
		if b, err := hex.DecodeString(s); err != nil || len(b) != sha256.Size {
			return usage.Errorf("%q is not 64 hexadecimal digits", s)
		}
		unknown[s] = true
	}
	j, err := job.Load(file)
	if err != nil {
		return err
	}
	b, err := bases.ForJob(j)
	if err != nil {
		return err
	}
	j = j.ForBase(b.Config)
	recipe, err := program.Recipe(j)
	if err != nil {
		return err
	}
	takes := 0.0
	for _, rank := range j.Ranks() {
		one, err := program.Work(j, b, rank)
		if err != nil {
			return err
		}
		takes += one * float64(len(program.Hosts))
	}
	if takes > work {
		return fmt.Errorf("%w: about %.2g units for all ranks, the limit is %.2g; if you want it nevertheless: --work=%.2g",
			program.ErrWork, takes, work, 1.1*takes)
	}
	var lines []programLine
	for _, rank := range j.Ranks() {
		for _, host := range program.Hosts {
			code, err := program.Remake(ctx, work, j.Name, j.Labels, recipe, b, rank, host)
			if err != nil {
				return err
			}
			is, err := wasm.Verify(code, wasm.Limits{MemoryPages: wasm.MaxMemoryPages})
			if err != nil {
				return fmt.Errorf("rank %d for %s: %w", rank, host, err)
			}
			sum := fmt.Sprintf("%x", sha256.Sum256(code))
			lines = append(lines, programLine{rank, host, len(code), sum, uint64(is.MemoryPages) * wasm.PageSize, is.Manifest.FLOPs, unknown[sum]})
		}
	}
	for _, l := range lines {
		delete(unknown, l.SHA256)
	}
	if err := a.Emit(lines, func(w io.Writer) error { return printPrograms(w, lines) }); err != nil {
		return err
	}
	for s := range unknown {
		return fmt.Errorf("%s is no program of this job, as this version of starling compiles it", s)
	}
	return nil
}

func printPrograms(w io.Writer, lines []programLine) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		mark := ""
		if l.Given {
			mark = "verified"
		}
		fmt.Fprintf(t, "rank %d\t%s\t%d bytes\t%.1f MiB of memory\t%.3g GFLOP a step\t%s\t%s\n", l.Rank, l.Host, l.Bytes,
			float64(l.Memory)/(1<<20), float64(l.FLOPs)/1e9, l.SHA256, mark)
	}
	return t.Flush()
}
