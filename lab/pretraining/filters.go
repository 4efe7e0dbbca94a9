package pretraining

import (
	"math"
	"math/rand/v2"

	"github.com/starling-fl/starling/model"
)

// shortestWindow is of a first convolution that tells pitches apart: 4 ms.
const shortestWindow = 0.004

// filters are what convolution i of a base that hears starts as, or nil where its windows are too
// short. The first is a bank of band-passes whose middles lie evenly on the mel scale, each in
// four phases, whose rectified sum is a band's energy; the second takes these sums, what they
// differ by from the band two further and how they change in time; those behind it go on with what
// is there. A tenth of chance is in each. A base that starts so tells words after some hundred
// steps; one that starts by chance alone has the energies still to find.
func filters(s model.Speech, i int, rng *rand.Rand) []float32 {
	if float64(s.Kernel[0]) < shortestWindow*float64(s.Rate) || s.Width[0]%phases != 0 {
		return nil
	}
	in, out, k := 1, s.Width[i], s.Kernel[i]
	if i > 0 {
		in = s.Width[i-1]
	}
	w := make([]float32, out*in*k)
	for o := range out {
		v := make([]float64, in*k)
		switch i {
		case 0:
			bandPass(s, v, o)
		case 1:
			energies(v, o, s.Width[0]/phases, k)
		default:
			for t := range k {
				v[o%in*k+t] = 1
				if o >= in { // its change
					v[o%in*k+t] = along(t, k)
				}
			}
		}
		norm := 0.0
		for _, x := range v {
			norm += x * x
		}
		scale, chance := math.Sqrt2/math.Sqrt(max(norm, 1e-9)), 0.1*math.Sqrt(2/float64(in*k))
		switch {
		case i == 0:
			chance = 0
		case norm == 0:
			chance *= 10
		}
		for j, x := range v {
			w[o*in*k+j] = float32(scale*x + chance*rng.NormFloat64())
		}
	}
	return w
}

// phases of a band.
const phases = 4

// bandPass writes filter o of the first convolution.
func bandPass(s model.Speech, v []float64, o int) {
	mel := func(f float64) float64 { return 1127 * math.Log1p(f/700) }
	rate, bands := float64(s.Rate), s.Width[0]/phases
	low, high := mel(80), mel(0.48*rate)
	edge := func(b int) float64 {
		return 700 * math.Expm1((low+(high-low)*float64(b)/float64(bands+1))/1127)
	}
	b := o / phases
	k := float64(len(v))
	long := min(k, max(k/3, 2.5*rate/(edge(b+2)-edge(b)))) // samples
	for i := range v {
		t := float64(i) - (k-1)/2
		if math.Abs(t) < long/2 {
			v[i] = (0.5 + 0.5*math.Cos(2*math.Pi*t/long)) * math.Cos(2*math.Pi*(edge(b+1)*t/rate+float64(o%phases)/phases))
		}
	}
}

// energies writes filter o of the second convolution, [in, k].
func energies(v []float64, o, bands, k int) {
	what, b := o/bands, o%bands
	for p := range phases {
		for t := range k {
			h := 0.5 - 0.5*math.Cos(2*math.Pi*float64(t+1)/float64(k+1))
			at := (b*phases+p)*k + t
			switch what {
			case 0:
				v[at] = h
			case 1:
				v[at] = h
				v[((b+2)%bands*phases+p)*k+t] = -h
			case 2:
				v[at] = h * along(t, k)
			}
		}
	}
}

// along goes from -1 to 1.
func along(t, k int) float64 { return 2*float64(t)/float64(max(1, k-1)) - 1 }
