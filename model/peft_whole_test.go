package model

import (
	"strings"
	"testing"
)

// What PEFT has no place for beside an adapter is refused on the way out.
func TestPEFTHoldsNoSuchModule(t *testing.T) {
	c := huggingConfig("bert")
	base := zeroBase(t, c)
	for want, m := range map[string]Method{
		"low-rank update too": {RMax: 2, Alpha: 1, Also: "query.bias"},
		"method bitfit":       {RMax: 2, Alpha: 1, Kind: MethodBitFit},
		"tied":                {RMax: 2, Alpha: 1, Also: "word_embeddings", Task: TaskPretrain},
	} {
		labels := 3
		if m.Task == TaskPretrain {
			labels = 0
		}
		l, err := NewLayout(c, m, labels)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := PEFTFiles(NewAdapter(l, 1), base, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
