package queue

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// TestHostileOutcomes: what a worker says of an item is taken only where it is of that
// item's clients and has numbers for norms.
func TestHostileOutcomes(t *testing.T) {
	places := []int{3, 4}
	honest := func() *outcome {
		return &outcome{Places: slices.Clone(places), Norms: [][]float64{{1}, {2, 0}}}
	}
	if err := honest().check(places, 2); err != nil {
		t.Fatal(err)
	}
	for name, lie := range map[string]func(o *outcome){
		"other places":          func(o *outcome) { o.Places[0] = 8 },
		"places of others":      func(o *outcome) { o.Places[1] = 1 << 40 },
		"a place less":          func(o *outcome) { o.Places = o.Places[:1] },
		"norms of more":         func(o *outcome) { o.Norms = append(o.Norms, nil) },
		"emptier than it is":    func(o *outcome) { o.Empty = 3 },
		"less than nothing":     func(o *outcome) { o.Empty = -1 },
		"no number":             func(o *outcome) { o.Norms[0][0] = math.NaN() },
		"an infinite norm":      func(o *outcome) { o.Norms[1][1] = math.Inf(1) },
		"more norms than units": func(o *outcome) { o.Norms[0] = []float64{1, 2, 3} },
		"empty with norms":      func(o *outcome) { o.Empty = 1 },
		"a negative norm":       func(o *outcome) { o.Norms[1][0] = -1 },
	} {
		o := honest()
		lie(o)
		if err := o.check(places, 2); !errors.Is(err, errMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
