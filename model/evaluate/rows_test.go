package evaluate

import (
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
	embedded "github.com/starling-fl/starling/model/base"
	"github.com/starling-fl/starling/wasm/compiler"
)

// A text of several rows is scored in all of them, also where rows are held.
func TestRowsOfLongTexts(t *testing.T) {
	b, err := embedded.Default()
	if err != nil {
		t.Fatal(err)
	}
	l, err := model.NewLayout(b.Config, model.Method{RMax: 1, Alpha: 1, Task: model.TaskPretrain}, 0)
	if err != nil {
		t.Fatal(err)
	}
	set := &dataset.Set{Examples: []dataset.Example{{Text: strings.Repeat("one taxi to the airport ", 20)}, {Text: "two nights"}}}
	e, err := NewLabelled(compiler.New(), b, l, 24, set)
	if err != nil {
		t.Fatal(err)
	}
	s, err := e[0].Score(t.Context(), model.NewAdapter(l, 1), 1)
	if err != nil || len(e[0].Examples) < 4 || len(e[0].Right) < len(e[0].Examples) || s.Perplexity == nil {
		t.Errorf("%d rows, %d places, %+v, %v", len(e[0].Examples), len(e[0].Right), s, err)
	}
}
