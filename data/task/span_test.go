package task

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

func spans(t *testing.T, also string, sequence int) *Span {
	t.Helper()
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	l, err := model.NewLayout(b.Config, model.Method{Task: model.TaskSpan, RMax: 1, Alpha: 1, Also: also, Answer: 6}, 0)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New(b, l, sequence)
	if err != nil {
		t.Fatal(err)
	}
	return k.(*Span)
}

// RoBERTa, and those that have its encoder under other names, read a pair with two
// separators between its texts, others with one.
func TestSpanSeparators(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	two := map[string]bool{"roberta": true, "xlm-roberta": true, "camembert": true}
	for _, kind := range model.ModelTypes() {
		c := model.BERT(b.Config.VocabSize, 8, 1, 1, 40)
		c.ModelType, c.Pooling, c.TypeVocabSize = kind, model.PoolNone, 0
		l, err := model.NewLayout(c, model.Method{Task: model.TaskSpan, RMax: 1, Alpha: 1}, 0)
		if err != nil { // one that reads no texts, or writes them
			if kind != "t5" && kind != "vit" && !c.Hears() && !c.Causal() {
				t.Error(err)
			}
			continue
		}
		k, err := New(&model.Base{Config: c, Tokenizer: b.Tokenizer}, l, 32)
		if err != nil {
			t.Fatal(err)
		}
		if s := k.(*Span); (len(s.between) == 2) != two[kind] || len(s.between) == 0 {
			t.Errorf("%s: %d separators", kind, len(s.between))
		}
	}
}

func receipt() dataset.Example {
	e := dataset.Example{Words: strings.Fields("Grand Hotel taxi Total:9.00 cash 9.00 thanks"), Question: "the total?", Answers: []string{"9.00"}}
	for i := range e.Words {
		e.Boxes = append(e.Boxes, [4]uint16{uint16(100 * i), 10, uint16(100*i + 90), 20})
	}
	return e
}

func TestSpanEncodes(t *testing.T) {
	s := spans(t, model.BoxEmbeddings, 48)
	e := receipt()
	parts, of, err := Rows(s, []dataset.Example{e})
	if err != nil || len(parts) != 1 || !slices.Equal(of, []int{0}) {
		t.Fatalf("%v, %v", parts, err)
	}
	rows, err := EncodeAll(s, parts)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rows {
		if err := c.Check(1); err != nil {
			t.Error(err)
		}
	}
	// The pair is what the tokenizer makes of both texts, framed.
	question := s.tok.EncodeFixed(e.Question, 48)
	q := len(s.tok.Encode(e.Question))
	if got := rows.Int32(Tokens)[:q+2]; !slices.Equal(got, question[:q+2]) {
		t.Errorf("question %v, want %v", got, question[:q+2])
	}
	in, err := s.pieces(&e)
	if err != nil {
		t.Fatal(err)
	}
	first := q + 2
	for i, p := range in {
		if at := first + i; rows.Int32(Tokens)[at] != p.id || !slices.Equal(rows.Int32(Boxes)[4*at:4*at+4],
			[]int32{int32(100 * p.word), 10, int32(100*p.word + 90), 20}) {
			t.Errorf("token %d: %v at %v", i, rows.Int32(Tokens)[at], rows.Int32(Boxes)[4*at:4*at+4])
		}
	}
	for i, kind := range rows.Int32(Types) {
		if want := i >= first && i <= first+len(in); (kind == 1) != want {
			t.Errorf("token %d is of type %d", i, kind)
		}
	}
	// Both places of the total are right, within "Total:9.00" too, and decoding the
	// labels gives it back without what stands around it.
	labels := rows.Float32(Labels)
	begins, ends := 0, 0
	for i := range 48 {
		begins, ends = begins+int(labels[2*i]), ends+int(labels[2*i+1])
	}
	if begins != 2 || ends != 2 || rows.Float32(Weights)[0] != 1 {
		t.Fatalf("%d begins and %d ends, weight %v", begins, ends, rows.Float32(Weights))
	}
	for which, word := range []int{3, 5} {
		logits := make([]float32, 96)
		for i, p := range in {
			for k := range 2 {
				if p.word == word && labels[2*(first+i)+k] == 1 {
					logits[2*(first+i)+k] = 20
				}
			}
		}
		if text, p, err := s.Best(&e, logits); err != nil || text != "9.00" || p < 0.99 {
			t.Errorf("place %d: %q, %v, %v", which, text, p, err)
		}
	}
	// No answer points at the first token, one that stands nowhere weighs nothing, and
	// reading needs none.
	none, lost := e, e
	none.Answers, lost.Answers = nil, []string{"12.50"}
	if rows, err = EncodeAll(s, []dataset.Example{none, lost}); err != nil {
		t.Fatal(err)
	}
	l := rows.Float32(Labels)
	if w := rows.Float32(Weights); l[0] != 1 || l[1] != 1 || slices.Max(l[2:96]) != 0 || slices.Max(l[96:]) != 0 || w[0] != 1 || w[1] != 0 {
		t.Errorf("weights %v, labels %v", w, l)
	}
	if _, err := ReadAll(s, []dataset.Example{none}); err != nil {
		t.Error(err)
	}
}

