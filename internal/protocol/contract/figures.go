package contract

import (
	"math"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// Metrics are a unit's results on its held-out examples; NaN where not measured.
type Metrics struct {
	Loss  float64 // mean, in nats
	Right float64 // share of the labels, in 0..1
	Speed float64 // of training, steps a second
}

// Places of Metrics in dp.Figures, behind the first, which says that there is anything.
const (
	figureLoss = 1 + iota
	figureRight
	figureSpeed
)

// LossBound is the most that a loss counts, in nats: twice that of a guess among the labels,
// or 12, a guess among 160,000 tokens, where a job has none.
func LossBound(labels int) float64 {
	if labels < 2 {
		return 12
	}
	return 2 * math.Log(float64(labels))
}

// A speed counts by its logarithm, between slowest and fastest steps a second: a fleet's
// devices are some hundredfold apart.
const (
	slowest = 1.0 / 128
	octaves = 16.0
	// Fastest is the most that a speed counts.
	Fastest = slowest * (1 << 16)
)

// Figures are what a unit sends of what it has found, in a job of so many labels: each within
// [-1, 1], whatever was found.
func (s Metrics) Figures(labels int) dp.Figures {
	within := func(x float64) float64 { // 0..1 to -1..1
		if math.IsNaN(x) {
			return 0
		}
		return min(max(2*x-1, -1), 1)
	}
	return dp.Figures{1, within(s.Loss / LossBound(labels)), within(s.Right), within(math.Log2(s.Speed/slowest) / octaves)}
}

// MeanMetrics is the mean of what a round's units measured, with the standard deviation of the noise in
// it. Speed is a geometric mean, its noise a factor.
type MeanMetrics struct {
	Units metric.Noisy // that measured anything
	Loss  metric.Noisy
	Right metric.Noisy
	Speed metric.Noisy
}

// DecodeMetrics reads the noisy sum of figures, in whose coordinates the noise is of standard deviation
// sigma; not ok where the noise leaves nothing of them. It is made of what is released, and
// costs nothing more.
func DecodeMetrics(c dp.FigureCode, sum []int64, sigma float64, labels int) (h MeanMetrics, ok bool) {
	sums, noise := c.Sums(sum), c.Noise(sigma)
	mean := func(k int, scale float64) metric.Noisy {
		m, sd, good := sums.Mean(k, noise)
		ok = good
		return metric.Noisy{Mean: (m + 1) / 2 * scale, Noise: sd / 2 * scale}
	}
	h = MeanMetrics{Units: metric.Noisy{Mean: sums[0], Noise: noise}, Loss: mean(figureLoss, LossBound(labels)), Right: mean(figureRight, 1)}
	s := mean(figureSpeed, octaves)
	h.Speed = metric.Noisy{Mean: slowest * math.Exp2(s.Mean), Noise: math.Exp2(s.Noise)}
	return h, ok
}

// checkFigures refuses a shard's sum of figures that no n units can have made: each says 1
// first if it says anything, and nothing else that is beyond it; coordinates of one figure are
// as good as equal. reach is what devices' own noise comes to in a coordinate at most.
func (v Vector) checkFigures(sum []int64, n int, reach int64) bool {
	m, s := v.Figures.Coordinates, int64(v.Figures.Symbol)
	for i, x := range sum {
		if limit := s*int64(n) + reach; x > limit || x < -limit {
			return false
		}
		if apart := x - sum[i/m*m]; apart > int64(n)+2*reach || apart < -int64(n)-2*reach {
			return false
		}
	}
	if reach > 0 {
		return true
	}
	first := int64(0) // of all coordinates of the first figure
	for _, x := range sum[:m] {
		if x != sum[0] || x < 0 || x%s != 0 {
			return false
		}
		first += x
	}
	for k := 1; k < dp.FigureCount; k++ {
		total := int64(0)
		for _, x := range sum[k*m : (k+1)*m] {
			total += x
		}
		if total > first || total < -first {
			return false
		}
	}
	return true
}
