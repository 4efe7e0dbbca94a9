package operator

import (
	"fmt"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/model"
)

// trainRecordings makes a job one of recordings. Where it names no base there is none to
// adapt: a small untrained one is trained whole, with more steps a round.
func trainRecordings(j *coordinator.Job, seed uint64) (*model.Base, error) {
	j.Task = string(model.TaskListen)
	if j.Base != "" {
		return nil, nil
	}
	c := model.NewHubert(32, 48, 2)
	c.NumAttentionHeads, c.IntermediateSize = 2, 96
	s := &c.Speech
	s.Width, s.Kernel, s.Stride = model.Convolutions{32, 48, 48}, model.Convolutions{32, 8, 4}, model.Convolutions{8, 8, 4}
	s.Rate, s.Positions, s.Groups, s.Projector = dataset.SpokenRate, 8, 4, 32
	b, err := model.RandomBase(c, seed, nil)
	if err != nil {
		return nil, err
	}
	if j.Adapter.Sequence, err = wordFrames(c); err != nil {
		return nil, err
	}
	if !j.Adapter.HeadOnly {
		j.Adapter.Method = string(model.MethodFull)
	}
	// Nothing is learnt yet: updates are long, and point the same way for many rounds.
	j.Training.Steps, j.Training.Batch = 16, 16
	j.Privacy.ClipNorm, j.Server.Momentum = 10, 0.8
	return b, nil
}

// wordFrames is how many of a base's frames a generated word fills.
func wordFrames(c model.Config) (int, error) {
	n := c.Speech.Frames(dataset.SpokenSamples * c.Speech.Rate / dataset.SpokenRate)
	if n < 1 {
		return 0, fmt.Errorf("a generated word is shorter than one frame, of %d samples at %d a second", c.Speech.Samples(1), c.Speech.Rate)
	}
	return n, nil
}