func TestSpanRefuses(t *testing.T) {
	s := spans(t, model.BoxEmbeddings, 48)
	for want, change := range map[string]func(*dataset.Example){
		"no question":   func(e *dataset.Example) { e.Question = "" },
		"no words":      func(e *dataset.Example) { e.Words, e.Boxes = nil, nil },
		"0 boxes for 7": func(e *dataset.Example) { e.Boxes = nil },
		"none within":   func(e *dataset.Example) { e.Boxes[6] = [4]uint16{1, 1, 2, 1001} },
		"the box":       func(e *dataset.Example) { e.Boxes[0] = [4]uint16{5, 5, 4, 9} },
	} {
		e := receipt()
		change(&e)
		if _, _, err := Rows(s, []dataset.Example{e}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, _, err := s.Best(&[]dataset.Example{receipt()}[0], make([]float32, 4)); err == nil {
		t.Error("scores of two tokens")
	}
}

// Every word of a long document is in a part, and every answer whole in one; parts
// without it say that they have none.
func TestSpanSplits(t *testing.T) {
	s := spans(t, "", 24)
	var words []string
	for i := range 60 {
		words = append(words, fmt.Sprintf("w%d", i))
	}
	for at := range 58 {
		e := dataset.Example{Text: strings.Join(words, " "), Question: "which?", Answers: []string{strings.Join(words[at:at+2], " ")}, Line: 3}
		parts, of, err := Rows(s, []dataset.Example{{Words: []string{"a"}, Question: "q"}, e})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := EncodeAll(s, parts)
		if err != nil {
			t.Fatal(err)
		}
		seen, asked, found := map[string]bool{}, 0, 0
		for i, p := range parts[1:] {
			if of[i+1] != 1 || p.Line != 3 {
				t.Fatalf("part %d is of %d, line %d", i, of[i+1], p.Line)
			}
			for _, w := range p.Words {
				seen[w] = true
			}
			n := int(rows.Float32(Labels)[48*(i+1)]) // points at the first token
			if len(p.Answers) > 0 {
				asked++
				if n == 0 && rows.Float32(Weights)[i+1] == 1 {
					found++
				}
			} else if n != 1 {
				t.Errorf("answer at %d, part %d: neither an answer nor none", at, i)
			}
		}
		if len(seen) != 60 || asked == 0 || found != asked {
			t.Errorf("answer at %d: %d words in %d parts, %d of %d find it", at, len(seen), len(parts)-1, found, asked)
		}
	}
	// A word that is longer than a part does not hold it up.
	long := dataset.Example{Words: []string{strings.Repeat("x.", 200), "end"}, Question: "q"}
	if parts, err := s.Split(&long); err != nil || len(parts) < 2 {
		t.Errorf("%d parts, %v", len(parts), err)
	}
	if _, err := spans(t, "", 3).Split(&long); err == nil {
		t.Error("a sequence without room")
	}
}

// The softmax is over the document and the first token alone, as transformers'
// pipeline has it: by hand for one token against none.
func TestSpanProbability(t *testing.T) {
	s := spans(t, "", 48)
	e := dataset.Example{Text: "a", Question: "q"}
	logits := make([]float32, 96)
	for i := range logits {
		logits[i] = 50 // question, frame and padding
	}
	logits[0], logits[1] = 0, 0
	first := len(s.before) + len(s.question(&e)) + len(s.between)
	logits[2*first], logits[2*first+1] = 1, 2
	text, p, err := s.Best(&e, logits)
	want := 1 / (1 + math.Exp(-1)) / (1 + math.Exp(-2))
	if err != nil || text != "a" || math.Abs(p-want) > 1e-6 {
		t.Errorf("%q %v %v, want %v", text, p, err, want)
	}
}
