package task

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/data/tokenizer/unigram"
	"github.com/starling-fl/starling/model"
)

func documents(t *testing.T, boxes, sequence, tokens int) (tokenizer.Tokenizer, *model.Layout, []dataset.Example) {
	t.Helper()
	set, err := dataset.Documents(dataset.DocumentConfig{Seed: 1, Split: "train", Clients: 10, PerClient: 10})
	if err != nil {
		t.Fatal(err)
	}
	js, err := unigram.Train(func(yield func(string) bool) {
		for _, e := range set.Examples {
			if !yield("question: continue: context: fill in: " + e.Question + " " + e.Text) {
				return
			}
		}
	}, 1200, MixtureTokens(0))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(js)
	if err != nil {
		t.Fatal(err)
	}
	c := model.Config{ModelType: "t5", VocabSize: tok.VocabSize(), HiddenSize: 8, NumHiddenLayers: 1, NumAttentionHeads: 1, IntermediateSize: 8,
		LayerNormEps: 1e-6, HiddenAct: "relu", T5: model.T5{DecoderLayers: 1, KeySize: 8, Buckets: 8, MaxDistance: 16, End: 1, Boxes: boxes}}
	l, err := model.NewLayout(c, model.Method{RMax: 1, Alpha: 1, Task: model.TaskAnswer, Answer: tokens}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return tok, l, set.Examples
}

func TestAnswerEncodes(t *testing.T) {
	tok, l, all := documents(t, 1001, 100, 12)
	columns, err := Columns(l, 100)
	if err != nil {
		t.Fatal(err)
	}
	a := newAnswer(columns, tok, l, 100)
	b := NewBatch(columns, 2)
	e := all[0]
	if err := a.Encode(&e, b, 1); err != nil {
		t.Fatal(err)
	}
	for _, v := range b {
		if err := v.Check(2); err != nil {
			t.Error(err)
		}
	}
	tokens, boxes := b.Int32(Tokens)[100:], b.Int32(Boxes)[400:]
	end := slices.Index(tokens, 1)
	if text := tok.Decode(tokens[:end]); text != "question: "+e.Question+" context: "+e.Text {
		t.Errorf("the encoder reads %q", text)
	}
	if !slices.Equal(boxes[:4], []int32{0, 0, 1000, 1000}) || slices.Max(boxes[4*end:]) != 0 || slices.Max(tokens[end+1:]) != 0 {
		t.Error("prompt, end or padding have other boxes than the whole page and none")
	}
	last := e.Boxes[len(e.Boxes)-1]
	if got := boxes[4*end-4 : 4*end]; !slices.Equal(got, []int32{int32(last[0]), int32(last[1]), int32(last[2]), int32(last[3])}) {
		t.Errorf("the last word's box is %v, want %v", got, last)
	}
	labels, decoder, weights := b.Int32(Labels)[12:], b.Int32(DecoderTokens)[12:], b.Float32(Weights)[12:]
	n := slices.Index(labels, 1)
	if tok.Decode(labels[:n]) != e.Answers[0] || decoder[0] != 0 || !slices.Equal(decoder[1:n+1], labels[:n]) {
		t.Errorf("labels %v, decoder %v", labels, decoder)
	}
	for i, w := range weights {
		if (w == 1) != (i <= n) {
			t.Errorf("weights %v of %d tokens", weights, n)
		}
	}
	for name, bad := range map[string]dataset.Example{
		"no answer": {Text: "a", Question: "b"}, "boxes": {Words: []string{"a"}, Boxes: make([][4]uint16, 2), Answers: []string{"a"}},
		"reaches": {Words: []string{"a"}, Boxes: [][4]uint16{{0, 0, 2000, 1}}, Answers: []string{"a"}},
	} {
		if err := a.Encode(&bad, b, 0); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := dataset.Example{Text: strings.Repeat("invoice ", 500), Question: "what?", Answers: []string{strings.Repeat("total ", 50)}}
	if err := a.Encode(&long, b, 0); err != nil || b.Int32(Tokens)[99] != 1 || b.Int32(Labels)[11] != 1 {
		t.Errorf("what is cut has no end: %v", err)
	}
}

// Coordinates are brought to the rows of a base that has fewer.
func TestBoxesFitTheBase(t *testing.T) {
	tok, l, all := documents(t, 101, 60, 8)
	columns, err := Columns(l, 60)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(columns, len(all))
	a := newAnswer(columns, tok, l, 60)
	for i := range all {
		if err := a.Encode(&all[i], b, i); err != nil {
			t.Fatal(err)
		}
	}
	v, _ := b.Column(Boxes)
	if err := v.Check(len(all)); err != nil || slices.Max(v.I32) != 100 {
		t.Errorf("%v, largest %d", err, slices.Max(v.I32))
	}
}

func TestMixture(t *testing.T) {
	tok, l, all := documents(t, 1001, 110, 20)
	m, err := NewMixture(l, tok, 110)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(m.Columns(), 1)
	kinds := map[string]int{}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 3000 {
		e := all[i%len(all)]
		done := float64(i) / 3000
		if err := m.Draw(rng, done, &e, b, 0); err != nil {
			t.Fatal(err)
		}
		for _, v := range b {
			if err := v.Check(1); err != nil {
				t.Fatal(err)
			}
		}
		tokens, labels := b.Int32(Tokens), b.Int32(Labels)
		end := slices.Index(labels, 1)
		if end < 0 {
			t.Fatalf("what is written has no end: %v", labels)
		}
		read, written := tok.Decode(tokens[:slices.Index(tokens, 1)]), tok.Decode(labels[:end])
		kind := strings.SplitAfter(read, ":")[0]
		kinds[kind]++
		switch kind {
		case "continue:":
			prompt := len(tok.Encode("continue: "))
			document := tok.Encode(e.Words[0])
			for _, w := range e.Words[1:] {
				document = append(document, tok.Encode(w)...)
			}
			if !follows(document, append(slices.Clone(tokens[prompt:prompt+2]), labels[:end]...)) {
				t.Errorf("%q goes on as %q", read, written)
			}
		case "question:":
			if done < 0.5 {
				t.Errorf("a question at %v", done)
			}
			if written != e.Answers[0] {
				t.Errorf("%q is answered %q", read, written)
			}
		case "fill in:":
			kinds[tok.Piece(labels[0])]++
		}
	}
	for _, kind := range []string{"question:", "continue:", "fill in:", "<text_0>", "<layout_0>", "<text_layout_0>"} {
		if kinds[kind] < 30 {
			t.Errorf("%d of kind %s: %v", kinds[kind], kind, kinds)
		}
	}
	if _, err := NewMixture(l, plainTokenizer{tok}, 110); err == nil {
		t.Error("a tokenizer without the special tokens")
	}
}

// follows reports whether a run of ids is in a document.
func follows(document, run []int32) bool {
	for i := range document {
		if i+len(run) <= len(document) && slices.Equal(document[i:i+len(run)], run) {
			return true
		}
	}
	return false
}

// plainTokenizer lacks the last pieces.
type plainTokenizer struct{ tokenizer.Tokenizer }

func (plainTokenizer) VocabSize() int { return 300 }
