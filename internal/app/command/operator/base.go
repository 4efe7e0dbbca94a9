package operator

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/hub"
)

func newBaseCmd(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "base",
		Short: "Fetch a base model from a hub, and know published ones by hash",
	}
	cmd.AddCommand(newBaseFetchCmd(a), newBaseListCmd(a), newBaseVerifyCmd(a), newBaseSignCmd(a))
	return cmd
}

// FetchReport is a model that was fetched.
type FetchReport struct {
	hub.Fetched
	Architecture string `json:"architecture"`
	Parameters   int    `json:"parameters"`
	SHA256       string `json:"sha256"` // of the base's blob
}

func newBaseFetchCmd(a *command.App) *cobra.Command {
	var revision string
	cmd := &cobra.Command{
		Use:   "fetch NAME",
		Short: "Fetch a model from Hugging Face's hub, or a mirror, into the local cache",
		Long: `Fetch a model's configuration, tokenizer and safetensors weights into the cache that
huggingface_hub keeps (HF_HUB_CACHE, HF_HOME), and check that a base can be made of
them. An interrupted download goes on where it ended; every file is held against the
hash that the hub lists. Then --base NAME, and base: NAME in a job file, find it
without a network.

HF_ENDPOINT names another hub, HF_TOKEN a token for private and gated models;
with HF_HUB_OFFLINE=1 nobody is asked.`,
		Example: "  starling base fetch sentence-transformers/all-MiniLM-L6-v2\n  HF_ENDPOINT=https://hub.example.org starling base fetch org/name --revision v1.0",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("%s takes one model's name, got %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&revision, "revision", "main", "branch, tag or commit; --base NAME finds main, others by the folder that is printed")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := hub.FromEnv()
		if err != nil {
			return usage.Wrap(err)
		}
		client.Progress = terminal.FetchProgress(a.Stderr)
		got, err := client.Fetch(cmd.Context(), args[0], revision)
		if err != nil {
			if cmd.Context().Err() != nil {
				return fmt.Errorf("interrupted: the same command goes on from here")
			}
			return err
		}
		b, err := model.LoadBaseDir(got.Folder)
		if err != nil {
			return fmt.Errorf("%s was fetched, but is not usable as a base: %w", args[0], err)
		}
		sum, err := b.SHA256()
		if err != nil {
			return err
		}
		r := FetchReport{Fetched: *got, Architecture: b.Config.ModelType, SHA256: fmt.Sprintf("%x", sum)}
		for _, t := range b.Config.BaseTensors() {
			r.Parameters += model.Elements(t.Shape)
		}
		return a.Emit(r, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s: %s of %.1f million parameters, %.1f MB in %d files, %.1f MB fetched\nuse it with --base %s\n",
				r.Name, r.Architecture, float64(r.Parameters)/1e6, float64(r.Bytes)/1e6, r.Files, float64(r.Fetched.Fetched)/1e6, baseArgument(r.Fetched, revision))
			return err
		})
	}
	return cmd
}

// baseArgument is what --base takes for a model that was fetched.
func baseArgument(f hub.Fetched, revision string) string {
	if revision == "main" {
		return f.Name
	}
	return f.Folder
}
