//go:build !js || full

package edge

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/data/tokenizer/unigram"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/nn"
	"github.com/starling-fl/starling/quant"
)

// tinyT5 reads and writes a few words, and sees where they stand.
func tinyT5(t *testing.T) *model.Base {
	t.Helper()
	tok, err := unigram.Train(slices.Values([]string{"question: total  context: the shop total is 12.50", "the total of shop 7 is 9.00"}), 60, nil)
	ok(t, err)
	base, err := model.RandomBase(model.Config{
		ModelType: "t5", VocabSize: 60, HiddenSize: 16, NumHiddenLayers: 1, NumAttentionHeads: 2, IntermediateSize: 32,
		LayerNormEps: 1e-6, HiddenAct: "relu", T5: model.T5{DecoderLayers: 2, KeySize: 8, Buckets: 8, MaxDistance: 16, End: 1, Boxes: 101},
	}, 5, tok)
	ok(t, err)
	return base
}

// What a device writes at the end, by passes over all that is there, is what package nn
// writes by caches, which is held to transformers'; and its base's beside it.
func TestTrainedWrites(t *testing.T) {
	for _, x := range []struct {
		kind    model.TaskKind
		base    *model.Base
		example dataset.Example
		bad     dataset.Example
		answer  int // most tokens of one
	}{
		{model.TaskAnswer, tinyT5(t), dataset.Example{Question: "total", Words: []string{"shop", "total", "12.50"}, Boxes: [][4]uint16{{1, 1, 90, 20}, {1, 50, 80, 70}, {100, 50, 180, 70}}},
			dataset.Example{Question: "total", Words: []string{"shop"}, Boxes: [][4]uint16{{1, 1, 2000, 20}}}, 6},
		{model.TaskCausal, tiny.Decoder(t, 16, 24), dataset.Example{Text: "a fox"}, dataset.Example{Text: "a text that is longer than all there is room for"}, 0},
	} {
		layout, err := model.NewLayout(x.base.Config, model.Method{Task: x.kind, RMax: 2, Alpha: 2, Answer: x.answer}, 0)
		ok(t, err)
		values := model.NewAdapter(layout, 7).Slice(2)
		for i := range values {
			values[i] += 2 * float32(math.Sin(float64(i)))
		}
		packed, _, err := quant.PackUpdate(values, nil, "f32", "none")
		ok(t, err)
		pass := nn.ForwardSpec{Config: x.base.Config, Method: layout.Method, Rank: 2, Batch: 1, Sequence: 24}
		m := &Trained{Rank: 2, packed: packed, layout: layout, sequence: 24, work: DefaultPolicy().Work, program: compileWith(t, pass.Build, false), base: x.base}
		ok(t, m.open())
		want := func(values []float32) (string, float64) {
			t.Helper()
			if x.kind == model.TaskCausal {
				w, err := nn.NewWriter(layout, x.base, 24, nil)
				ok(t, err)
				text, err := w.Begin(values, 2)
				ok(t, err)
				defer text.Close()
				var ids []int32
				p, read := m.task.(task.Prompter), m.task.(task.Prompter).Prompt(x.example.Text)
				_, err = text.Write(t.Context(), read, 24-len(read), func(scores []float32) int32 { return int32(task.Best(scores)) },
					func(id int32) (bool, error) { ids = append(ids, id); return true, nil })
				ok(t, err)
				return p.Text(ids), 0
			}
			g, err := nn.NewGenerator(layout, x.base, 24, nil)
			ok(t, err)
			rows, err := task.ReadAll(m.task.(task.Reader), []dataset.Example{x.example})
			ok(t, err)
			out, err := g.Answers(t.Context(), values, 2, rows)
			ok(t, err)
			return m.task.(task.Writer).Text(out[0].Tokens), out[0].Probability
		}
		var texts []string
		for _, how := range []PredictOptions{{}, {Untrained: true}, {}} {
			grown := ""
			how.Written = func(text string) error { grown = text; return nil }
			said, err := m.Predict(t.Context(), &x.example, how)
			ok(t, err)
			adapter := values
			if how.Untrained {
				adapter = model.NewAdapter(layout, 0).Slice(2)
			}
			text, likely := want(adapter)
			if len(said) != 1 || said[0].Label != text || grown != said[0].Label || likely > 0 && math.Abs(said[0].Probability-likely) > 1e-5*likely {
				t.Errorf("%s, untrained %v: it says %v, grown to %q, package nn %q, %v", x.kind, how.Untrained, said, grown, text, likely)
			}
			texts = append(texts, text)
		}
		if texts[0] == texts[1] || texts[0] == "" {
			t.Errorf("%s: trained and untrained write %q", x.kind, texts)
		}
		enough := errors.New("enough")
		seen := 0
		if _, err := m.Predict(t.Context(), &x.example, PredictOptions{Written: func(string) error { seen++; return enough }}); !errors.Is(err, enough) || seen != 1 {
			t.Errorf("%s: told to stop it writes on: %v, %d tokens", x.kind, err, seen)
		}
		if said, err := m.Predict(t.Context(), &x.bad, PredictOptions{}); !errors.Is(err, ErrData) {
			t.Errorf("%s: of an example that does not fit it says %v, %v", x.kind, said, err)
		}
		// Work for two tokens ends a text behind them.
		m.work = m.loaded.bound(2)
		two := 0
		_, err = m.Predict(t.Context(), &x.example, PredictOptions{Written: func(string) error { two++; return nil }})
		ok(t, err)
		if two > 2 {
			t.Errorf("%s: with work for two tokens it writes %d", x.kind, two)
		}
		ok(t, m.Close())
	}
}
