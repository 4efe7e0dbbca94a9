package membership

import (
	"math"
	"testing"
)

// Each run has about half of the people, each person is in half of the shadows, and neither tells
// of the target: bounds are six standard deviations of fair coins.
func TestDesign(t *testing.T) {
	const people = 2000
	for _, shadows := range []int{0, 1, 4, 7} {
		target, in := Design(people, shadows, 3)
		half := func(what string, of []bool) {
			n := 0
			for _, yes := range of {
				if yes {
					n++
				}
			}
			if math.Abs(float64(n)-people/2) > 3*math.Sqrt(people) {
				t.Errorf("%d shadows: %d of %d are in %s", shadows, n, people, what)
			}
		}
		half("the target", target)
		if len(in) != shadows {
			t.Fatalf("%d shadows, want %d", len(in), shadows)
		}
		for _, k := range in {
			half("a shadow", k)
			same := make([]bool, people)
			for i := range k {
				same[i] = k[i] == target[i]
			}
			half("both or neither", same)
		}
		for i := range people {
			n := 0
			for _, k := range in {
				if k[i] {
					n++
				}
			}
			if n != shadows/2 && n != (shadows+1)/2 {
				t.Fatalf("somebody is in %d of %d shadows", n, shadows)
			}
		}
	}
	a, _ := Design(people, 4, 3)
	b, _ := Design(people, 4, 4)
	for i := range a {
		if a[i] != b[i] {
			return
		}
	}
	t.Error("the seed changes nothing")
}
