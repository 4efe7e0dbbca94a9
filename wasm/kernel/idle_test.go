package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestIdleRows holds products of matrices with rows of zeros against the definition: zeros of either sign, in all
// terms or in one block of them, beside a B that is finite, and one that is not.
func TestIdleRows(t *testing.T) {
	const m, n, k = 40, 70, maxTerms + 44
	rnd := rand.New(rand.NewPCG(14, 15))
	negative := float32(math.Copysign(0, -1))
	for i := range 24 {
		p := Product{B: 4 * m * k, C: 4 * (m*k + n*k), Rows: []Axis{{m, k, 0, n}}, Cols: []Axis{{n, 0, 1, 1}},
			Terms: []Axis{{k, 1, n, 0}}, Fused: i%2 == 1}
		if i%3 == 1 { // a column of A is a row of the product
			p.Rows[0].A, p.Terms[0].A = 1, m
		}
		start := make([]float32, m*k+n*k+m*n)
		fill(rnd, bytesOf(start), 0)
		want := make([]bool, m)
		for r := range want {
			from, to, but := 0, k, -1
			switch rnd.IntN(5) {
			case 0:
				continue
			case 1:
				from = maxTerms // the second block alone
			case 2:
				to = k - 1 // all but the last term
			case 3:
				but = 1 + rnd.IntN(k-1)
			default:
				want[r] = true
			}
			for term := from; term < to; term++ {
				if term == but {
					continue
				}
				start[r*p.Rows[0].A+term*p.Terms[0].A] = []float32{0, negative}[rnd.IntN(2)]
			}
		}
		if i%4 == 3 {
			clear(want)
			bad := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}[rnd.IntN(3)]
			for _, term := range []int{rnd.IntN(maxTerms), maxTerms + rnd.IntN(k-maxTerms)} {
				start[m*k+term*n+rnd.IntN(n)] = bad
			}
		}
		for j := range start[:m*k+n*k] { // so small that products vanish: the sign of zero is the question
			if i >= 16 {
				start[j] *= 1e-30
			}
		}
		defined := bytesOf(slices.Clone(start))
		define(&p, defined)
		pl, err := Prepare(p, 4*len(start))
		if err != nil {
			t.Fatal(err)
		}
		for _, kernel := range every(&p) {
			for _, cores := range []int{1, 3} {
				memory := slices.Clone(start)
				j := &job{kernel: kernel, Plan: pl, ctx: t.Context(), bytes: bytesOf(memory), floats: memory}
				j.cut(cores)
				w := &worker{job: j}
				var idle []bool
				for task := range j.tasks() {
					if !w.task(task) {
						t.Fatal("cancelled")
					}
					idle = append(idle, w.idle...)
				}
				what := fmt.Sprintf("product %d, %s, %d cores", i, kernel.name, cores)
				same(t, what, bytesOf(memory), defined)
				if cores == 1 && !slices.Equal(idle, want) {
					t.Errorf("%s: left out %v, want %v", what, idle, want)
				}
			}
		}
	}
}
