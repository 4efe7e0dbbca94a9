package edge

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

func TestWords(t *testing.T) {
	for in, want := range map[string]string{
		"edge: the coordinator refused: wire: kind is 3": "the coordinator refused: kind is 3",
		"coordinator: dp: nn: store: x":                  "x",
		"job: base: none is loaded":                      "job: base: none is loaded",
		"a.tsv:2: label \"x\" is not known":              "a.tsv:2: label \"x\" is not known",
		"one: edge: two\nsecagg: three":                  "one: two\nthree",
		"privacy.clip_norm is 0":                         "privacy.clip_norm is 0",
		"/home/dp: no such folder":                       "/home/dp: no such folder",
	} {
		if got := Explain(errors.New(in)); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
	if got := Explain(fmt.Errorf("%w: %w", ErrData, dataset.ErrEmpty)); got != "local data cannot be used: no examples" {
		t.Errorf("%q", got)
	}
	if _, err := wire.ParseToken("x"); strings.Contains(Explain(err), "wire:") {
		t.Errorf("%q", Explain(err))
	}
}
