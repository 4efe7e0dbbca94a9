package task

import (
	"math"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
)

func TestMultiLabelEncode(t *testing.T) {
	base, l := layout(t, model.Method{Task: model.TaskMultiLabel})
	k, err := New(base, l, 8)
	if err != nil {
		t.Fatal(err)
	}
	examples := []dataset.Example{{Text: "a taxi", Labels: []int{0, 2}}, {Text: "none", Labels: []int{}}}
	b, err := EncodeAll(k, examples)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range b {
		if err := v.Check(2); err != nil {
			t.Error(err)
		}
	}
	n := l.Classes
	for i, x := range b.Float32(Labels) {
		if want := i == 0 || i == 2; (x == 1) != want || x != 0 && x != 1 || len(b.Float32(Labels)) != 2*n {
			t.Errorf("label %d is %v", i, x)
		}
	}
	for _, bad := range []dataset.Example{{Text: "one label", Label: 1}, {Text: "a", Labels: []int{n}}, {Text: "a", Labels: []int{-1}},
		{Words: []string{"a"}, Tags: []int{0}}} {
		if _, err := EncodeAll(k, []dataset.Example{bad}); err == nil {
			t.Errorf("%+v", bad)
		}
	}
	open := k.(Labeller).Open(dataset.Example{Text: "whose labels nobody knows", Label: 2})
	if _, err := EncodeAll(k, []dataset.Example{open}); err != nil {
		t.Error(err)
	}
	if For(dataset.FormLists) != model.TaskMultiLabel || Accepts(model.TaskClassify, dataset.FormLists) {
		t.Error("which task lists are for")
	}
}

// By hand: of five right labels and four said ones three are hits.
func TestMultiLabelScore(t *testing.T) {
	right := [][]int{{0, 1}, {}, {2}, {0, 2}}
	said := [][]int{{0, 1}, {}, {1}, {2}}
	s := ScoreOf(&multiLabel{}, said, right, 2, 3, []string{"a", "b", "c"})
	macro := (2.0/3 + 2.0/3 + 2.0/3) / 3 // a: 1 hit of 1 said and 2; b: 1 of 2 and 1; c: 1 of 1 and 2
	if s.Accuracy != 0.5 || s.MicroF1 == nil || math.Abs(*s.MicroF1-6.0/9) > 1e-12 || math.Abs(s.MacroF1-macro) > 1e-12 || s.Loss != 0.5 {
		t.Errorf("%+v, want accuracy and loss 0.5, micro-F1 %v, macro-F1 %v", s, 6.0/9, macro)
	}
	if MajorityAccuracy([][]int{{0, 1}, {}, {0, 1}, {1}}) != 0.5 {
		t.Error("the commonest list")
	}
}

func TestAnyOf(t *testing.T) {
	p := AnyOf.Probabilities([]float32{0, 100, -100, 1})
	if p[0] != 0.5 || p[1] != 1 || p[2] > 1e-40 || math.Abs(p[3]-1/(1+math.Exp(-1))) > 1e-15 {
		t.Errorf("%v", p)
	}
	if said := AnyOf.Predicted([]float32{0, 0.1, -0.1}); len(said) != 1 || said[0] != 1 || !AnyOf.Several() {
		t.Errorf("%v said", said)
	}
	if l := AnyOf.Loss([]float32{1000, -1000}, []int{0}); l != 0 {
		t.Errorf("loss %v of what is sure and right", l)
	}
	if l := AnyOf.Loss([]float32{float32(math.NaN()), 1}, nil); !math.IsNaN(l) {
		t.Errorf("loss %v of NaN", l)
	}
}
