package evaluate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/data/tokenizer/unigram"
	"github.com/starling-fl/starling/dp/audit/memorization"
	"github.com/starling-fl/starling/internal/testkit/nightly"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/answer"
	"github.com/starling-fl/starling/model/nn"
)

// eyes are two ways to look at pages: an encoder of them, and their patches as they are.
func eyes(wide int) map[string]model.T5 {
	page := model.ViT{ImageSize: model.Square(dataset.PageSideDrawn), PatchSize: model.Square(56), Channels: 3,
		Mean: [3]float64{1, 1, 1}, Std: [3]float64{0.25, 0.25, 0.25}}
	seen := page
	seen.BEiT = model.BEiT{NoKeyBias: true, Scaled: true}
	return map[string]model.T5{
		"encoder": {Boxes: 1001, Visual: model.Visual{HiddenSize: wide, NumHiddenLayers: 1, NumAttentionHeads: 2, IntermediateSize: 2 * wide,
			LayerNormEps: 1e-12, HiddenAct: "gelu", ViT: seen}},
		"patches": {Boxes: 1001, LinearBoxes: true, Patched: model.Patched{ViT: page}},
	}
}

// looking is a small untrained base with such eyes, over a vocabulary of the examples' words and answers.
func looking(t *testing.T, how string, examples []dataset.Example) *model.Base {
	t.Helper()
	texts := func(yield func(string) bool) {
		for _, e := range examples {
			if !yield("question: " + e.Question + " context: " + e.Text + " " + e.Answers[0]) {
				return
			}
		}
	}
	tok, err := unigram.Train(texts, 200, []string{"<pad>", "</s>", "<unk>"})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := tokenizer.Parse(tok)
	if err != nil {
		t.Fatal(err)
	}
	const wide = 32
	c := model.Config{ModelType: "t5", VocabSize: parsed.VocabSize(), HiddenSize: wide, NumHiddenLayers: 1, NumAttentionHeads: 2, IntermediateSize: 2 * wide,
		LayerNormEps: 1e-6, HiddenAct: "relu", T5: eyes(wide)[how]}
	of := &c.T5
	of.DecoderLayers, of.KeySize, of.Buckets, of.MaxDistance, of.End, of.Scaled = 1, 16, 8, 32, 1, true
	rng := rand.New(rand.NewPCG(1, 2))
	var tensors []model.Tensor
	for _, s := range c.BaseTensors() {
		v := make([]float32, model.Elements(s.Shape))
		std, mean := 1/math.Sqrt(float64(model.Elements(s.Shape[1:]))), 0.0
		switch {
		case len(s.Shape) == 1 && !strings.HasSuffix(s.Name, ".bias"):
			std, mean = 0, 1
		case len(s.Shape) == 1:
			std = 0
		}
		for i := range v {
			v[i] = float32(mean + std*rng.NormFloat64())
		}
		tensors = append(tensors, model.Tensor{Name: s.Name, Shape: s.Shape, Data: v})
	}
	b, err := model.NewBase(c, tensors, tok, model.F32)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// blanked are examples whose pages have lost what is in a part of them, and are white there.
func blanked(t *testing.T, examples []dataset.Example, top, bottom int) []dataset.Example {
	t.Helper()
	out := slices.Clone(examples)
	for i := range out {
		m, err := out[i].Image.Decoded()
		if err != nil {
			t.Fatal(err)
		}
		m = &dataset.Image{Width: m.Width, Height: m.Height, Channels: m.Channels, Pixels: slices.Clone(m.Pixels)}
		for c := range m.Channels {
			plane := m.Pixels[c*m.Width*m.Height:]
			for k := top * m.Width; k < bottom*m.Width; k++ {
				plane[k] = 1
			}
		}
		out[i].Image = m
	}
	return out
}

// answersANLS asks the questions of examples, and holds what is answered against others' answers.
func answersANLS(t *testing.T, r *answer.Responder, v []float32, examples, right []dataset.Example) float64 {
	t.Helper()
	replies, err := r.Answer(t.Context(), v, 0, examples)
	if err != nil {
		t.Fatal(err)
	}
	var truths [][]string
	for _, e := range right {
		truths = append(truths, e.Answers)
	}
	return ScoreReplies(replies, truths).ANLS
}

// learnt answers questions as a base does that was trained on examples, whole; with its values.
func learnt(t *testing.T, base *model.Base, train []dataset.Example) (*answer.Responder, []float32) {
	t.Helper()
	const batch, sequence = 8, 12
	s := nn.StepSpec{Config: base.Config, Method: model.Method{RMax: 1, Alpha: 1, Kind: model.MethodFull, Task: model.TaskAnswer, Answer: 16},
		Spec: training.Spec{Batch: batch, Optimizer: training.AdamW}, Sequence: sequence}
	lay, err := s.Layout()
	if err != nil {
		t.Fatal(err)
	}
	k, err := task.New(base, lay, sequence)
	if err != nil {
		t.Fatal(err)
	}
	var batches []task.Batch
	for from := 0; from+batch <= len(train); from += batch {
		b, err := task.EncodeAll(k, train[from:from+batch])
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, b)
	}
	trainer, err := nn.NewTrainer(s, base)
	if err != nil {
		t.Fatal(err)
	}
	v := model.NewAdapter(lay, 1).Slice(0)
	delta, losses, err := trainer.Train(t.Context(), v, slices.Repeat(batches, 200/len(batches)), 0.005)
	if err != nil {
		t.Fatal(err)
	}
	for i := range v {
		v[i] += delta[i]
	}
	t.Logf("%d to learn from, loss %v to %v", len(train), losses[0], losses[len(losses)-1])
	r, err := answer.New(nil, base, lay, sequence)
	if err != nil {
		t.Fatal(err)
	}
	return r, v
}

