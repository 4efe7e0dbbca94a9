package model

import (
	"errors"
	"math"
	"testing"
)

// An adapter taken as a start computes at the job's r_max what it computed where it
// was made, whatever rank and alpha it was made with.
func TestStartComputesTheSame(t *testing.T) {
	base, err := NewBase(tinyConfig(), tinyTensors(), nil, F32)
	if err != nil {
		t.Fatal(err)
	}
	layout := func(m Method) *Layout {
		l, err := NewLayout(tinyConfig(), m, 3)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	theirs := layout(Method{RMax: 3, Alpha: 6})
	from := NewAdapter(theirs, 1)
	v := from.Slice(3)
	for i := range v {
		v[i] = float32(math.Sin(float64(i)))
	}
	if err := from.SetSlice(3, v); err != nil {
		t.Fatal(err)
	}
	ours := layout(Method{RMax: 5, Alpha: 4})
	a, err := StartFrom(ours, from, 9)
	if err != nil {
		t.Fatal(err)
	}
	want, err := theirs.Merge(base, v, 3)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ours.Merge(base, a.Slice(5), 5)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range want {
		for i := range w {
			if d := math.Abs(float64(got[name][i] - w[i])); d > 1e-5 {
				t.Fatalf("%s[%d] is %v, want %v", name, i, got[name][i], w[i])
			}
		}
	}
	for _, m := range []Method{{RMax: 2, Alpha: 4}, {RMax: 5, Alpha: 4, Targets: "query"}, {RMax: 5, Alpha: 4, Targets: "query,key"}, {RMax: 5, Alpha: 4, Kind: MethodHead}} {
		if _, err := StartFrom(layout(m), from, 0); !errors.Is(err, ErrPEFT) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}
