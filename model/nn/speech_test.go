package nn

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/compiler"
)

// speechGolden is what lab/bench/interop/speech.py wrote of one model.
type speechGolden struct {
	Sounds            [][]float32
	Logits            [][]float64
	Loss              float64
	Values, Gradients map[string][]float64

	dir  string
	base *model.Base
	rows task.Batch
}

const (
	speechFrames = 11
	speechRate   = 8000
)

func readSpeech(t *testing.T, name string) (g speechGolden, adapter *model.Adapter) {
	t.Helper()
	g.dir = filepath.Join("testdata", "speech", name)
	data, err := os.ReadFile(filepath.Join(g.dir, "expected.json"))
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	if g.base, err = model.LoadBaseDir(g.dir); err != nil {
		t.Fatal(err)
	}
	head, err := model.LoadHead(os.DirFS(g.dir), g.base.Config, model.TaskListen)
	if err != nil {
		t.Fatal(err)
	}
	if adapter, err = model.HeadAdapter(g.base.Config, model.TaskListen, 3, head); err != nil {
		t.Fatal(err)
	}
	k, err := task.New(g.base, adapter.Layout(), speechFrames)
	if err != nil {
		t.Fatal(err)
	}
	var examples []dataset.Example
	for i, s := range g.Sounds {
		r, err := dataset.Recorded(&audio.Sound{Rate: speechRate, Samples: s})
		if err != nil {
			t.Fatal(err)
		}
		examples = append(examples, dataset.Example{Label: i, Recording: r})
	}
	if g.rows, err = task.EncodeAll(k, examples); err != nil {
		t.Fatal(err)
	}
	return g, adapter
}

var speechModels = []string{"distilhubert", "hubert-deep", "hubert-odd", "wav2vec2", "wav2vec2-deep", "wav2vec2-odd"}

// An encoder of recordings that transformers has saved gives transformers' logits, on the
// Go backend and as a compiled program, padded recordings included.
func TestSpeechLogitsMatchTransformers(t *testing.T) {
	for _, name := range speechModels {
		g, adapter := readSpeech(t, name)
		plain, err := NewPredictor(adapter.Layout(), g.base, speechFrames, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		compiled, err := NewPredictor(adapter.Layout(), g.base, speechFrames, compiler.New())
		if err != nil {
			t.Fatal(name, err)
		}
		for backend, p := range map[string]*Predictor{"Go": plain, "compiled": compiled} {
			got, err := p.Outputs(t.Context(), adapter.Slice(1), 1, g.rows, len(g.Sounds))
			if err != nil {
				t.Fatal(name, err)
			}
			sameLogits(t, name+", "+backend, got, g.Logits)
		}
	}
}

// One step of plain descent moves LoRA and the head as PEFT's gradients do.
func TestSpeechGradientsMatchPEFT(t *testing.T) {
	for _, name := range speechModels {
		g, _ := readSpeech(t, name)
		s := StepSpec{Config: g.base.Config, Method: model.Method{RMax: 2, Alpha: 3, Task: model.TaskListen}, Classes: 3, Rank: 2,
			Spec: training.Spec{Batch: len(g.Sounds), Optimizer: training.SGD}, Sequence: speechFrames}
		lay, err := s.Layout()
		if err != nil {
			t.Fatal(err)
		}
		v := make([]float32, lay.Size(2))
		for _, span := range lay.Spans(2) {
			if len(g.Values[span.Name]) != span.Len {
				t.Fatalf("%s: %s has %d values, want %d", name, span.Name, len(g.Values[span.Name]), span.Len)
			}
			for i, x := range g.Values[span.Name] {
				v[span.Offset+i] = float32(x)
			}
		}
		tr, err := NewTrainer(s, g.base)
		if err != nil {
			t.Fatal(name, err)
		}
		const rate = 1
		delta, losses, err := tr.Train(t.Context(), v, []task.Batch{g.rows}, rate)
		if err != nil {
			t.Fatal(name, err)
		}
		if d := math.Abs(float64(losses[0]) - g.Loss); d > 1e-5 {
			t.Errorf("%s: loss %v, want %v", name, losses[0], g.Loss)
		}
		for _, span := range lay.Spans(2) {
			size := 0.0
			for _, x := range g.Gradients[span.Name] {
				size = math.Max(size, math.Abs(x))
			}
			for i, x := range g.Gradients[span.Name] {
				if d := math.Abs(float64(delta[span.Offset+i]) + rate*x); d > 1e-4*math.Max(size, 1e-2) {
					t.Errorf("%s: %s: gradient %d is %v, want %v", name, span.Name, i, -delta[span.Offset+i]/rate, x)
					break
				}
			}
		}
	}
}
