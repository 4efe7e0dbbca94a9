package operator

import (
	"testing"

	"github.com/starling-fl/starling/dataset"
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
