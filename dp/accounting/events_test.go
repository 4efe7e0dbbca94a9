package accounting

import (
	"math"
	"testing"

	"github.com/starling-fl/starling/dp"
)

func testEvent(t testing.TB, round uint64) dp.Event {
	t.Helper()
	e, err := dp.ReleaseSpec{Round: round, SamplingRate: 0.01, B2: 2_936_012, NoiseMultiplier: 1.2457365, NoiseScale: 1, Certificate: [32]byte{1, 2, 3}}.Event(135_680)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func ownEvent(t testing.TB, o dp.OwnNoise) dp.Event {
	t.Helper()
	e, err := dp.ReleaseSpec{Round: 1, SamplingRate: 0.01, B2: 2_936_012, NoiseMultiplier: 1.2457365, NoiseScale: 1, Own: o}.Event(135_680)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func lchoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
