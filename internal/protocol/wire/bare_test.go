package wire

import (
	"strings"
	"testing"
)

// A job without noise cannot call itself private, nor name a budget.
func TestHostileClaimWithoutNoise(t *testing.T) {
	for _, c := range []struct {
		p    Privacy
		fine bool
	}{
		{Privacy{Private: true, NoiseMultiplier: 1, Budget: 2, SamplingRate: 1}, true},
		{Privacy{NoiseMultiplier: 1, Budget: 2, SamplingRate: 1}, true}, // reproducible
		{Privacy{SamplingRate: 1}, true},
		{Privacy{Private: true, SamplingRate: 1}, false},
		{Privacy{Private: true, Budget: 2, SamplingRate: 1}, false},
		{Privacy{Budget: 2, SamplingRate: 1}, false},
	} {
		j := job()
		j.Privacy = c.p
		_, err := j.AppendBinary(nil)
		if (err == nil) != c.fine || err != nil && !strings.Contains(err.Error(), "without any noise") {
			t.Errorf("%+v: %v", c.p, err)
		}
	}
}
