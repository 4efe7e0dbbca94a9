package fleetdata

import (
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// Without a base the demo of recordings trains a small one whole, which hears a whole word.
func TestRecordingsWithoutABase(t *testing.T) {
	j := job.Default()
	b, err := trainRecordings(&j, 1)
	if err != nil {
		t.Fatal(err)
	}
	if j.Task != "listen" || j.Adapter.Method != string(model.MethodFull) {
		t.Errorf("task %s, method %s", j.Task, j.Adapter.Method)
	}
	s := b.Config.Speech
	if n := s.Samples(j.Adapter.Sequence); n > dataset.SpokenSamples || n+s.Samples(2)-s.Samples(1) <= dataset.SpokenSamples {
		t.Errorf("%d frames are %d samples of %d", j.Adapter.Sequence, n, dataset.SpokenSamples)
	}
	j.Base = "a folder"
	if b, err := trainRecordings(&j, 1); b != nil || err != nil {
		t.Errorf("a job with a base: %v, %v", b, err)
	}
}

// A base of another rate hears a generated word whole, too.
func TestWordsFillABasesFrames(t *testing.T) {
	c := model.NewHubert(8, 32, 1)
	if n, err := wordFrames(c); err != nil || n != 25 { // 8192 samples at 16 kHz
		t.Errorf("%d frames, %v, want 25", n, err)
	}
	c.Speech.Stride, c.Speech.Kernel = model.Convolutions{60, 60, 3}, model.Convolutions{60, 60, 3}
	c.Speech.Width = model.Convolutions{8, 8, 8}
	if _, err := wordFrames(c); err == nil {
		t.Error("frames longer than a word, and no error")
	}
}
