package training

import (
	"reflect"
	"strings"
	"testing"
)

var good = Spec{Steps: 6, Batch: 8, MicroBatch: 4, Epochs: 2, Optimizer: Momentum, LearningRate: 0.5, HeadLearningRate: 0.25}

func TestValidate(t *testing.T) {
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for key, change := range map[string]func(*Spec){
		"steps":              func(s *Spec) { s.Steps = 0 },
		"batch":              func(s *Spec) { s.Batch = 1<<16 + 1 },
		"micro_batch":        func(s *Spec) { s.MicroBatch = 3 },
		"epochs":             func(s *Spec) { s.Epochs = 7 },
		"optimizer":          func(s *Spec) { s.Optimizer = "lion" },
		"learning_rate":      func(s *Spec) { s.LearningRate = -1 },
		"head_learning_rate": func(s *Spec) { s.HeadLearningRate = -1 },
		"weight_decay":       func(s *Spec) { s.WeightDecay = 1 },
		"arithmetic":         func(s *Spec) { s.Arithmetic = "quick" },
	} {
		s := good
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "training."+key+" ") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// What a device is told comes back as it was, and nothing of it is without a bound.
func TestAnnounced(t *testing.T) {
	told := good.Announce()
	back := told.Spec(uint32(good.Steps), good.LearningRate)
	want := good
	want.MicroBatch, want.HeadLearningRate = 0, 0 // are in its program
	if back != want {
		t.Errorf("%+v, want %+v", back, want)
	}
	if again := back.Announce(); again != told {
		t.Errorf("%+v, want %+v", again, told)
	}
	if v := reflect.ValueOf(told); v.NumField() != len(told.Bounds()) {
		t.Errorf("%d fields, %d bounds", v.NumField(), len(told.Bounds()))
	}
	for _, b := range told.Bounds() {
		if b.Field == "" || b.Have < b.Least || b.Have > b.Most {
			t.Errorf("%+v", b)
		}
	}
}
