package operator

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/gguf"
)

type exportReport struct {
	Out    string   `json:"out"`
	Format string   `json:"format"`
	Rank   int      `json:"rank"`
	Files  []string `json:"files"`
	Bytes  int      `json:"bytes"`
}

func newExportCmd(a *command.App) *cobra.Command {
	var dir, out, rank, format, kind string
	var bare bool
	cmd := &cobra.Command{
		Use:   "export --checkpoint DIR --out DIR [--rank B|best] [--format peft|merged|gguf|safetensors]",
		Short: "Write a released adapter for other programs, at any rank",
		Long: `Write the adapter of a checkpoint folder, cut to a rank, in a form that needs no
Starling:

  peft         adapter_config.json and adapter_model.safetensors for PEFT, with
               the base beside them in base/
  merged       a whole model in Hugging Face layout, the adapter added to its
               weights: what a rank of 0, the head alone, can be exported as
  gguf         one file for llama.cpp and the programs over it: the whole model in
               --type f16, f32 or q8_0, or the LoRA adapter alone (--type adapter). For
               Llama, Mistral, Qwen 2 and Qwen 3 with a BPE over bytes
  safetensors  the bare tensors, with rank and scale in the file's metadata

The model card README.md says what it was trained on, what it may tell of that,
and the lines that load it. A model that no class of transformers computes (one
with mean pooling) carries modeling_starling.py, which transformers runs with
trust_remote_code=True; without it transformers refuses the folder.`,
		Example: "  starling export --checkpoint run1/checkpoint --out adapter\n  starling export --checkpoint run1/checkpoint --rank 2 --format merged --out model\n  starling export --checkpoint run1/checkpoint --format gguf --type q8_0 --out llama",
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if dir == "" || out == "" {
				return usage.Errorf("--checkpoint and --out are required: the folder of a released adapter, and the one to write")
			}
			formats := append(model.ExportFormats(), model.ExportGGUF)
			switch {
			case !slices.Contains(formats, format):
				return usage.Errorf("--format is %q, want one of %s", format, strings.Join(formats, ", "))
			case !slices.Contains(gguf.Kinds(), kind):
				return usage.Errorf("--type is %q, want one of %s", kind, strings.Join(gguf.Kinds(), ", "))
			}
			if err := named.Dir(out); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
			if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
				return usage.Errorf("--out: %s is not empty: an export goes into a folder of its own", out)
			}
			ck, err := bases.Released(dir)
			if err != nil {
				return err
			}
			r := exportReport{Out: out, Format: format}
			if r.Rank, err = bases.Rank(ck, rank); err != nil {
				return err
			}
			var folders map[string]map[string][]byte
			if format == model.ExportGGUF {
				folders, err = ggufFolder(ck, r.Rank, kind)
			} else {
				folders, err = ck.Export(r.Rank, format, bare)
			}
			if err != nil {
				return err
			}
			for _, sub := range slices.Sorted(maps.Keys(folders)) {
				if err := model.WriteFiles(filepath.Join(out, sub), folders[sub]); err != nil {
					return err
				}
				for _, name := range slices.Sorted(maps.Keys(folders[sub])) {
					r.Files = append(r.Files, filepath.ToSlash(filepath.Join(sub, name)))
					r.Bytes += len(folders[sub][name])
				}
			}
			return a.Emit(r, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "rank %d as %s in %s: %d files, %s; README.md says how to load it\n",
					r.Rank, r.Format, r.Out, len(r.Files), terminal.Bytes(int64(r.Bytes)))
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "checkpoint", "", "folder of a released adapter")
	f.StringVar(&out, "out", "", "folder to write; it must be new or empty")
	f.StringVar(&rank, "rank", "best", "rank to cut to, or best: the one that validation chose")
	f.StringVar(&format, "format", model.ExportPEFT, "peft, merged, gguf or safetensors")
	f.StringVar(&kind, "type", gguf.F16, "with --format gguf: f16, f32, q8_0 or adapter")
	f.BoolVar(&bare, "no-base", false, "with --format peft: leave the base out")
	command.Values(cmd, "format", model.ExportPEFT, "merged", model.ExportGGUF, "safetensors")
	command.Values(cmd, "type", gguf.Kinds()...)
	return cmd
}

// ggufFolder is one file with its card.
func ggufFolder(ck *model.Checkpoint, rank int, kind string) (map[string]map[string][]byte, error) {
	name, card := "model.gguf", model.ExportGGUF
	if kind == gguf.Adapter {
		name, card = "adapter.gguf", model.ExportGGUFAdapter
	}
	data, err := gguf.Write(ck, rank, kind)
	return map[string]map[string][]byte{"": {name: data, model.CardFile: ck.Card(rank, card)}}, err
}
