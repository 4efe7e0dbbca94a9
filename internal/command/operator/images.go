package operator

import (
	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/model"
)

// defaultSide is that of an untrained base's images where their own is none it can have.
const defaultSide = 32

// trainImages makes a job one of images. If it names no base there is none to
// adapt: a small untrained one is trained whole, with more steps a round. scaled says
// that it sees its images in another size than theirs.
func trainImages(j *coordinator.Job, sample *dataset.Image, seed uint64) (b *model.Base, scaled bool, err error) {
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
