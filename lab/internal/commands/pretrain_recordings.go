package commands

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/fleetdata"
	"github.com/starling-fl/starling/lab/pretraining"
	"github.com/starling-fl/starling/lab/voices"
	"github.com/starling-fl/starling/model"
)

// heardBase is a small encoder of recordings.
type heardBase struct {
	pretraining.WriterSpec
	path string // of the recordings
	from string // of a base that is trained further; "": none
}

// defaultHeard hears forty frames a second, of words. Norms of each frame and before each layer, and a
// mean over what is heard alone, learn in a tenth of the steps.
func defaultHeard() *heardBase {
	c := model.NewHubert(64, 64, 2)
	s := &c.Speech
	s.Width, s.Kernel, s.Stride = model.Convolutions{64, 64, 64}, model.Convolutions{64, 8, 4}, model.Convolutions{20, 5, 2}
	s.Norm, s.NormFirst, s.Masked = "layer", true, true
	s.Rate, s.Positions, s.Groups, s.Projector = 8000, 16, 4, 64
	return &heardBase{WriterSpec: pretraining.WriterSpec{Spec: pretraining.Spec{Config: c, Batch: 32, Sequence: 40, Steps: 3000, LearningRate: 2e-3, Seed: 1}}}
}

func (s *heardBase) common() *pretraining.Spec { return &s.Spec }
func (*heardBase) generator() string           { return "" }

func (s *heardBase) resize(given func(string) bool, to sizes) error {
	if given("hidden") {
		s.Config.HiddenSize, s.Config.IntermediateSize = to.hidden, 4*to.hidden
		s.Config.NumAttentionHeads = max(1, to.hidden/32)
	}
	if given("layers") {
		s.Config.NumHiddenLayers = to.layers
	}
	if given("heads") {
		s.Config.NumAttentionHeads = to.heads
	}
	if given("vocab") {
		return fmt.Errorf("--vocab is of text, and --architecture hubert hears recordings")
	}
	if s.from != "" && (given("hidden") || given("layers") || given("heads")) {
		return fmt.Errorf("--from gives the base's sizes: leave --hidden, --layers and --heads out")
	}
	return s.Config.Validate()
}

// train makes an encoder of recordings on what a folder of them is labelled.
func (s *heardBase) train(ctx context.Context, format model.Format, progress pretraining.Progress) (*model.Base, error) {
	set, err := dataset.Columns{}.Load(s.path)
	if err != nil {
		return nil, err
	}
	if set.Form() != dataset.FormRecordings || len(set.Labels) < 2 {
		return nil, fmt.Errorf("%s holds %s with %d labels, want recordings with two labels or more", s.path, set.Form().Description(), len(set.Labels))
	}
	if s.Source, err = fleetdata.Hash(s.path, dataset.Columns{}, set); err != nil {
		return nil, err
	}
	s.Source += " " + voices.Version
	if s.from != "" {
		from, err := bases.Load(s.from)
		if err != nil {
			return nil, err
		}
		if !from.Config.Hears() {
			return nil, fmt.Errorf("%s is a %s, which hears nothing", s.from, from.Config.ModelType)
		}
		sum, err := from.SHA256()
		if err != nil {
			return nil, err
		}
		s.Config = from.Config
		for _, t := range s.Config.BaseTensors() { // a loaded base's are not in its Tensors
			values, err := from.Tensor(t.Name)
			if err != nil {
				return nil, err
			}
			s.Start = append(s.Start, model.Tensor{Name: t.Name, Shape: t.Shape, Data: values})
		}
		s.Source += " from " + hex.EncodeToString(sum[:])
	}
	s.Classes = len(set.Labels)
	lay, err := s.Layout()
	if err != nil {
		return nil, err
	}
	listen, err := task.New(&model.Base{Config: s.Config}, lay, s.Sequence)
	if err != nil {
		return nil, err
	}
	draw := func(_ int, rng *rand.Rand, _ float64, b task.Batch) error {
		for row := range s.Batch {
			e := set.Examples[rng.IntN(len(set.Examples))]
			sound, err := e.Recording.Decoded()
			if err == nil {
				sound, err = sound.Resampled(s.Config.Speech.Rate)
			}
			if err != nil {
				return err
			}
			if e.Recording, err = dataset.Recorded(voices.Varied(rng, sound)); err != nil {
				return err
			}
			if err := listen.Encode(&e, b, row); err != nil {
				return err
			}
		}
		return nil
	}
	return pretraining.MakeWriter(ctx, s.WriterSpec, nil, format, draw, progress)
}
