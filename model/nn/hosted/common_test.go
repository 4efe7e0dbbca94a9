package hosted

import (
	"testing"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/leaf/untrained"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/model/trainer"
)

func testBase(t testing.TB, c model.Config) *model.Base {
	t.Helper()
	b, err := model.NewBase(c, untrained.Tensors(c, 5, 0.3), []byte("{}"), model.F32)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func testSpec(rank int) nn.StepSpec {
	return nn.StepSpec{Config: model.BERT(40, 16, 2, 2, 12), Method: model.Method{RMax: 4, Alpha: 4}, Classes: 3,
		Rank: rank, Spec: training.Spec{Batch: 4, Optimizer: training.SGD}, Sequence: 12}
}

// emptyBatch is a batch of a step without weight.
func emptyBatch(s nn.StepSpec) trainer.Batch {
	lay, err := s.Layout()
	if err != nil {
		panic(err)
	}
	columns, err := task.Columns(lay, s.Sequence)
	if err != nil {
		panic(err)
	}
	return task.NewBatch(columns, s.Batch)
}

// testBatches makes rows in which the class is the token that follows the
// first one, of different lengths.
func testBatches(s nn.StepSpec, n int) []trainer.Batch {
	var out []trainer.Batch
	for i := range n {
		b := emptyBatch(s)
		for r := range s.Batch {
			class := (i + r*2) % s.Classes
			row := b.Int32(task.Tokens)[r*s.Sequence:]
			row[0], row[1] = 2, int32(10+class)
			for k := 2; k < s.Sequence-r; k++ {
				row[k] = int32(20 + (i*7+r*5+k*3)%20)
			}
			b.Int32(task.Labels)[r], b.Float32(task.Weights)[r] = int32(class), 1
		}
		out = append(out, b)
	}
	return out
}

func slice(t testing.TB, s nn.StepSpec) []float32 {
	t.Helper()
	l, err := s.Layout()
	if err != nil {
		t.Fatal(err)
	}
	return model.NewAdapter(l, 11).Slice(s.Rank)
}
