package fleetdata

import (
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base/llama"
)

// ChooseBase returns the base that the job names or, where it names none, one that fits the data, and sets what of the
// job follows from both: its task, lengths and, for a base that is trained from nothing, how it is trained. want is the
// task that the data must be for; "" for any. The seed is that of an untrained base's weights.
func (d *Data) ChooseBase(j *job.Job, want string, seed uint64) (*model.Base, error) {
	held := task.For(d.Test.Form())
	if j.Task = held.String(); want != "" && want != j.Task {
		return nil, usage.Errorf("--task is %s, but what %s holds is for the task %s", want, d.Name, j.Task)
	}
	if held == model.TaskImage {
		b, scaled, err := trainImages(j, d.Test.Examples[0].Image, seed)
		if scaled {
			d.Note("images are scaled to %d x %d, the size of a base that is trained from nothing: --base names one that was trained before", defaultSide, defaultSide)
		}
		if b != nil || err != nil {
			return b, err
		}
	}
	if held == model.TaskTranscribe {
		if b, err := trainTranscripts(j, d, seed); b != nil || err != nil {
			return b, err
		}
	}
	if held == model.TaskListen {
		if b, err := trainRecordings(j, seed); b != nil || err != nil {
			return b, err
		}
	}
	if held == model.TaskCausal {
		return d.writingBase(j)
	}
	b, err := bases.Load(j.Base)
	if err != nil {
		return nil, err
	}
	if only := b.Config.DefaultTask(); only != held && (only != model.TaskClassify || held == model.TaskImage || held == model.TaskListen) && !(held == model.TaskTranscribe && only == model.TaskListen) {
		return nil, usage.Errorf("--base %s, a %s, is for the task %s, and what %s holds is for %s", j.Base, b.Config.ModelType, only, d.Name, j.Task)
	}
	if held == model.TaskListen && d.SHA256 == "" {
		if j.Adapter.Sequence, err = wordFrames(b.Config); err != nil {
			return nil, usage.Errorf("--base %s: %w", j.Base, err)
		}
	}
	return b, nil
}

// commandTokens is the length of a command with its call, in tokens.
const commandTokens = 48

// writingBase is the base that a demo of texts that are written names, or the embedded one.
func (d *Data) writingBase(j *job.Job) (*model.Base, error) {
	if d.SHA256 == "" {
		j.Adapter.Sequence = commandTokens
	}
	if j.Base == "" {
		j.Adapter.Targets = []string{model.AllLinear}
		// What speakers have to themselves is many words, which few examples of a round tell of.
		j.Training.Steps = 8
		return llama.Commands()
	}
	b, err := bases.Load(j.Base)
	if err == nil && !b.Config.Causal() {
		err = usage.Errorf("--base %s is a %s: --task causal needs a base that writes on what it reads, as a llama does", j.Base, b.Config.ModelType)
	}
	return b, err
}
