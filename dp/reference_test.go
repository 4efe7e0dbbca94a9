package dp

import (
	"math"
	"testing"
)

// Where a few orders above 1 are best, (1+u)^a and a*u are of one size: the sum of
// both is 1 % too high. Divergences by 30-digit quadrature (mpmath).
func TestRenyiNearOrderOne(t *testing.T) {
	for _, c := range []struct{ q, z, order, want float64 }{
		{0.99, 0.12028913, 1.0778649716, 37.1120329542816},
		{0.0046155169, 0.14738937, 1.143742221, 0.589688808625791},
		{0.0063578173, 0.16866694, 1.2719609595, 1.93822426169443},
	} {
		p := Part{Q: c.q, Z: c.z, Rounds: 1, Seen: 1}
		if got := p.renyi(c.order); math.Abs(got/c.want-1) > 1e-9 {
			t.Errorf("q=%v z=%v: divergence of order %v is %v, want %v", c.q, c.z, c.order, got, c.want)
		}
	}
}
