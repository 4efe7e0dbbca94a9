package evaluate

import (
	"math"
	"testing"
)

// The sentences of Lin 2004, section 3.1, whose recalls are 3/4 and 2/4, and precisions too;
// and texts without words.
func TestRougeL(t *testing.T) {
	const right = "Police killed the gunman."
	for said, want := range map[string]float64{
		"police kill the gunman":              0.75,
		"the gunman kill police":              0.5,
		"police KILLED, the gunman!":          1,
		"the gunman":                          2.0 / 3,
		"nobody":                              0,
		"":                                    0,
		"police police killed killed the the": 2 * 3.0 / 10,
	} {
		if got := RougeL(said, right); math.Abs(got-want) > 1e-12 {
			t.Errorf("%q: %v, want %v", said, got, want)
		}
		if a, b := RougeL(said, right), RougeL(right, said); a != b {
			t.Errorf("%q: %v one way, %v the other", said, a, b)
		}
	}
	if RougeL("...", "!") != 0 {
		t.Error("texts without words")
	}
}

func TestSameJSON(t *testing.T) {
	for _, c := range []struct {
		said, right string
		want        float64
	}{
		{`{"a": 1, "b": [true, null]}`, `{"b":[true,null],"a":1}`, 1},
		{` 7 `, `7`, 1},
		{`{"a": 1}`, `{"a": 2}`, 0},
		{`[1, 2]`, `[2, 1]`, 0},
		{`{"a": 1} and more`, `{"a": 1}`, 0},
		{`{"a": 1`, `{"a": 1`, 0},
		{`light(on)`, `light(on)`, 0},
		{`12345678901234567890`, `12345678901234567891`, 0},
	} {
		if got := SameJSON(c.said, c.right); got != c.want {
			t.Errorf("%s, %s: %v", c.said, c.right, got)
		}
	}
}
