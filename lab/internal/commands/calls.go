package commands

import (
	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/data/dataset/calls"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/fleetdata"
	"github.com/starling-fl/starling/internal/app/usage"
)

func newCommandsCmd(a *command.App) *cobra.Command {
	c := calls.Config{Seed: 1, Split: "train", Clients: 3, PerClient: 96}
	test := 40
	var out string
	cmd := &cobra.Command{
		Use:   "commands --out DIR",
		Short: "Write conversations of spoken commands with the function calls that they come to, to try things with",
		Long: `Write conversations as JSON Lines, one file a speaker: a command in the speaker's own
words, and the call of a function that it comes to, as JSON. They are rows as TRL takes
them ("messages"), for task causal. Each speaker has words of its own for deeds and
things. test.jsonl has commands by speakers of no other file.`,
		Example: "  starling lab commands --out data\n  starling lab commands --out data --clients 12 --per-client 40 --functions 12",
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if out == "" {
				return usage.Errorf("--out is required: the folder to write to")
			}
			if test < 0 {
				return usage.Errorf("--test is %d, want 0 or more", test)
			}
			r, err := fleetdata.WriteCommands(c, test, out)
			if err != nil {
				return err
			}
			return a.Emit(r, r.Print)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&out, "out", "", "folder for the files")
	fl.Uint64Var(&c.Seed, "seed", c.Seed, "seed of the generator")
	fl.IntVar(&c.Clients, "clients", c.Clients, "speakers, one file each")
	fl.IntVar(&c.PerClient, "per-client", c.PerClient, "commands of a speaker")
	fl.IntVar(&c.Functions, "functions", 0, "functions that are called; 0: all")
	fl.IntVar(&test, "test", test, "commands in test.jsonl, each by a speaker of its own; 0: no such file")
	return cmd
}
