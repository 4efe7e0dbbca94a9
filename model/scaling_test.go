package model

import (
	"encoding/json"
	"math"
	"testing"
)

// PEFT computes lora_alpha/r, and r is the rank of a cut: what an export says must come to
// the scale that the adapter has at that rank.
func TestExportsHaveTheScaleOfTheirRank(t *testing.T) {
	for _, rule := range []Scaling{ScaleByRank, ScaleConstant} {
		l, err := NewLayout(BERT(40, 16, 2, 2, 12), Method{RMax: 16, Alpha: 24, Scaling: rule}, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []int{1, 8, 16} {
			files, err := PEFTFiles(NewAdapter(l, 1), zeroBase(t, l.Config), b)
			if err != nil {
				t.Fatal(err)
			}
			var c struct {
				R     float64 `json:"r"`
				Alpha float64 `json:"lora_alpha"`
			}
			if err := json.Unmarshal(files[AdapterConfigFile], &c); err != nil {
				t.Fatal(err)
			}
			want := 24 / float64(b)
			if rule == ScaleConstant {
				want = 1.5
			}
			if c.R != float64(b) || math.Abs(c.Alpha/c.R-want) > 1e-12 || math.Abs(l.Method.Scale(b)-want) > 1e-12 {
				t.Errorf("%q at rank %d: PEFT has %v/%v, the adapter %v, want %v", rule, b, c.Alpha, c.R, l.Method.Scale(b), want)
			}
		}
	}
}

// A file of before names no rule and means alpha/b; a stranger's rule is refused.
func TestFilesWithoutAScaleMeanAlphaByRank(t *testing.T) {
	c := BERT(40, 16, 2, 2, 12)
	for text, want := range map[string]float64{`{"r_max":4,"alpha":4}`: 4, `{"r_max":4,"alpha":4,"scale":"constant"}`: 1} {
		var m Method
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(c); err != nil || m.Scale(1) != want {
			t.Errorf("%s: scale %v at rank 1, want %v (%v)", text, m.Scale(1), want, err)
		}
	}
	for _, m := range []Method{{RMax: 4, Alpha: 4, Scaling: "sqrt"}, {RMax: 4, Alpha: 4, Kind: MethodBitFit, Scaling: ScaleConstant}} {
		if err := m.Validate(c); err == nil {
			t.Errorf("%+v is taken", m)
		}
	}
}

// Under another rule the largest rank computes what it did, and a smaller one does not.
func TestRescaledKeepsTheLargestRank(t *testing.T) {
	l, err := NewLayout(BERT(40, 16, 2, 2, 12), Method{RMax: 4, Alpha: 6}, 3)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Rescaled(NewAdapter(l, 1), ScaleConstant)
	if err != nil {
		t.Fatal(err)
	}
	now := a.Layout().Method
	if now.Scale(4) != l.Method.Scale(4) || now.Scale(1) != l.Method.Scale(1)/4 {
		t.Errorf("scales %v and %v, were %v and %v", now.Scale(4), now.Scale(1), l.Method.Scale(4), l.Method.Scale(1))
	}
}

// Hashes of starts that were made before there was a Scaling stay: stores and runs go by
// them.
func TestMethodsAreSpelledAsBefore(t *testing.T) {
	m := Method{RMax: 4, Alpha: 6, Kind: MethodLoRA, Targets: "query", Also: "x", Task: TaskTag, Answer: 3}
	for format, want := range map[string]string{
		"%v":  "{4 6 lora query x tag 0 0 3}",
		"%+v": "{RMax:4 Alpha:6 Kind:lora Targets:query Also:x Task:tag Bottleneck:0 Blocks:0 Answer:3}",
	} {
		if got := m.Spelled(format); got != want {
			t.Errorf("%s: %s, want %s", format, got, want)
		}
	}
	a, b := m, m
	b.Scaling = ScaleConstant
	if a.Spelled("%v") == b.Spelled("%v") {
		t.Error("two scales are spelled alike")
	}
}
