package nn

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/wasm/compiler"
)

// t5Golden is a T5 that transformers has saved, with what it says.
type t5Golden struct {
	Tokens, Decoder [][]int32
	Logits          [][]float64
	Answers         [][]int32
	Confidence      []float64
}

func loadT5(t *testing.T) (*model.Base, *model.Layout, t5Golden) {
	t.Helper()
	dir := filepath.Join("testdata", "t5")
	base, err := model.LoadBaseDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var want t5Golden
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err == nil {
		err = json.Unmarshal(data, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	lay, err := model.NewLayout(base.Config, model.Method{RMax: 2, Alpha: 2, Task: model.TaskAnswer}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return base, lay, want
}

func t5Batch(t *testing.T, lay *model.Layout, tokens, decoder [][]int32) task.Batch {
	t.Helper()
	columns, err := task.Columns(lay, len(tokens[0]))
	if err != nil {
		t.Fatal(err)
	}
	b := task.NewBatch(columns, len(tokens))
	for i, row := range tokens {
		copy(b.Int32(task.Tokens)[i*len(row):], row)
	}
	for i, row := range decoder {
		copy(b.Int32(task.DecoderTokens)[i*len(row):], row)
	}
	return b
}

// On the Go backend and as compiled programs.
func TestT5MatchesTransformers(t *testing.T) {
	base, lay, want := loadT5(t)
	in := t5Batch(t, lay, want.Tokens, want.Decoder)
	for name, be := range map[string]compute.Backend{"Go": nil, "compiled": compiler.New()} {
		g, err := NewGenerator(lay, base, len(want.Tokens[0]), be)
		if err != nil {
			t.Fatal(err)
		}
		for _, rank := range []int{0, 2} { // LoRA's product is zero
			adapter := model.NewAdapter(lay, 1).Slice(rank)
			logits, err := g.Logits(t.Context(), adapter, rank, in)
			if err != nil {
				t.Fatal(err)
			}
			sameLogits(t, fmt.Sprintf("%s, rank %d", name, rank), logits, want.Logits)
			answers, err := g.Answers(t.Context(), adapter, rank, in)
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range answers {
				if !slices.Equal(a.Tokens, want.Answers[i]) {
					t.Errorf("%s, rank %d: answer %d is %v, want %v", name, rank, i, a.Tokens, want.Answers[i])
				}
				if d := math.Abs(a.Probability/want.Confidence[i] - 1); !(d < 1e-3) {
					t.Errorf("%s, rank %d: answer %d has the confidence %v, want %v", name, rank, i, a.Probability, want.Confidence[i])
				}
			}
		}
	}
}

// An answer ends before its end token, whose probability does not count, whatever the
// others of its batch still write; and more documents than a batch are answered alike.
func TestAnswersEnd(t *testing.T) {
	base, lay, want := loadT5(t)
	ended := *base
	ended.Config.T5.End = int(want.Answers[0][9])
	if slices.Index(want.Answers[0], want.Answers[0][9]) != 9 {
		t.Fatal("the golden's first answer has its tenth token before")
	}
	lay, err := model.NewLayout(ended.Config, lay.Method, 0)
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGenerator(lay, &ended, len(want.Tokens[0]), nil)
	if err != nil {
		t.Fatal(err)
	}
	var tokens [][]int32
	for i := range 2*generateBatch + 3 {
		tokens = append(tokens, want.Tokens[i%len(want.Tokens)])
	}
	adapter := model.NewAdapter(lay, 1).Slice(0)
	answers, err := g.Answers(t.Context(), adapter, 0, t5Batch(t, lay, tokens, nil))
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		whole := want.Answers[i%len(want.Answers)]
		end := slices.Index(whole, int32(ended.Config.T5.End))
		if end < 0 {
			end = len(whole)
		}
		if !slices.Equal(a.Tokens, whole[:end]) {
			t.Errorf("answer %d is %v, want %v", i, a.Tokens, whole[:end])
		}
		if a.Probability < (1-1e-3)*want.Confidence[i%len(want.Answers)] || a.Probability > 1 {
			t.Errorf("answer %d: confidence %v of %d tokens", i, a.Probability, end)
		}
	}
	if len(answers[0].Tokens) == len(want.Answers[0]) {
		t.Error("no answer ended")
	}
}

// What training changes is what answers come from: the loss at the changed values is
// that of the logits there, whatever the method.
func TestT5AnswersFollowTraining(t *testing.T) {
	base, _, want := loadT5(t)
	answers := [][]int32{{7, 9, 1}, {30, 12, 5, 1}}
	for _, m := range []struct {
		method model.Method
		rank   int
		learnt float32 // the loss is below it: of full fine-tuning so low that the answers are known by heart
	}{
		{model.Method{RMax: 1, Alpha: 1, Kind: model.MethodFull, Task: model.TaskAnswer, Answer: 4}, 0, 0.1},
		{model.Method{RMax: 4, Alpha: 8, Task: model.TaskAnswer, Answer: 4, Targets: "q,v,o,wi_1", Also: "layer_norm,relative_attention_bias,shared"}, 3, 1},
	} {
		s := StepSpec{Config: base.Config, Method: m.method, Rank: m.rank, Spec: training.Spec{Batch: 2, Optimizer: training.AdamW}, Sequence: len(want.Tokens[0])}
		lay, err := s.Layout()
		if err != nil {
			t.Fatal(err)
		}
		tr, err := NewTrainer(s, base)
		if err != nil {
			t.Fatal(err)
		}
		b := t5Batch(t, lay, want.Tokens[:2], [][]int32{{0, 7, 9, 0}, {0, 30, 12, 5}})
		for i, row := range answers {
			for j, id := range row {
				b.Int32(task.Labels)[4*i+j], b.Float32(task.Weights)[4*i+j] = id, 1
			}
		}
		v := model.NewAdapter(lay, 5).Slice(m.rank)
		delta, losses, err := tr.Train(t.Context(), v, slices.Repeat([]task.Batch{b}, 150), 0.02)
		if err != nil {
			t.Fatal(err)
		}
		for i := range v {
			v[i] += delta[i]
		}
		_, last, err := tr.Train(t.Context(), v, []task.Batch{b}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !(last[0] < m.learnt) {
			t.Fatalf("%+v: the loss went from %v to %v", m.method, losses[0], last[0])
		}
		g, err := NewGenerator(lay, base, s.Sequence, compiler.New())
		if err != nil {
			t.Fatal(err)
		}
		logits, err := g.Logits(t.Context(), v, m.rank, b)
		if err != nil {
			t.Fatal(err)
		}
		loss, n := 0.0, 0
		for i, row := range answers {
			for j, id := range row {
				scores := logits[i][j*base.Config.VocabSize : (j+1)*base.Config.VocabSize]
				sum := 0.0
				for _, x := range scores {
					sum += math.Exp(float64(x))
				}
				loss += math.Log(sum) - float64(scores[id])
				n++
			}
		}
		if d := math.Abs(loss/float64(n) - float64(last[0])); d > 1e-4 {
			t.Errorf("%+v: the logits have the loss %v, training %v", m.method, loss/float64(n), last[0])
		}
		got, err := g.Answers(t.Context(), v, m.rank, b)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range got {
			if row := answers[i]; m.learnt < 1 && !slices.Equal(a.Tokens, row[:len(row)-1]) {
				t.Errorf("%+v: answer %d is %v, want %v", m.method, i, a.Tokens, row)
			}
		}
	}
}

// No constant grows with the square of the sequence, and none with the vocabulary.
func TestT5ProgramStaysSmall(t *testing.T) {
	size := func(seq, vocab int) int {
		c := model.Config{ModelType: "t5", VocabSize: vocab, HiddenSize: 16, NumHiddenLayers: 1, NumAttentionHeads: 2, IntermediateSize: 16,
			LayerNormEps: 1e-6, HiddenAct: "relu", T5: model.T5{DecoderLayers: 1, KeySize: 8, Buckets: 32, MaxDistance: 128, End: 1, Scaled: true, Boxes: 1001}}
		s := StepSpec{Config: c, Method: model.Method{RMax: 1, Alpha: 1, Task: model.TaskAnswer, Answer: 16}, Rank: 1, Spec: training.Spec{Batch: 2, Optimizer: training.SGD}, Sequence: seq}
		var params []Param
		var outputs []Output
		g, err := compiler.Record(func(g *graph.Graph) []*graph.Node {
			var err error
			if params, outputs, err = s.Build(g); err != nil {
				panic(err)
			}
			var nodes []*graph.Node
			for _, o := range outputs {
				nodes = append(nodes, o.Node)
			}
			return nodes
		})
		if err != nil {
			t.Fatal(err)
		}
		spec := compiler.Spec{Name: "t5", Host: compiler.HostWazero}
		for _, p := range params {
			role := map[Role]compiler.Role{Input: compiler.Input, State: compiler.State, Frozen: compiler.Frozen}[p.Role]
			spec.Params = append(spec.Params, compiler.Param{Name: p.Name, Role: role})
		}
		for _, o := range outputs {
			spec.Outputs = append(spec.Outputs, compiler.Output{Name: o.Name, State: o.State})
		}
		code, err := compiler.CompileGraph(g, spec)
		if err != nil {
			t.Fatal(err)
		}
		return len(code)
	}
	short, long := size(64, 100), size(512, 20000)
	// The buckets of 2*512-1 distances are 4 bytes each; code for longer loops is a little longer, and more of them are
	// declared.
	if long > short+24<<10 {
		t.Errorf("the program has %d bytes at 64 tokens and %d at 512 tokens of 20,000", short, long)
	}
}

func TestGeneratorRefuses(t *testing.T) {
	base, lay, want := loadT5(t)
	if _, err := NewGenerator(lay, base, 0, nil); err == nil {
		t.Error("no tokens")
	}
	g, err := NewGenerator(lay, base, len(want.Tokens[0]), nil)
	if err != nil {
		t.Fatal(err)
	}
	in := t5Batch(t, lay, want.Tokens, want.Decoder)
	if _, err := g.Answers(t.Context(), nil, 0, in); err != nil { // rank 0 has no values
		t.Error(err)
	}
	if _, err := g.Answers(t.Context(), nil, 1, in); err == nil {
		t.Error("an adapter without values at rank 1")
	}
	in.Int32(task.Tokens)[5] = int32(base.Config.VocabSize)
	if _, err := g.Answers(t.Context(), nil, 0, in); err == nil {
		t.Error("a token outside of the vocabulary")
	}
	bert, err := model.LoadBaseDir(filepath.Join("testdata", "bert"))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := model.NewLayout(bert.Config, model.Method{RMax: 1, Alpha: 1}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewGenerator(plain, bert, 8, nil); err == nil {
		t.Error("a base without a decoder")
	}
}
