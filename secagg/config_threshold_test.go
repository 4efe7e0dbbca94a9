package secagg

import (
	"errors"
	"math/big"
	"testing"

	"github.com/starling-fl/starling/secagg/internal/tail"
)

// TestConfigThreshold: the rule both sides compute, and its minimality.
func TestConfigThreshold(t *testing.T) {
	cfg := Config{CorruptPPM: 50000, BreachBits: 44}
	for n, want := range map[int]int{64: 44, 63: 43, 62: 43} {
		if got, err := cfg.Threshold(n); err != nil || got != want {
			t.Errorf("n=%d: %d, %v, want %d", n, got, err, want)
		}
	}
	if _, err := cfg.Threshold(8); !errors.Is(err, ErrConfig) {
		t.Errorf("8 devices cannot withstand 5%% to 2^-44: %v", err)
	}
	for n := 2; n <= 40; n++ {
		for _, semi := range []bool{false, true} {
			c := Config{CorruptPPM: 100000, BreachBits: 5, SemiHonest: semi}
			got, err := c.Threshold(n)
			if err != nil {
				continue
			}
			p := big.NewRat(1, 10)
			if !tail.Binomial(n, p, tail.BreachCount(n, got, semi)).AtMost(5) {
				t.Errorf("n=%d semi=%v: t=%d is too low", n, semi, got)
			}
			if got > tail.LeastThreshold(n, semi) && tail.Binomial(n, p, tail.BreachCount(n, got-1, semi)).AtMost(5) {
				t.Errorf("n=%d semi=%v: t=%d is not the least", n, semi, got)
			}
			if !semi && 2*got <= n {
				t.Errorf("n=%d: t=%d is no majority", n, got)
			}
		}
	}
	// A third, where nothing is corrupted and the server is honest.
	for n, want := range map[int]int{2: 2, 3: 2, 6: 2, 7: 3, 64: 22, 128: 43} {
		if got, err := (Config{SemiHonest: true}).Threshold(n); err != nil || got != want {
			t.Errorf("a third of %d: %d, %v", n, got, err)
		}
	}
	// The demonstration's profile.
	for n, want := range map[int]int{2: 2, 3: 2, 4: 3, 5: 3, 10: 6} {
		if got, err := (Config{}).Threshold(n); err != nil || got != want {
			t.Errorf("plain majority of %d: %d, %v", n, got, err)
		}
	}
}
