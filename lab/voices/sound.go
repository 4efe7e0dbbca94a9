package voices

import (
	"math"
	"math/rand/v2"

	"github.com/starling-fl/starling/data/audio"
)

// recorded is what a speaker's recording of some speech holds: through its throat, its room
// and its microphone, over its noise. A word's recording lasts at most a second.
func (s *Speaker) recorded(rng *rand.Rand, speech *audio.Sound, rate int, word bool) (*audio.Sound, error) {
	// Read at another rate all resonances move, and so do pitch and tempo, by less than what
	// they are varied by anyway. A multiple of 50 keeps the filter short.
	throat := s.Throat * (1 + 0.015*rng.NormFloat64())
	heard := &audio.Sound{Rate: int(float64(speech.Rate)*throat/50+0.5) * 50, Samples: speech.Samples}
	heard, err := heard.Resampled(rate)
	if err != nil {
		return nil, err
	}
	x := placed(rng, spoken(heard.Samples, 0.02), rate, word, s.Trims)
	x = s.room(rng, x, rate)
	s.microphone(rng, x)
	return &audio.Sound{Rate: rate, Samples: x}, nil
}

// spoken is what is between the silences at both ends, below a share of the loudest.
func spoken(x []float32, share float32) []float32 {
	peak := float32(0)
	for _, v := range x {
		peak = max(peak, v, -v)
	}
	first, last := 0, len(x)
	for first < last && max(x[first], -x[first]) <= share*peak {
		first++
	}
	for last > first && max(x[last-1], -x[last-1]) <= share*peak {
		last--
	}
	return x[first:last]
}

// placed is speech with silence about it.
func placed(rng *rand.Rand, x []float32, rate int, word, trims bool) []float32 {
	margin := func(most float64) int { return int(most * rng.Float64() * float64(rate)) }
	before, n := 0, 0
	switch {
	case trims:
		before = margin(0.03)
		n = before + len(x) + margin(0.05)
	case word: // somewhere in a second
		n = rate
		before = int(float64(max(0, n-len(x))) * rng.Float64())
	default:
		before = margin(0.3)
		n = before + len(x) + margin(0.3)
	}
	if word {
		n = min(n, rate)
	}
	out := make([]float32, n)
	if before < n {
		copy(out[before:], x)
	}
	return out
}

// room adds what walls send back: some echoes at places of their own, each weaker, and the
// echoes of these.
func (s *Speaker) room(rng *rand.Rand, x []float32, rate int) []float32 {
	if s.Room < 0.01 {
		return x
	}
	const walls = 6
	out := make([]float32, len(x))
	copy(out, x)
	for range walls {
		late := max(1, int(s.Delay*(0.2+rng.Float64())*float64(rate)))
		back := float32(s.Room / math.Sqrt(walls) * (0.5 + rng.Float64()))
		if rng.IntN(2) == 0 {
			back = -back
		}
		for i := late; i < len(out); i++ {
			out[i] += back * x[i-late]
		}
		for i := 2 * late; i < len(out); i++ {
			out[i] += back * back * x[i-2*late]
		}
	}
	return out
}

// microphone colours, amplifies and adds noise, all in place; what is too loud is cut off.
func (s *Speaker) microphone(rng *rand.Rand, x []float32) {
	low, power := 0.0, 0.0
	for i, v := range x {
		low += 0.25 * (float64(v) - low)
		y := float64(v) + s.Tilt*(float64(v)-2*low)
		x[i] = float32(y)
		power += y * y
	}
	if power == 0 {
		return
	}
	loud := 0.02 * math.Pow(10, rng.Float64()) // 0.02 to 0.2: nobody speaks twice as loud as the time before
	gain := loud / math.Sqrt(power/float64(len(x)))
	noise := loud * math.Pow(10, -(s.Noise+3*rng.NormFloat64())/20)
	low = 0
	for i, v := range x {
		white := rng.NormFloat64()
		low += 0.1 * (white - low)
		y := gain*float64(v) + noise*(s.Bright*white+(1-s.Bright)*4*low)
		x[i] = float32(max(-1, min(1, y)))
	}
}
