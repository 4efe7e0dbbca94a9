package edge

import (
	"math"
	"math/rand/v2"
	"testing"
)

// An ideal reader, one of those that were tried, is a coordinator whose starts make an update one text and nothing else: of
// each word at each place a code of its own, at right angles to all others and of the clip norm. No start over a real base
// does so well. It reads as many of a text's places as pays most, with the noise of so many bits about the text, and knows
// how frequent words are.
type idealReader struct {
	prior  []float64 // of each word
	common float64   // the greatest
}

// newIdealReader knows words whose frequencies fall as Zipf's.
func newIdealReader(words int) idealReader {
	r := idealReader{prior: make([]float64, words)}
	sum := 0.0
	for i := range r.prior {
		r.prior[i] = 1 / float64(i+1)
		sum += r.prior[i]
	}
	for i := range r.prior {
		r.prior[i] /= sum
	}
	r.common = r.prior[0]
	return r
}

// names is the share of one place's words that are named at a signal whose squared norm over the noise is energy.
func (r *idealReader) names(energy float64, tries int, rnd *rand.Rand) float64 {
	right := 0
	for range tries {
		is, x := 0, rnd.Float64()
		for x -= r.prior[0]; x > 0 && is < len(r.prior)-1; x -= r.prior[is] {
			is++
		}
		best, at := math.Inf(-1), -1
		for w, p := range r.prior {
			score := math.Sqrt(energy)*rnd.NormFloat64() + math.Log(p)
			if w == is {
				score += energy
			}
			if score > best {
				best, at = score, w
			}
		}
		if at == is {
			right++
		}
	}
	return float64(right) / float64(tries)
}

// beyondGuessing is the share of a text's words that so many bits about it give, less the share that always saying the
// commonest word gives.
func (r *idealReader) beyondGuessing(bits float64, places int, rnd *rand.Rand) (most float64) {
	energy := 2 * math.Ln2 * bits // of rounds that tell 1/(2 (k v)^2 ln 2) bits each
	for at := 1; at <= places; at *= 2 {
		most = max(most, float64(at)/float64(places)*(r.names(energy/float64(at), 1500, rnd)-r.common))
	}
	return most
}

// The reader that is tried here has a code for each word. With what the stock account lets a stranger have of one text, of
// eight words or 16, it names at most five words of a hundred more than guessing by their frequencies. Of other readers
// that says nothing: one with a code for the whole text named 5.2 (docs/RATIONALE.md). At 8 bits, stock before, this
// reader names more: it reads at all.
func TestHostileIdealReader(t *testing.T) {
	p := DefaultPolicy()
	for _, words := range []int{256, 1000} {
		r := newIdealReader(words)
		rnd := rand.New(rand.NewPCG(1, uint64(words)))
		for _, places := range []int{8, 16} {
			got := r.beyondGuessing(p.ExampleBits, places, rnd)
			t.Logf("%d words, %d places: %.1f points above guessing (%.1f)", words, places, 100*got, 100*r.common)
			if got > 0.05 {
				t.Errorf("of texts of %d of %d words %v are named beyond guessing", places, words, got)
			}
		}
		if got := r.beyondGuessing(8, 8, rnd); got < 0.06 {
			t.Errorf("8 bits about a text of 8 of %d words name %v beyond guessing: the reader is none", words, got)
		}
	}
}
