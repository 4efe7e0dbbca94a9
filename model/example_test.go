package model_test

import (
	"fmt"

	"github.com/starling-fl/starling/model"
)

// A layout turns an adapter with its head into one vector at any rank, and says
// where each tensor is in it.
func ExampleLayout() {
	config := model.BERT(1000, 64, 2, 2, 64) // vocabulary, width, layers, heads, positions
	layout, err := model.NewLayout(config, model.Method{RMax: 8, Alpha: 4}, 3)
	if err != nil {
		panic(err)
	}
	adapter := model.NewAdapter(layout, 42)
	for _, rank := range []int{0, 1, 8} {
		fmt.Println("rank", rank, "takes", len(adapter.Slice(rank)), "values")
	}
	last := layout.Spans(1)[len(layout.Spans(1))-1]
	fmt.Println(last.Name, "begins at", last.Offset)
	// Output:
	// rank 0 takes 195 values
	// rank 1 takes 707 values
	// rank 8 takes 4291 values
	// classifier.bias begins at 704
}
