package bases

import (
	"cmp"
	"path/filepath"

	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/model"
)

// Bare is a base that writes texts on, untrained, as a checkpoint: its adapter adds nothing.
func Bare(name string) (*model.Checkpoint, error) {
	b, err := Load(name)
	if err != nil {
		return nil, err
	}
	if !b.Config.Causal() {
		return nil, usage.Errorf("--base: a %s writes no texts on: want a decoder, such as SmolLM2's folder", b.Config.ModelType)
	}
	method := model.Method{RMax: 1, Alpha: 1, Task: model.TaskCausal}
	l, err := model.NewLayout(b.Config, method, 0)
	if err != nil {
		return nil, err
	}
	info := model.CheckpointInfo{Job: filepath.Base(filepath.Clean(cmp.Or(name, embeddedDefault))), Seq: b.Config.MaxTokens(), Method: l.Method, BestRank: 1}
	return &model.Checkpoint{CheckpointInfo: info, Base: b, Adapter: model.NewAdapter(l, 1)}, nil
}
