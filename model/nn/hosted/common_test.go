package hosted

import (
	"strings"
	"testing"

	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/trainer"
)

// randomTensors fills a configuration's tensors as an untrained encoder has
// them; scale widens matrices so that attention is not flat.
func randomTensors(c model.Config, seed uint64, scale float32) []model.Tensor {
	var ts []model.Tensor
	state := seed
	next := func() float32 { // uniform in -1..1
		state = state*6364136223846793005 + 1442695040888963407
		return float32(int64(state>>40)-1<<23) / (1 << 23)
	}
	for _, s := range c.BaseTensors() {
		d := make([]float32, model.Elements(s.Shape))
		for i := range d {
			switch {
			case len(s.Shape) == 2:
				d[i] = scale * next()
			case strings.HasSuffix(s.Name, "weight"):
				d[i] = 1 + 0.1*next()
			default:
				d[i] = 0.1 * next()
			}
		}
		ts = append(ts, model.Tensor{Name: s.Name, Shape: s.Shape, Data: d})
	}
	return ts
}

func testBase(t testing.TB, c model.Config) *model.Base {
	t.Helper()
	b, err := model.NewBase(c, randomTensors(c, 5, 0.3), []byte("{}"), model.F32)
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
