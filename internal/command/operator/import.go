package operator

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/hub"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/named"
	"github.com/starling-fl/starling/internal/usage"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
)

type importReport struct {
	Out     string   `json:"out"`
	Rank    int      `json:"rank"`
	Alpha   float64  `json:"alpha"`
	Labels  []string `json:"labels"`
	Trained int      `json:"trained"` // values
	SHA256  string   `json:"base_sha256"`
}

func newImportCmd(a *command.App) *cobra.Command {
	var base, adapter, kind, out, scale string
	var labels []string
	var sequence int
	cmd := &cobra.Command{
		Use:   "import --base FOLDER|NAME --out DIR [--labels A,B,...] [--adapter FOLDER]",
		Short: "Take a Hugging Face model and a PEFT adapter as a checkpoint",
		Long: `Make a checkpoint folder of a base, a PEFT LoRA adapter and a head, for starling
predict and export. The head is the adapter's (modules_to_save), else the base's own, else a fresh one.
--labels names the classes in the order of the head's outputs, by default the
base's own (id2label); a base that writes text (T5) has none.`,
		Example: "  starling import --base sentence-transformers/all-MiniLM-L6-v2 --adapter lora --labels no,yes --out start",
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if base == "" || out == "" {
				return usage.Errorf("--base and --out are required")
			}
			if err := named.Dir(out); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
			rule, err := model.ParseScaling(scale)
			if err != nil {
				return usage.Errorf("--scale is %.40q, must be rank (alpha/b at rank b) or constant (alpha/r at every rank)", scale)
			}
			if rule != model.ScaleByRank && adapter == "" {
				return usage.Errorf("--scale is for an --adapter, which none is given of")
			}
			ck, err := importCheckpoint(base, adapter, kind, labels, sequence)
			if err != nil {
				return err
			}
			if rule != model.ScaleByRank {
				if ck.Adapter, err = model.Rescaled(ck.Adapter, rule); err != nil {
					return err
				}
			}
			if err := model.WriteCheckpoint(out, ck); err != nil {
				return err
			}
			sum, err := ck.Base.SHA256()
			if err != nil {
				return err
			}
			l := ck.Adapter.Layout()
			r := importReport{out, l.Method.RMax, l.Method.Alpha, ck.Labels, l.Size(l.Method.RMax), hex.EncodeToString(sum[:])}
			return a.Emit(r, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "checkpoint in %s: rank %d, alpha %v, %d classes, %d trained values\n",
					r.Out, r.Rank, r.Alpha, len(r.Labels), r.Trained)
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&base, "base", "", "base folder in Hugging Face layout, or a model's name in the local Hugging Face cache")
	f.StringVar(&adapter, "adapter", "", "folder of a PEFT adapter (none: the base with its own head)")
	f.StringVar(&scale, "scale", "rank", "what the adapter's scale is below its own rank r: rank (lora_alpha/b at rank b) or constant (lora_alpha/r)")
	f.StringVar(&kind, "task", "", "what the head answers: "+strings.Join(model.TaskNames(), ", ")+"; default by the base")
	f.StringSliceVar(&labels, "labels", nil, "classes in the order of the head's outputs (default: id2label of the base)")
	f.StringVar(&out, "out", "", "checkpoint folder to write")
	f.IntVar(&sequence, "sequence", 0, "tokens of a text (0: 128, or what the base has positions for)")
	return cmd
}

func importCheckpoint(base, adapter, asked string, labels []string, sequence int) (*model.Checkpoint, error) {
	dir, err := hub.Find(base)
	if err != nil {
		return nil, named.Wrap(err)
	}
	b, err := model.LoadBaseDir(dir)
	if err != nil {
		return nil, named.Wrap(err)
	}
	if !b.Config.Textless() {
		if _, err := task.TokenizerOf(b); err != nil {
			return nil, fmt.Errorf("base %s: %w", base, err)
		}
	}
	kind := b.Config.DefaultTask()
	if asked != "" {
		if kind, err = model.ParseTask(asked); err != nil {
			return nil, usage.Wrap(err)
		}
	}
	if len(labels) == 0 && kind.Labelled() {
		if labels, err = model.FolderLabels(os.DirFS(dir)); err != nil {
			return nil, err
		}
	}
	if n := len(labels); kind.Labelled() == (n == 0) || n == 1 {
		return nil, usage.Errorf("%d labels: give --labels, at least two, as config.json names none in id2label; "+
			"and none of a model that answers questions or tells masked words", n)
	}
	head, err := model.LoadHead(os.DirFS(dir), b.Config, kind)
	if err != nil {
		return nil, fmt.Errorf("base %s: %w", base, err)
	}
	if most := b.Config.MaxTokens(); sequence < 0 || sequence > most {
		return nil, usage.Errorf("--sequence is %d, want 1 to %d, which the base has positions for (0: %d)", sequence, most, min(128, most))
	} else if sequence == 0 {
		sequence = min(128, most)
	}
	ck := &model.Checkpoint{Base: b, CheckpointInfo: model.CheckpointInfo{Seq: sequence, Labels: labels,
		Privacy: "none: imported, what it was trained on is not known here"}}
	if adapter == "" {
		ck.Adapter, err = model.HeadAdapter(b.Config, kind, len(labels), head)
	} else if ck.Adapter, err = model.LoadPEFT(os.DirFS(adapter), b, kind, len(labels), head); err != nil {
		err = fmt.Errorf("%s: %w", adapter, err)
	}
	if err != nil {
		return nil, err
	}
	return ck, nil
}
