package training

import (
	"math"
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
		"memory":             func(s *Spec) { s.Memory = 2049 },
		"batch":              func(s *Spec) { s.Batch = MaxBatch + 1 },
		"micro_batch":        func(s *Spec) { s.MicroBatch = 3 },
		"epochs":             func(s *Spec) { s.Epochs = 7 },
		"optimizer":          func(s *Spec) { s.Optimizer = "lion" },
		"learning_rate":      func(s *Spec) { s.LearningRate = -1 },
		"head_learning_rate": func(s *Spec) { s.HeadLearningRate = -1 },
		"end_factor":         func(s *Spec) { s.EndFactor = 1.5 },
		"weight_decay":       func(s *Spec) { s.WeightDecay = 1 },
		"arithmetic":         func(s *Spec) { s.Arithmetic = "quick" },
		"statistics_every":   func(s *Spec) { s.StatisticsEvery = 1 },
		"roots_every":        func(s *Spec) { s.Optimizer = Shampoo; s.StatisticsEvery, s.RootsEvery = 2, 3 },
	} {
		s := good
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "training."+key+" ") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// Shampoo takes roots of what it has summed up, within a round.
func TestShampoo(t *testing.T) {
	s := good
	s.Optimizer, s.Steps, s.StatisticsEvery, s.RootsEvery = Shampoo, 6, 2, 6
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Spec){
		"few steps": func(s *Spec) { s.Steps = 5 },
		"defaults":  func(s *Spec) { s.StatisticsEvery, s.RootsEvery = 0, 0 },
		"negative":  func(s *Spec) { s.RootsEvery = -6 },
		"no factor": func(s *Spec) { s.StatisticsEvery = 4 },
	} {
		bad := s
		if change(&bad); bad.Validate() == nil {
			t.Errorf("%s: %+v", name, bad)
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
		if b.Field == "" || b.Have < b.Min || b.Have > b.Max {
			t.Errorf("%+v", b)
		}
	}
}

// Both rates fall in a line to the last round's, and stay there; without a factor nothing does.
func TestAt(t *testing.T) {
	s := good
	if s.At(3, 5) != s {
		t.Errorf("%+v without a factor", s.At(3, 5))
	}
	s.EndFactor = 0.2
	if s.At(0, 1) != s {
		t.Errorf("%+v in the only round", s.At(0, 1))
	}
	for committed, left := range []float64{1, 0.8, 0.6, 0.4, 0.2, 0.2} {
		want := good
		want.LearningRate, want.HeadLearningRate = 0.5*left, 0.25*left
		got := s.At(committed, 5)
		if math.Abs(got.LearningRate-want.LearningRate) > 1e-15 || math.Abs(got.HeadLearningRate-want.HeadLearningRate) > 1e-15 {
			t.Errorf("after %d rounds rates of %v and %v, want %v and %v", committed,
				got.LearningRate, got.HeadLearningRate, want.LearningRate, want.HeadLearningRate)
		}
		if got.LearningRate, got.HeadLearningRate = want.LearningRate, want.HeadLearningRate; got != want {
			t.Errorf("after %d rounds %+v, want %+v", committed, got, want)
		}
	}
}
