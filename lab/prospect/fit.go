package prospect

import (
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/model"
)

// large is the number of a decoder's embedded values from which rates and sizes are fitted: the defaults are of small
// bases.
const large = 10_000_000

// Fit fits the job to the replies that the data holds: sequences are as long as the longest row and a twentieth. Over a
// large decoder devices fetch an eighth of the base, and each round trains a few dozen rows at a rate by which
// SmolLM2-135M learns to write function calls in few rounds. Other data keep the defaults.
func (f *Fleet) Fit(base *model.Base, set *dataset.Set) error {
	c := base.Config
	if form := set.Form(); !c.Causal() || form != dataset.FormPrompts && form != dataset.FormTalks {
		return nil
	}
	longest, err := longestRow(base, set)
	if err != nil {
		return err
	}
	f.fitted = []key{{"adapter.sequence", min((longest+longest/20+7)/8*8, c.MaxTokens()), ""}}
	if c.VocabSize*c.HiddenSize < large {
		return nil
	}
	f.fitted = append(f.fitted, key{"base_format", "nf4", ""}, key{"adapter.rank_min", 8, ""},
		key{"training.batch", 4, ""}, key{"training.steps", 8, ""}, key{"training.learning_rate", 0.001, ""}, key{"training.arithmetic", "fused", ""})
	if f.From == "nobody" { // noise grows with the number of values
		f.fitted = append(f.fitted, key{"adapter.targets", []string{"all-linear"}, ""})
	}
	return nil
}

// mostFitted is the longest row that is looked for, in tokens: devices' memory grows with it.
const mostFitted = 1024

// longestRow is how many tokens the longest row has, or mostFitted.
func longestRow(base *model.Base, set *dataset.Set) (longest int, err error) {
	layout, err := model.NewLayout(base.Config, model.Method{RMax: 1, Alpha: 1, Task: model.TaskCausal}, 0)
	if err != nil {
		return 0, err
	}
	sequence := min(mostFitted, base.Config.MaxTokens())
	t, err := task.New(base, layout, sequence)
	if err != nil {
		return 0, err
	}
	rows, _, err := task.Rows(t, set.Examples)
	if err != nil {
		return 0, err
	}
	for i := range rows {
		b, err := task.EncodeAll(t, rows[i:i+1])
		if err != nil {
			return 0, &dataset.LineError{Line: rows[i].Line, Err: err}
		}
		// The end of what is told is the row's; what follows a last reply is not learnt, and may be cut.
		places, _ := task.MaskedPlaces(b, 0)
		longest = max(longest, int(b.Int32(task.Places)[places[len(places)-1]])+2)
	}
	return longest, nil
}
