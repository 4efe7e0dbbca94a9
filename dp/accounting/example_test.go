package accounting_test

import (
	"fmt"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
)

// What 2000 rounds at a sampling rate of 1 % cost.
func ExampleEpsilon() {
	m := dp.Mechanism{SamplingRate: 0.01, NoiseMultiplier: 1.245736}
	g, err := accounting.Epsilon([]dp.Event{dp.Rounds(m, 2000)}, 1e-6, dp.Tight)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("epsilon %.3f at delta %g, %s\n", g.Epsilon, g.Delta, g.Sampling)
	// Output: epsilon 2.000 at delta 1e-06, poisson, participation hidden
}

// How much noise a budget needs.
func ExampleCalibrateNoise() {
	z, err := accounting.CalibrateNoise(2, 1e-6, 0.01, 2000, dp.Tight)
	fmt.Printf("%.4f %v\n", z, err)
	// Output: 1.2457 <nil>
}

// Different mechanisms compose in one ledger.
func ExampleEpsilon_heterogeneous() {
	g, err := accounting.Epsilon([]dp.Event{
		dp.Rounds(dp.Mechanism{SamplingRate: 0.01, NoiseMultiplier: 1.1}, 1500),
		dp.Rounds(dp.Mechanism{SamplingRate: 1, NoiseMultiplier: 8}, 20),
	}, 1e-6, dp.Tight)
	fmt.Printf("%.2f over %d rounds, %v\n", g.Epsilon, g.Rounds, err)
	// Output: 3.40 over 1520 rounds, <nil>
}
