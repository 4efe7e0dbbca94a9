package task

import (
	"errors"
	"fmt"
	"math"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
)

// Columns of recordings.
const (
	Samples = "samples" // f32 [N], as many as make S frames
	Keep    = "keep"    // f32 [S]: 1 for a frame, 0 if a row is only filled up
)

// listen is one label for a recording: of its first Speech.Samples(sequence) samples.
type listen struct {
	whole
	columns []Column
	speech  model.Speech
}

var listenKind = kind{columns: listenColumns, takes: []dataset.Form{dataset.FormRecordings}, textless: true, make: func(p parts) (Task, error) {
	return &listen{columns: p.columns, speech: p.layout.Config.Speech}, nil
}}

func listenColumns(l *model.Layout, sequence int) []Column {
	return []Column{
		{Name: Samples, Type: F32, Shape: []int{l.Config.Speech.Samples(sequence)}},
		{Name: Keep, Type: F32, Shape: []int{sequence}},
		{Name: Labels, Type: I32, Limit: l.Classes},
		{Name: Weights, Type: F32},
	}
}

func (t *listen) Columns() []Column { return t.columns }

func (t *listen) Encode(e *dataset.Example, b Batch, row int) error {
	if e.Recording == nil {
		return errors.New("it is no recording, and the job trains on recordings")
	}
	n, frames := t.columns[0].Size(), t.columns[1].Size()
	if err := hear(e.Recording, t.speech, b[0].F32[row*n:(row+1)*n], b[1].F32[row*frames:(row+1)*frames], false); err != nil {
		return err
	}
	b[2].I32[row], b[3].F32[row] = int32(e.Label), 1
	return nil
}

// hear is samplesOf, and names the recording that it cannot use.
func hear(r *dataset.Recording, s model.Speech, samples, keep []float32, all bool) error {
	err := samplesOf(r, s, samples, keep, all)
	if err != nil && r.File() != "" {
		return fmt.Errorf("%s: %w", r.File(), err)
	}
	return err
}

// samplesOf writes a recording's samples at the model's rate, as many as there is room for, as
// transformers' Wav2Vec2FeatureExtractor does with padding to that length; and which frames
// are its own. What there is no room for is cut, or refused where all of it is wanted.
func samplesOf(r *dataset.Recording, s model.Speech, samples, keep []float32, all bool) error {
	sound, err := r.Decoded()
	if err != nil {
		return err
	}
	if sound, err = sound.Resampled(s.Rate); err != nil {
		return err
	}
	if all && s.Frames(len(sound.Samples)) > len(keep) {
		return fmt.Errorf("the recording lasts %.3f s, and a sequence of %d frames has room for %.3f s: give parts with a text each, or a longer sequence",
			sound.Seconds(), len(keep), float64(s.Samples(len(keep)+1)-1)/float64(s.Rate))
	}
	n := copy(samples, sound.Samples)
	clear(samples[n:])
	heard := s.Frames(n)
	if heard == 0 {
		return fmt.Errorf("the recording has %d samples at %d a second, and a frame is made of %d", n, s.Rate, s.Samples(1))
	}
	if !s.Masked { // what fills up is silence, which the model hears
		n, heard = len(samples), len(keep)
	}
	if s.Normalize {
		normalize(samples[:n])
	}
	for i := range keep {
		keep[i] = 0
		if i < heard {
			keep[i] = 1
		}
	}
	return nil
}

// normalize brings samples to mean 0 and variance 1.
func normalize(x []float32) {
	mean, variance := 0.0, 0.0
	for _, v := range x {
		mean += float64(v) / float64(len(x))
	}
	for _, v := range x {
		variance += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
	}
	scale := 1 / math.Sqrt(variance+1e-7)
	for i, v := range x {
		x[i] = float32((float64(v) - mean) * scale)
	}
}
