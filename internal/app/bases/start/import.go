package start

import (
	"fmt"
	"os"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/leaf/named"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/hub"
	"github.com/starling-fl/starling/model/peft"
)

// Import is a model of others, to be taken as a checkpoint. Fields are the flags of 'starling import'.
type Import struct {
	Base     string        // folder in Hugging Face layout, or a name in its cache
	Adapter  string        // folder of a PEFT adapter; "": the base with its own head
	Task     string        // what the head answers; "": by the base
	Labels   []string      // of the head's outputs; none: those of the base
	Sequence int           // tokens of a text; 0: 128, or what the base has positions for
	Scale    model.Scaling // of Adapter
}

// Checkpoint reads all of it.
func (f Import) Checkpoint() (*model.Checkpoint, error) {
	if f.Scale != model.ScaleByRank && f.Adapter == "" {
		return nil, usage.Errorf("--scale is for an --adapter, which none is given of")
	}
	labels, sequence := f.Labels, f.Sequence
	dir, err := hub.Find(f.Base)
	if err != nil {
		return nil, named.Wrap(err)
	}
	b, err := model.LoadBaseDir(dir)
	if err != nil {
		return nil, named.Wrap(err)
	}
	if !b.Config.Textless() {
		if _, err := task.TokenizerOf(b); err != nil {
			return nil, fmt.Errorf("base %s: %w", f.Base, err)
		}
	}
	kind := b.Config.DefaultTask()
	if f.Task != "" {
		if kind, err = model.ParseTask(f.Task); err != nil {
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
		return nil, fmt.Errorf("base %s: %w", f.Base, err)
	}
	if most := b.Config.MaxTokens(); sequence < 0 || sequence > most {
		return nil, usage.Errorf("--sequence is %d, want 1 to %d, which the base has positions for (0: %d)", sequence, most, min(128, most))
	} else if sequence == 0 {
		sequence = min(128, most)
	}
	ck := &model.Checkpoint{Base: b, CheckpointInfo: model.CheckpointInfo{Seq: sequence, Labels: labels,
		Privacy: "none: imported, what it was trained on is not known here"}}
	if f.Adapter == "" {
		ck.Adapter, err = model.HeadAdapter(b.Config, kind, len(labels), head)
	} else if ck.Adapter, err = peft.Load(os.DirFS(f.Adapter), b, kind, len(labels), head); err != nil {
		err = fmt.Errorf("%s: %w", f.Adapter, err)
	}
	if err == nil && f.Scale != model.ScaleByRank {
		ck.Adapter, err = model.Rescaled(ck.Adapter, f.Scale)
	}
	if err != nil {
		return nil, err
	}
	ck.FreshHead = ck.Adapter.FreshHead()
	return ck, nil
}
