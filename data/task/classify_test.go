package task

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

func layout(t *testing.T, m model.Method) (*model.Base, *model.Layout) {
	t.Helper()
	return layoutOf(t, m, 3)
}

func layoutOf(t *testing.T, m model.Method, classes int) (*model.Base, *model.Layout) {
	t.Helper()
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	if m.RMax == 0 {
		m.RMax, m.Alpha = 1, 1
	}
	l, err := model.NewLayout(b.Config, m, classes)
	if err != nil {
		t.Fatal(err)
	}
	return b, l
}

func TestClassify(t *testing.T) {
	b, l := layout(t, model.Method{})
	k, err := New(b, l, 8)
	if err != nil {
		t.Fatal(err)
	}
	all := NewBatch(k.Columns(), 3)
	for i, text := range []string{"one taxi to the airport", "two", "three nights"} {
		if err := k.Encode(&dataset.Example{Text: text, Label: i}, all, i); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range all {
		if err := c.Check(3); err != nil {
			t.Error(err)
		}
	}
	two := NewBatch(k.Columns(), 2)
	two.Copy(0, all, 2)
	two.Copy(1, all, 1)
	if got := two.Int32(Tokens); !slices.Equal(got[:8], all.Int32(Tokens)[16:]) || !slices.Equal(got[8:], all.Int32(Tokens)[8:16]) {
		t.Errorf("tokens %v of %v", got, all.Int32(Tokens))
	}
	if !slices.Equal(two.Int32(Labels), []int32{2, 1}) || !slices.Equal(two.Float32(Weights), []float32{1, 1}) {
		t.Errorf("labels %v, weights %v", two.Int32(Labels), two.Float32(Weights))
	}
	copied := two.Clone()
	two.Clear(1)
	if !slices.Equal(two.Float32(Weights), []float32{1, 0}) || slices.Max(two.Int32(Tokens)[8:]) != 0 || copied.Float32(Weights)[1] != 1 {
		t.Errorf("cleared: %v, the copy %v", two, copied)
	}
	for _, sequence := range []int{0, 1 << 20} {
		if _, err := New(b, l, sequence); err == nil {
			t.Errorf("a sequence of %d", sequence)
		}
	}
}

func TestCheckNamesTheColumn(t *testing.T) {
	for _, v := range []Values{
		{Column: Column{Name: "tokens", Type: I32, Shape: []int{2}, Limit: 5}, I32: []int32{0, 1, 4, 5}},
		{Column: Column{Name: "labels", Type: I32, Limit: 5}, I32: []int32{0, -1}},
		{Column: Column{Name: "labels", Type: I32}, I32: []int32{0}},
		{Column: Column{Name: Weights, Type: F32}, F32: []float32{1, -1}},
		{Column: Column{Name: "pixels", Type: F32}, F32: []float32{1, float32(math.NaN())}},
		{Column: Column{Name: "pixels", Type: F32}, I32: []int32{1, 1}},
	} {
		if err := v.Check(2); err == nil || !strings.Contains(err.Error(), v.Name) {
			t.Errorf("%+v: %v", v, err)
		}
	}
}

// Rows that are picked or cut out are those of the batch, in every column.
func TestPickAndCut(t *testing.T) {
	columns := []Column{{Name: "a", Type: I32, Shape: []int{2}}, {Name: Weights, Type: F32}}
	b := NewBatch(columns, 4)
	for row := range 4 {
		copy(b[0].I32[2*row:], []int32{int32(10 * row), int32(10*row + 1)})
		b[1].F32[row] = float32(row)
	}
	picked := b.Pick([]int{3, 1})
	if !slices.Equal(picked[0].I32, []int32{30, 31, 10, 11}) || !slices.Equal(picked[1].F32, []float32{3, 1}) {
		t.Errorf("picked %v", picked)
	}
	cut := b.Cut(1, 3)
	if !slices.Equal(cut[0].I32, []int32{10, 11, 20, 21}) || !slices.Equal(cut[1].F32, []float32{1, 2}) {
		t.Errorf("cut %v", cut)
	}
	b[1].F32[1] = 9 // a cut is the batch's own memory, a pick is not
	if cut[1].F32[0] != 9 || picked[1].F32[1] != 1 {
		t.Errorf("cut %v, picked %v", cut, picked)
	}
	if none := b.Cut(4, 4); len(none[0].I32) != 0 || len(b.Pick(nil)[1].F32) != 0 {
		t.Error("none of the rows is some")
	}
}
