package voices

import (
	"math"
	"math/rand/v2"

	"github.com/starling-fl/starling/data/audio"
)

// Varied is a recording as another speaker, place or microphone might have made it: at
// another pace and pitch, in another room, filtered, with noise, and with more or less silence
// about it. What
// is learnt from recordings that vary so is what they have in common.
func Varied(rng *rand.Rand, s *audio.Sound) *audio.Sound {
	from := s.Samples
	if rng.IntN(10) < 7 {
		from = spoken(from, 0.08)
	}
	if len(from) < s.Rate/10 { // a crack louder than all else
		from = s.Samples
	}
	step := math.Exp(0.18 * (2*rng.Float64() - 1)) // samples of one for each of the other
	before := int(0.15 * rng.Float64() * float64(s.Rate))
	if rng.IntN(3) == 0 {
		before = 0
	}
	n := int(float64(len(from)-1)/step) + 1
	x := make([]float32, before+n+rng.IntN(1+s.Rate/10))
	for i := range n {
		at := float64(i) * step
		k := int(at)
		v := from[k]
		if k+1 < len(from) {
			v += float32(at-float64(k)) * (from[k+1] - v)
		}
		x[before+i] = v
	}
	if rng.IntN(2) == 0 {
		heard := Speaker{Room: 0.5 * rng.Float64(), Delay: 0.003 + 0.03*rng.Float64()}
		x = heard.room(rng, x, s.Rate)
	}
	// A filter with three taps of chance: what a microphone or a codec does to a spectrum.
	a, b := 0.9*(2*rng.Float64()-1), 0.4*(2*rng.Float64()-1)
	power, last, older := 0.0, 0.0, 0.0
	for i, v := range x {
		y := float64(v) + a*last + b*older
		last, older = float64(v), last
		x[i] = float32(y)
		power += y * y
	}
	noise := math.Sqrt(power/float64(len(x))) * math.Pow(10, -(5+35*rng.Float64())/20)
	bright, low := rng.Float64(), 0.0
	for i := range x {
		white := rng.NormFloat64()
		low += 0.1 * (white - low)
		x[i] += float32(noise * (bright*white + (1-bright)*4*low))
	}
	return &audio.Sound{Rate: s.Rate, Samples: x}
}