// Where a document's text is hidden its sender's logo alone tells whose it is: answers are right for as long as it is seen,
// and where another sender's is put in its place they are that one's.
func TestLogosTellWhoseDocumentsAre(t *testing.T) {
	set, err := dataset.Documents(dataset.DocumentConfig{Seed: 4, Split: "train", Clients: 1, PerClient: 240, Providers: 3, Pages: true, Unnamed: true})
	if err != nil {
		t.Fatal(err)
	}
	var asked []dataset.Example
	for _, e := range set.Examples {
		if e.Key == "sender" {
			e.Question, e.Text, e.Words, e.Boxes = "who", "page", []string{"page"}, [][4]uint16{{0, 0, 1000, 1000}}
			asked = append(asked, e)
		}
	}
	if len(asked) < 32 {
		t.Fatalf("%d questions for a sender", len(asked))
	}
	const logo, height = 4 * 7, dataset.PageSideDrawn // rows of a page's
	asked = blanked(t, asked, logo, height)
	test, train := asked[:8], asked[8:]
	swapped, truths := slices.Clone(test), slices.Clone(test)
	for i := range test {
		at := slices.IndexFunc(test, func(e dataset.Example) bool { return e.Provider != test[i].Provider })
		swapped[i].Image, truths[i].Answers = test[at].Image, test[at].Answers
	}
	for how := range eyes(0) {
		t.Run(how, func(t *testing.T) {
			if how != "encoder" {
				nightly.Only(t, "by day the published way is played")
			}
			base := looking(t, how, asked)
			r, v := learnt(t, base, train)
			anls := func(examples, right []dataset.Example) float64 { return answersANLS(t, r, v, examples, right) }
			seen, hidden, other := anls(test, test), anls(blanked(t, test, 0, logo), test), anls(swapped, truths)
			t.Logf("ANLS %.2f, without logos %.2f, of others' logos %.2f", seen, hidden, other)
			if seen < 0.9 || hidden > seen-0.3 || other < 0.9 {
				t.Errorf("ANLS is %.2f, without logos %.2f, by the others' logos %.2f", seen, hidden, other)
			}
		})
	}
}

// Where a page's picture alone has the answer, an audit of memorization leaves nothing of it: what was removed from the words is
// blurred there.
func TestRemovedAnswersAreNotSeen(t *testing.T) {
	set, err := dataset.Documents(dataset.DocumentConfig{Seed: 4, Split: "train", Clients: 1, PerClient: 64, Providers: 3, Pages: true, Asked: map[string]int{"sender": 1}})
	if err != nil {
		t.Fatal(err)
	}
	asked := set.Examples
	for i := range asked {
		asked[i].Question = "who"
	}
	hide := func(examples []dataset.Example) []dataset.Example { // words, and all of a page below its head, which has name and logo
		out := blanked(t, examples, 28, dataset.PageSideDrawn)
		for i := range out {
			m, left := out[i].Image, asked[i].Boxes[0][0] < 240
			for at := range m.Pixels {
				if x := at % m.Width; left == (x >= 160) && (left || x < 64) { // the logo
					m.Pixels[at] = 1
				}
			}
			out[i].Text, out[i].Words, out[i].Boxes = "page", []string{"page"}, [][4]uint16{{0, 0, 1000, 1000}}
		}
		return out
	}
	redacted := slices.Clone(asked)
	for i, e := range asked {
		found, left := false, false
		if redacted[i], found, left = memorization.Redact(e, e.Answers); !found || !left {
			t.Fatalf("%q of %q: found %v, left %v", e.Answers, e.Text, found, left)
		}
	}
	seen, removed := hide(asked), hide(redacted)
	base := looking(t, "encoder", seen)
	r, v := learnt(t, base, seen[8:])
	before, after := answersANLS(t, r, v, seen[:8], seen[:8]), answersANLS(t, r, v, removed[:8], removed[:8])
	t.Logf("ANLS %.2f, blurred %.2f", before, after)
	if before < 0.9 || after > before-0.3 {
		t.Errorf("ANLS is %.2f, and %.2f of pages that are blurred where the answer was", before, after)
	}
}
