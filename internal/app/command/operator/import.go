package operator

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/internal/app/bases/start"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/model"
)

type importReport struct {
	Out     string   `json:"out"`
	Rank    int      `json:"rank"`
	Alpha   float64  `json:"alpha"`
	Labels  []string `json:"labels"`
	Trained int      `json:"trained"` // values
	SHA256  string   `json:"base_sha256"`
	Fresh   bool     `json:"fresh_head"` // neither the adapter nor the base had a head
}

func newImportCmd(a *command.App) *cobra.Command {
	var f start.Import
	var out, scale string
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
			if f.Base == "" || out == "" {
				return usage.Errorf("--base and --out are required")
			}
			if err := named.Dir(out); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
			var err error
			if f.Scale, err = model.ParseScaling(scale); err != nil {
				return usage.Errorf("--scale is %.40q, must be rank (alpha/b at rank b) or constant (alpha/r at every rank)", scale)
			}
			ck, err := f.Checkpoint()
			if err != nil {
				return err
			}
			if err := model.WriteCheckpoint(out, ck); err != nil {
				return err
			}
			sum, err := ck.Base.SHA256()
			if err != nil {
				return err
			}
			l := ck.Adapter.Layout()
			r := importReport{out, l.Method.RMax, l.Method.Alpha, ck.Labels, l.Size(l.Method.RMax), hex.EncodeToString(sum[:]), ck.FreshHead}
			if r.Fresh {
				if _, err := fmt.Fprintln(a.Stderr, "warning: the head is fresh: the adapter has none (PEFT saves it with modules_to_save), nor has the base. "+
					"Answers are guesses until it is trained; name the adapter's folder that holds its head, or train with adapter.start."); err != nil {
					return err
				}
			}
			return a.Emit(r, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "checkpoint in %s: rank %d, alpha %v, %d classes, %d trained values\n",
					r.Out, r.Rank, r.Alpha, len(r.Labels), r.Trained)
				return err
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Base, "base", "", "base folder in Hugging Face layout, or a model's name in the local Hugging Face cache")
	fl.StringVar(&f.Adapter, "adapter", "", "folder of a PEFT adapter (none: the base with its own head)")
	fl.StringVar(&scale, "scale", "rank", "what the adapter's scale is below its own rank r: rank (lora_alpha/b at rank b) or constant (lora_alpha/r)")
	fl.StringVar(&f.Task, "task", "", "what the head answers: "+strings.Join(model.TaskNames(), ", ")+"; default by the base")
	fl.StringSliceVar(&f.Labels, "labels", nil, "classes in the order of the head's outputs (default: id2label of the base)")
	fl.StringVar(&out, "out", "", "checkpoint folder to write")
	fl.IntVar(&f.Sequence, "sequence", 0, "tokens of a text (0: 128, or what the base has positions for)")
	return cmd
}
