package sweep

import (
	"math"
	"strings"
	"testing"

	"github.com/starling-fl/starling/simulate"
)

// Each round's noise is held to its own d and clip norm, not to the largest rank's.
func TestNoiseIsJudgedRoundByRound(t *testing.T) {
	const small, large, rho = 912, 3600, 0.8
	expected := func(values int, clip float64) float64 { return rho * clip * math.Sqrt(float64(values)/large) }
	round := func(rank, values int, share float64) simulate.Round {
		return simulate.Round{Rank: rank, Values: values, ClipNorm: 2, NoiseNorm: share * expected(values, 2)}
	}
	for name, c := range map[string]struct {
		uplink string
		rounds []simulate.Round
		want   []string // none: no warning
		not    string
	}{
		"the smallest rank alone, all of its noise": {"fixed16", []simulate.Round{round(1, small, 1), round(1, small, 0.99)}, nil, ""},
		"half of the rounds short, the mean is not": {"nf4", []simulate.Round{round(1, small, 0.57), round(8, large, 1.02)},
			[]string{"1 of 2 rounds (rank 1)", "57 %", "wire.uplink=fixed16"}, ""},
		"fixed16 is on":                {"fixed16", []simulate.Round{round(1, small, 0.3), round(8, large, 0.4)}, []string{"2 of 2 rounds (ranks 1 to 8)", "30 %", "wire.uplink=fixed32"}, "fixed16"},
		"nothing finer is left":        {"fixed32", []simulate.Round{round(8, large, 0)}, []string{"1 of 1 rounds", "A larger --cohort shows"}, "wire.uplink"},
		"by default the uplink is nf4": {"", []simulate.Round{round(8, large, 0.1)}, []string{"wire.uplink=fixed16"}, ""},
		"few values stray":             {"fixed32", []simulate.Round{round(0, 60, 0.8)}, nil, ""},
		"a method without ranks":       {"fixed32", []simulate.Round{round(0, large, 1)}, nil, ""},
	} {
		r := Record{Rho: rho, Values: large, Curve: c.rounds, Settings: Settings{Job: map[string]any{}}}
		if c.uplink != "" {
			set(r.Settings.Job, "wire.uplink", c.uplink)
		}
		said := strings.Join(r.Warnings(), "\n")
		if (said == "") != (c.want == nil) || c.not != "" && strings.Contains(said, c.not) {
			t.Errorf("%s: %q", name, said)
		}
		for _, part := range c.want {
			if !strings.Contains(said, part) {
				t.Errorf("%s: %q does not say %q", name, said, part)
			}
		}
	}
}

// A model below the commonest label is said to be, one above it is not.
func TestModelsBelowTheCommonestLabelAreSaid(t *testing.T) {
	r := Record{Accuracy: 0.123, MajorityAccuracy: 0.25}
	if said := strings.Join(r.Warnings(), ""); !strings.Contains(said, "12.3 %") || !strings.Contains(said, "25.0 %") || !strings.Contains(said, "server.learning_rate") {
		t.Errorf("%q", said)
	}
	for _, r := range []Record{{Accuracy: 0.5, MajorityAccuracy: 0.25}, {Accuracy: 0.1}} {
		if said := r.Warnings(); said != nil {
			t.Errorf("%+v: %q", r, said)
		}
	}
}
