package nn

import (
	"context"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
)

// BenchmarkStep times one training step of the default base's size on the Go
// backend, the reference that compiled programs replace.
func BenchmarkStep(b *testing.B) {
	s := StepSpec{Config: model.BERT(4096, 64, 2, 0, 64), Method: model.Method{RMax: 8, Alpha: 8}, Classes: 8,
		Rank: 8, Spec: training.Spec{Batch: 8, Optimizer: training.AdamW}, Sequence: 64}
	tr, err := NewTrainer(s, testBase(b, s.Config))
	if err != nil {
		b.Fatal(err)
	}
	start, batch := slice(b, s), testBatches(s, 1)
	defer cputime.Benchmark(b)()
	for b.Loop() {
		if _, _, err := tr.Train(context.Background(), start, batch, 0.01); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPredict times the labelling of 64 texts of full length.
func BenchmarkPredict(b *testing.B) {
	s := StepSpec{Config: model.BERT(4096, 64, 2, 0, 64), Method: model.Method{RMax: 8, Alpha: 8}, Classes: 8,
		Rank: 8, Spec: training.Spec{Batch: 64, Optimizer: training.SGD}, Sequence: 64}
	lay, err := s.Layout()
	if err != nil {
		b.Fatal(err)
	}
	p, err := NewPredictor(lay, testBase(b, s.Config), s.Sequence, nil)
	if err != nil {
		b.Fatal(err)
	}
	var rows [][]int32
	for i := range s.Batch {
		row := make([]int32, s.Sequence)
		for j := range row {
			row[j] = int32(1 + (i*31+j*17)%4095)
		}
		rows = append(rows, row)
	}
	adapter := slice(b, s)
	defer cputime.Benchmark(b)()
	for b.Loop() {
		if _, err := p.Predict(context.Background(), adapter, s.Rank, rows); err != nil {
			b.Fatal(err)
		}
	}
}
