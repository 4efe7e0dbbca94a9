package model

import (
	"math"
	"strings"
	"testing"
)

// LayoutLM adds the tables' rows of a box's left, top, right, bottom, height and width:
// together they are the linear map.
func TestLayoutLMTablesAreTheMap(t *testing.T) {
	const h = 3
	w := []float32{1, -2, 3, 0.5, 0.25, 4, -1, 2, 0, 0, 7, -3}
	tables := map[string][]float32{}
	for _, table := range layoutLMTables(w, h) {
		tables[strings.TrimSuffix(strings.TrimPrefix(table.Name, "embeddings."), "_position_embeddings.weight")] = table.Data
	}
	for _, box := range [][4]int{{0, 0, 1000, 1000}, {10, 20, 300, 35}, {999, 1, 1000, 1000}} {
		for k := range h {
			row := func(name string, at int) float64 { return float64(tables[name][at*h+k]) }
			got := row("x", box[0]) + row("y", box[1]) + row("x", box[2]) + row("y", box[3]) +
				row("h", box[3]-box[1]) + row("w", box[2]-box[0])
			want := 0.0
			for i, x := range box {
				want += float64(w[4*k+i]) * float64(x) / 1000
			}
			if math.Abs(got-want) > 1e-5 {
				t.Errorf("%v, column %d: %v, want %v", box, k, got, want)
			}
		}
	}
}

// Boxes are a bert's, and a span's: any other job with them is refused.
func TestBoxesRefused(t *testing.T) {
	bert := BERT(40, 16, 1, 2, 12)
	other := bert
	other.ModelType = "distilbert"
	ok := Method{RMax: 1, Alpha: 1, Task: TaskSpan, Also: BoxEmbeddings}
	if l, err := NewLayout(bert, ok, 0); err != nil || l.Outputs() != 2 || l.Size(0) != 16*4+2*16+2 {
		t.Errorf("%v, %v", l, err)
	}
	for _, c := range []struct {
		config  Config
		task    TaskKind
		classes int
	}{{bert, TaskTag, 3}, {bert, TaskClassify, 3}, {other, TaskSpan, 0}, {bert, TaskSpan, 3}} {
		m := ok
		m.Task = c.task
		if _, err := NewLayout(c.config, m, c.classes); err == nil {
			t.Errorf("%s over a %s with %d classes", c.task, c.config.ModelType, c.classes)
		}
	}
}
