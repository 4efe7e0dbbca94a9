package audio

import (
	"fmt"
	"math"
)

// Resampled is the recording at another rate: rational resampling by a polyphase filter, a
// sinc of 10 zero crossings at the lower of both rates under a Kaiser window with beta 5,
// whose gain at frequency zero is 1. It is scipy.signal.resample_poly's default, beyond the
// ends of a recording being silence. At its own rate it is the recording itself.
func (s *Sound) Resampled(rate int) (*Sound, error) {
	if err := checkShape(rate, 1); err != nil {
		return nil, err
	}
	if err := checkShape(s.Rate, 1); err != nil {
		return nil, err
	}
	if rate == s.Rate {
		return s, nil
	}
	common := divisor(rate, s.Rate)
	up, down := rate/common, s.Rate/common
	n := (len(s.Samples)*up + down - 1) / down
	if n > MaxSamples {
		return nil, fmt.Errorf("audio: at %d samples a second: %w", rate, tooLong(n))
	}
	half, taps := filter(up, down)
	out := &Sound{Rate: rate, Samples: make([]float32, n)}
	for m := range out.Samples {
		at := m*down + half // what is on tap 0, in steps of both rates
		first, last := max(0, (at-2*half+up-1)/up), min(len(s.Samples)-1, at/up)
		sum := 0.0
		for i := first; i <= last; i++ {
			sum += taps[at-i*up] * float64(s.Samples[i])
		}
		out.Samples[m] = float32(sum)
	}
	return out, nil
}

// filter has 2*half+1 taps at up times a recording's rate, symmetric about half.
func filter(up, down int) (half int, taps []float64) {
	const crossings, beta = 10, 5.0
	slow := max(up, down)
	half = crossings * slow
	taps = make([]float64, 2*half+1)
	sum := 0.0
	for i := range taps {
		x := float64(i-half) / float64(slow)
		v := 1.0
		if x != 0 {
			v = math.Sin(math.Pi*x) / (math.Pi * x)
		}
		r := float64(i-half) / float64(half)
		taps[i] = v * bessel(beta*math.Sqrt(max(0, 1-r*r)))
		sum += taps[i]
	}
	for i := range taps {
		taps[i] *= float64(up) / sum
	}
	return half, taps
}

// bessel is the modified Bessel function of the first kind and order 0, by its series
// (Abramowitz and Stegun 9.6.12), for arguments of 0 to 5.
func bessel(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > 1e-17*sum; k++ {
		term *= (x / (2 * k)) * (x / (2 * k))
		sum += term
	}
	return sum
}

func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
