package nn

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/internal/leaf/cputime"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm"
	"github.com/starling-fl/starling/wasm/compiler"
)

// readJSON reads a file that lab/bench/interop/ctc.py wrote.
func readJSON(t *testing.T, into any, path ...string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"testdata", "ctc"}, path...)...))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ctcCase is a batch with PyTorch's losses and their gradient, both in float64.
type ctcCase struct {
	Frames, Characters, Blank int
	Lengths                   []int
	Texts                     [][]int
	Scores, Losses, Gradient  []float64
}

// run is what ctc makes of the batch, whose texts have room for labels more than they need.
func (c ctcCase) run(t *testing.T, be compute.Backend, room int) (losses, gradient []float32) {
	t.Helper()
	b, l := len(c.Texts), room
	for _, text := range c.Texts {
		l = max(l, len(text)+room)
	}
	p, err := Compile(be, "ctc", func(g *graph.Graph) ([]Param, []Output, error) {
		p := newParams(g)
		scores := p.add("scores", Input, dtypes.Float32, b, c.Frames, c.Characters)
		labels := p.add("labels", Input, dtypes.Int32, b, l)
		keep := p.add("keep", Input, dtypes.Float32, b, c.Frames)
		loss, gradient := elementary{}.ctc(scores, labels, keep, c.Blank)
		return p.list, []Output{{Name: "loss", Node: loss}, {Name: "gradient", Node: gradient}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	scores, labels, keep := make([]float32, len(c.Scores)), make([]int32, b*l), make([]float32, b*c.Frames)
	for i, x := range c.Scores {
		scores[i] = float32(x)
	}
	for i := range labels {
		labels[i] = int32(c.Blank)
	}
	for i, text := range c.Texts {
		for k, id := range text {
			labels[i*l+k] = int32(id)
		}
		for k := range c.Lengths[i] {
			keep[i*c.Frames+k] = 1
		}
	}
	var in []compute.Buffer
	for i, values := range []any{scores, labels, keep} {
		buffer, err := p.Buffer(p.Params[i], values)
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, buffer)
	}
	out, err := p.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	if losses, err = Floats(out[0], b); err != nil {
		t.Fatal(err)
	}
	if gradient, err = Floats(out[1], len(c.Scores)); err != nil {
		t.Fatal(err)
	}
	return losses, gradient
}

// The loss and its gradient are PyTorch's, on the Go backend and compiled, however much room
// there is for labels; and Spelling's loss, which evaluations report, is the same.
func TestCTCIsPyTorchs(t *testing.T) {
	var cases []ctcCase
	readJSON(t, &cases, "losses.json")
	if len(cases) != 5 {
		t.Fatalf("%d cases", len(cases))
	}
	for i, c := range cases {
		for name, be := range map[string]compute.Backend{"Go": nil, "compiled": compiler.New()} {
			for _, room := range []int{0, 3} {
				losses, gradient := c.run(t, be, room)
				for k, want := range c.Losses {
					if d := math.Abs(float64(losses[k]) - want); !(d <= 1e-5*math.Max(1, want)) {
						t.Errorf("case %d, %s, room %d: loss %d is %v, want %v", i, name, room, k, losses[k], want)
					}
				}
				for k, want := range c.Gradient {
					if d := math.Abs(float64(gradient[k]) - want); !(d <= 1e-5) {
						t.Errorf("case %d, %s, room %d: gradient %d is %v, want %v", i, name, room, k, gradient[k], want)
						break
					}
				}
			}
		}
		s := task.Spelling{Characters: c.Characters, Blank: c.Blank}
		for k, want := range c.Losses {
			scores := make([]float32, c.Lengths[k]*c.Characters)
			for j := range scores {
				scores[j] = float32(c.Scores[k*c.Frames*c.Characters+j])
			}
			if got := s.Loss(scores, c.Texts[k]); !(math.Abs(got-want) <= 1e-9*math.Max(1, want)) {
				t.Errorf("case %d: Spelling's loss %d is %v, want %v", i, k, got, want)
			}
		}
	}
}

// What cannot be spelt, and a row that only fills a batch up, give numbers and not NaN: with a
// weight of 0 they are nothing.
func TestCTCOfNothing(t *testing.T) {
	c := ctcCase{Frames: 3, Characters: 4, Blank: 0, Lengths: []int{3, 0, 2}, Texts: [][]int{{1, 1, 1}, {}, {1, 2, 3}}, Scores: make([]float64, 3*3*4)}
	for name, be := range map[string]compute.Backend{"Go": nil, "compiled": compiler.New()} {
		losses, gradient := c.run(t, be, 0)
		if losses[0] < 1e20 || losses[1] != 0 || losses[2] < 1e20 {
			t.Errorf("%s: losses %v", name, losses)
		}
		for i, x := range gradient {
			if math.IsNaN(float64(x)) || math.Abs(float64(x)) > 1 {
				t.Errorf("%s: gradient %d is %v", name, i, x)
			}
		}
	}
}

// ctcGolden is what lab/bench/interop/ctc.py wrote of one model.
type ctcGolden struct {
	Sounds            [][]float32
	Texts             []string
	Lengths           []int
	Logits            [][]float64
	Loss              float64
	Values, Gradients map[string][]float64

	base *model.Base
	rows task.Batch
}

func readCTC(t *testing.T, name string) (g ctcGolden, adapter *model.Adapter) {
	t.Helper()
	readJSON(t, &g, name, "expected.json")
	dir := filepath.Join("testdata", "ctc", name)
	var err error
	if g.base, err = model.LoadBaseDir(dir); err != nil {
		t.Fatal(err)
	}
	head, err := model.LoadHead(os.DirFS(dir), g.base.Config, model.TaskTranscribe)
	if err != nil || len(head) != 2 {
		t.Fatal(len(head), err)
	}
	if adapter, err = model.HeadAdapter(g.base.Config, model.TaskTranscribe, 0, head); err != nil {
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
		examples = append(examples, dataset.Example{Text: g.Texts[i], Recording: r})
	}
	if g.rows, err = task.EncodeAll(k, examples); err != nil {
		t.Fatal(err)
	}
	return g, adapter
}

var ctcModels = []string{"hubert", "hubert-deep", "wav2vec2", "wav2vec2-odd"}

// A ForCTC that transformers has saved gives transformers' scores, on the Go backend and as a
// compiled program, and says nothing behind a recording's own frames.
func TestCTCLogitsMatchTransformers(t *testing.T) {
	for _, name := range ctcModels {
		g, adapter := readCTC(t, name)
		l := adapter.Layout()
		plain, err := NewPredictor(l, g.base, speechFrames, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		compiled, err := NewPredictor(l, g.base, speechFrames, compiler.New())
		if err != nil {
			t.Fatal(name, err)
		}
		for backend, p := range map[string]*Predictor{"Go": plain, "compiled": compiled} {
			got, err := p.Outputs(t.Context(), adapter.Slice(1), 1, g.rows, len(g.Sounds))
			if err != nil {
				t.Fatal(name, err)
			}
			for i := range got {
				own := g.Lengths[i] * l.Outputs()
				if n := len(g.Logits[i]); n != own {
					t.Fatalf("%s: %d scores of recording %d, want %d", name, n, i, own)
				}
				for at := own; at < len(got[i]); at += l.Outputs() {
					if best := task.Best(got[i][at : at+l.Outputs()]); best != l.Config.PadTokenID {
						t.Errorf("%s, %s: behind recording %d stands character %d", name, backend, i, best)
					}
				}
				got[i] = got[i][:own]
			}
			sameLogits(t, name+", "+backend, got, g.Logits)
		}
	}
}

// One step of plain descent moves LoRA and the head as PEFT's gradients do.
func TestCTCGradientsMatchPEFT(t *testing.T) {
	for _, name := range ctcModels {
		g, _ := readCTC(t, name)
		s := StepSpec{Config: g.base.Config, Method: model.Method{RMax: 2, Alpha: 3, Task: model.TaskTranscribe}, Rank: 2,
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
		for backend, be := range map[string]compute.Backend{"Go": nil, "compiled": compiler.New()} {
			tr, err := NewTrainerOn(be, s, g.base, map[string]compute.Buffer{})
			if err != nil {
				t.Fatal(name, err)
			}
			const rate = 1
			delta, losses, err := tr.Train(t.Context(), v, []task.Batch{g.rows}, rate)
			if err != nil {
				t.Fatal(name, err)
			}
			if d := math.Abs(float64(losses[0]) - g.Loss); !(d <= 1e-5*math.Max(1, g.Loss)) {
				t.Errorf("%s, %s: loss %v, want %v", name, backend, losses[0], g.Loss)
			}
			for _, span := range lay.Spans(2) {
				size := 0.0
				for _, x := range g.Gradients[span.Name] {
					size = math.Max(size, math.Abs(x))
				}
				for i, x := range g.Gradients[span.Name] {
					if d := math.Abs(float64(delta[span.Offset+i]) + rate*x); !(d <= 1e-4*math.Max(size, 1e-2)) {
						t.Errorf("%s, %s: %s: gradient %d is %v, want %v", name, backend, span.Name, i, -delta[span.Offset+i]/rate, x)
						break
					}
				}
			}
		}
	}
}

// BenchmarkCTC times loss and gradient of a batch of eight in a compiled program, and counts the
// segments and bytes that its written-out recursion takes.
func BenchmarkCTC(b *testing.B) {
	for _, c := range []struct{ frames, labels int }{{50, 20}, {150, 30}, {300, 60}, {1500, 300}} {
		b.Run(fmt.Sprintf("%d frames, %d characters", c.frames, c.labels), func(b *testing.B) {
			const batch, characters = 8, 32
			code, err := compiler.Compile(func(g *graph.Graph) []*graph.Node {
				p := newParams(g)
				loss, gradient := elementary{}.ctc(p.add("logits", Input, dtypes.Float32, batch, c.frames, characters),
					p.add("labels", Input, dtypes.Int32, batch, c.labels), p.add("keep", Input, dtypes.Float32, batch, c.frames), 0)
				return []*graph.Node{loss, gradient}
			}, compiler.Spec{Name: "ctc", Host: compiler.HostWazero, Outputs: []compiler.Output{{Name: "loss"}, {Name: "gradient"}}})
			if err != nil {
				b.Fatal(err)
			}
			p, err := wasm.Load(b.Context(), code, wasm.Config{})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			in, err := p.NewInstance(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			logits, labels, keep := make([]float32, batch*c.frames*characters), make([]int32, batch*c.labels), make([]float32, batch*c.frames)
			for i := range logits {
				logits[i] = float32(math.Sin(float64(i)))
			}
			for i := range labels {
				labels[i] = int32(1 + i*7%(characters-1))
			}
			for i := range keep {
				keep[i] = 1
			}
			if err := errors.Join(in.WriteFloat32("logits", logits), in.WriteInt32("labels", labels), in.WriteFloat32("keep", keep)); err != nil {
				b.Fatal(err)
			}
			stop := cputime.Benchmark(b)
			for b.Loop() {
				if err := in.Step(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			stop()
			b.ReportMetric(float64(len(p.Manifest().Segments)), "segments")
			b.ReportMetric(float64(len(code)), "B/program")
		})
	}
}
