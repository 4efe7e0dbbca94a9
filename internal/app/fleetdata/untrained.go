package fleetdata

import (
	"fmt"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// defaultSide is that of an untrained base's images where their own is none it can have.
const defaultSide = 32

// trainImages makes a job one of images. If it names no base there is none to
// adapt: a small untrained one is trained whole, with more steps a round. scaled says
// that it sees its images in another size than theirs.
func trainImages(j *job.Job, sample *dataset.Image, seed uint64) (b *model.Base, scaled bool, err error) {
	j.Task = string(model.TaskImage)
	if j.Base != "" {
		return nil, false, nil
	}
	if sample, err = sample.Decoded(); err != nil {
		return nil, false, err
	}
	side := sample.Width
	if scaled = sample.Height != side || side < 4 || side > 64 || side%4 != 0; scaled {
		side = defaultSide
	}
	patch := max(2, side/8)
	if b, err = model.RandomBase(model.NewViT(64, 2, side, patch, sample.Channels), seed, nil); err != nil {
		return nil, false, err
	}
	if !j.Adapter.HeadOnly {
		j.Adapter.Method = string(model.MethodFull)
	}
	// Nothing is learnt yet: updates are long, and point the same way for many rounds.
	j.Training.Steps, j.Training.Batch = 16, 16
	j.Privacy.ClipNorm, j.Server.Momentum = 10, 0.8
	return b, scaled, nil
}

// trainRecordings makes a job one of recordings. If it names no base there is none to
// adapt: a small untrained one is trained whole, with more steps a round.
func trainRecordings(j *job.Job, seed uint64) (*model.Base, error) {
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

// trainTranscripts makes a job one of recordings with what is said in them. If it names no
// base, a small untrained one is trained whole, that writes the characters of the data's texts.
func trainTranscripts(j *job.Job, d *Data, seed uint64) (*model.Base, error) {
	j.Task, j.Labels = string(model.TaskTranscribe), nil
	sets := append([]*dataset.Set{d.Validation, d.Test}, d.Clients...)
	most := 0.0 // seconds
	var texts []string
	for _, s := range sets {
		for _, e := range s.Examples {
			sound, err := e.Recording.Decoded()
			if err != nil {
				return nil, err
			}
			most, texts = max(most, sound.Seconds()), append(texts, e.Text)
		}
	}
	frames := func(c model.Config) int { return c.Speech.Frames(int(most*float64(c.Speech.Rate))) + 1 }
	if j.Base != "" {
		b, err := bases.Load(j.Base)
		if err == nil && b.Config.Hears() {
			j.Adapter.Sequence = frames(b.Config)
		}
		return nil, err
	}
	c := model.NewHubert(32, 96, 2)
	c.NumAttentionHeads, c.IntermediateSize = 4, 192
	s := &c.Speech
	s.Width, s.Kernel, s.Stride = model.Convolutions{32, 64, 96}, model.Convolutions{32, 8, 4}, model.Convolutions{8, 5, 4}
	s.Rate, s.Positions, s.Groups, s.Projector, s.Reduction, s.Masked = dataset.SpokenRate, 16, 8, 32, "mean", true
	s.Norm = "layer"
	letters, err := c.WithCharacters(texts)
	if err != nil {
		return nil, err
	}
	b, err := model.RandomBase(c, seed, letters)
	if err != nil {
		return nil, err
	}
	j.Adapter.Sequence = frames(c)
	if !j.Adapter.HeadOnly {
		j.Adapter.Method = string(model.MethodFull)
	}
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
