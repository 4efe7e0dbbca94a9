package accounting

import (
	"bytes"
	"math"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// What a round with figures costs, by brute force: the worst unit's update and figures under
// one draw of discrete noise, the privacy loss convolved coordinate by coordinate. The ledger's
// event, of the same z as a round without, must be no cheaper; with the figures left out of the
// sensitivity it is.
func TestFiguresAreAccounted(t *testing.T) {
	const b2, z, epsilon = 9, 1.5, 1.0
	c := dp.FigureCode{Coordinates: 2, Symbol: 1}
	update := []int64{3} // the worst of squared norm 9
	var f dp.Figures
	for k := range f {
		f[k] = 1
	}
	one := make([]int32, c.Size())
	if err := c.Encode(one, f, bytes.NewReader(make([]byte, 8*dp.FigureCount))); err != nil {
		t.Fatal(err)
	}
	worst := update
	for _, v := range one {
		worst = append(worst, int64(v))
	}
	exact := func(b2 int64) (delta float64) {
		sigma2 := z * z * float64(b2)
		reach := int64(12 * math.Sqrt(sigma2))
		weight := make([]float64, 2*reach+1)
		total := 0.0
		for x := -reach; x <= reach; x++ {
			weight[x+reach] = math.Exp(-float64(x*x) / (2 * sigma2))
			total += weight[x+reach]
		}
		// ln P(x)/P(x-v) = (v^2 - 2 x v) / (2 sigma^2): a whole number over 2 sigma^2.
		loss := map[int64]float64{0: 1}
		for _, v := range worst {
			next := map[int64]float64{}
			for l, p := range loss {
				for x := -reach; x <= reach; x++ {
					if q := p * weight[x+reach] / total; q > 1e-25 {
						next[l+v*v-2*x*v] += q
					}
				}
			}
			loss = next
		}
		for l, p := range loss {
			if e := float64(l) / (2 * sigma2); e > epsilon {
				delta += p * (1 - math.Exp(epsilon-e))
			}
		}
		return delta
	}
	delta := func(b2 int64) float64 {
		e, err := (dp.ReleaseSpec{Round: 1, SamplingRate: 1, B2: b2, NoiseMultiplier: z, NoiseScale: 1}).Event(len(worst))
		if err != nil {
			t.Fatal(err)
		}
		low, high := 1e-9, 0.5 // the delta at which the accountant says epsilon
		for range 60 {
			at := math.Sqrt(low * high)
			g, err := Epsilon([]dp.Event{e}, at, dp.Tight)
			if err != nil {
				t.Fatal(err)
			}
			if g.Epsilon > epsilon {
				low = at
			} else {
				high = at
			}
		}
		return high
	}
	joint := int64(b2) + c.B2()
	if said, is := delta(joint), exact(joint); is > said || is < said/4 {
		t.Errorf("delta %v by brute force, %v by the accountant", is, said)
	}
	if said, is := delta(b2), exact(b2); is <= said {
		t.Errorf("with figures outside of the sensitivity delta is %v, and the accountant says %v: this test tells nothing", is, said)
	}
}
