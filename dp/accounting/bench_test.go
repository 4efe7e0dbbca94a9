package accounting

import (
	"fmt"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/cputime"

	"github.com/starling-fl/starling/dp"
)

func BenchmarkEpsilon(b *testing.B) {
	for _, c := range []struct {
		q, z   float64
		rounds int
		delta  float64
	}{{0.01, 1, 2000, 1e-6}, {0.01, 1, 2000, 1e-12}, {0.01, 0.6, 300, 1e-6}, {0.0001, 1, 100000, 1e-6}, {1e-5, 1, 100000, 1e-12}, {1.4e-4, 0.37, 7, 1e-7}} {
		for _, acct := range []dp.Accountant{dp.Tight, dp.RDP} {
			b.Run(fmt.Sprintf("%s/q=%g,z=%g,T=%d,delta=%g", acct, c.q, c.z, c.rounds, c.delta), func(b *testing.B) {
				var g dp.Guarantee
				defer cputime.Benchmark(b)()
				for b.Loop() {
					var err error
					if g, err = Epsilon([]dp.Event{dp.Rounds(dp.Mechanism{SamplingRate: c.q, NoiseMultiplier: c.z}, c.rounds)}, c.delta, acct); err != nil {
						b.Fatal(err)
					}
				}
				if acct == dp.Tight {
					b.ReportMetric((g.Epsilon-g.EpsilonLower)/g.Epsilon, "gap")
				}
			})
		}
	}
}

func BenchmarkCalibrateNoise(b *testing.B) {
	for _, acct := range []dp.Accountant{dp.Tight, dp.RDP} {
		b.Run(string(acct), func(b *testing.B) {
			defer cputime.Benchmark(b)()
			for b.Loop() {
				if _, err := CalibrateNoise(2, 1e-6, 0.01, 2000, acct); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCalibrateRare: rare members and many rounds need transforms in double
// arithmetic.
func BenchmarkCalibrateRare(b *testing.B) {
	defer cputime.Benchmark(b)()
	for b.Loop() {
		if _, err := CalibrateNoise(2, 1e-14, 1e-6, 1e6, dp.Tight); err != nil {
			b.Fatal(err)
		}
	}
}
