package audit

import "math"

// A factor is one round's public fact about a sum of canaries: which of them were
// there to be drawn, what each adds to the sum if it is in and drawn (+1, -1; 0: it
// was not there, or adds nothing), and how likely the fact is for every sum.
type factor struct {
	adds []int8
	like []float64 // of the sums -len(adds)..len(adds)
}

// sweeps over all factors; messages have settled long before.
const sweeps = 24

// decode returns each canary's log-likelihood ratio of in to out, given facts about
// sums of which each canary in is part with probability rate. It is belief propagation
// (Pearl 1988) over the rounds: what one fact says of a canary depends on what the
// others say of its companions. Facts without loops give the exact posterior; others
// give a score, and any score makes a valid audit.
func decode(n int, rate float64, factors []factor) []float64 {
	total := make([]float64, n)
	said := make([][]float64, len(factors)) // by factor, of each canary
	for f := range said {
		said[f] = make([]float64, n)
	}
	width := 2*n + 1
	before := make([]float64, (n+1)*width) // of the sum of the canaries before one
	behind := make([]float64, (n+1)*width) // how likely the fact is, given that sum and itself
	for range sweeps {
		for f, of := range factors {
			p := make([]float64, n)
			for i, a := range of.adds {
				if a != 0 {
					p[i] = rate / (1 + math.Exp(said[f][i]-total[i])) // without what this factor said
				}
			}
			clear(before)
			before[n] = 1
			for i, a := range of.adds {
				from, to := before[i*width:][:width], before[(i+1)*width:][:width]
				for k, x := range from {
					if x != 0 {
						to[k] += (1 - p[i]) * x
						if p[i] != 0 {
							to[k+int(a)] += p[i] * x
						}
					}
				}
			}
			copy(behind[n*width:], of.like)
			for i := n - 1; i >= 0; i-- {
				from, to := behind[(i+1)*width:][:width], behind[i*width:][:width]
				for k := range to {
					to[k] = (1 - p[i]) * from[k]
					if j := k + int(of.adds[i]); p[i] != 0 && j >= 0 && j < width {
						to[k] += p[i] * from[j]
					}
				}
			}
			for i, a := range of.adds {
				if a == 0 {
					continue
				}
				out, drawn := 0.0, 0.0
				for k, x := range before[i*width:][:width] {
					if x != 0 {
						out += x * behind[(i+1)*width+k]
						if j := k + int(a); j >= 0 && j < width {
							drawn += x * behind[(i+1)*width+j]
						}
					}
				}
				const damp, most = 0.5, 30
				says := 0.0
				if in := (1-rate)*out + rate*drawn; in > 0 || out > 0 {
					says = min(max(math.Log(in)-math.Log(out), -most), most)
				}
				says = damp*said[f][i] + (1-damp)*says
				total[i] += says - said[f][i]
				said[f][i] = says
			}
		}
	}
	return total
}
