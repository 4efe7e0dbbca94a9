package model

// LayoutLM (Xu et al. 2020) is BERT with tables of where words stand: of left and right,
// of top and bottom, of width and height. Its class in transformers computes what a
// linear map of boxes does, where the tables hold that map's values.
const (
	layoutLM      = "layoutlm"
	layoutLMClass = "LayoutLM"
	layoutLMTable = 1024 // rows

	// PageSide is the side of a page in a box's units.
	PageSide = 1000
)

// layoutLMTables are the tables of a map [hidden, 4] of left, top, right and bottom. A
// table is shared by two sides, and the one of their distance makes up the difference:
// a l + c r = (a+c)/2 (l + r) + (c-a)/2 (r - l).
func layoutLMTables(boxes []float32, hidden int) []Tensor {
	table := func(name string, column func(w []float32) float32) Tensor {
		t := Tensor{Name: "embeddings." + name + "_position_embeddings.weight", Shape: []int{layoutLMTable, hidden},
			Data: make([]float32, layoutLMTable*hidden)}
		for i := range layoutLMTable {
			for k := range hidden {
				t.Data[i*hidden+k] = column(boxes[4*k:4*k+4]) * float32(i) / PageSide
			}
		}
		return t
	}
	return []Tensor{
		table("x", func(w []float32) float32 { return (w[0] + w[2]) / 2 }),
		table("y", func(w []float32) float32 { return (w[1] + w[3]) / 2 }),
		table("h", func(w []float32) float32 { return (w[3] - w[1]) / 2 }),
		table("w", func(w []float32) float32 { return (w[2] - w[0]) / 2 }),
	}
}
