package pretraining

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-fl/starling/model"
)

// Each filter of the first convolution lets its own band through, wherever a wave begins: what the four phases of a band
// make of a tone, rectified, is most in the band whose middle the tone is.
func TestFiltersAreBands(t *testing.T) {
	s := model.Speech{Width: model.Convolutions{64, 64, 64}, Kernel: model.Convolutions{64, 8, 4}, Stride: model.Convolutions{20, 5, 2}, Rate: 8000}
	w := filters(s, 0, rand.New(rand.NewPCG(1, 1)))
	const bands, k = 16, 64
	last := -1
	for _, tone := range []float64{150, 400, 800, 1500, 2500, 3500} {
		best, most := 0, 0.0
		for b := range bands {
			energy := 0.0
			for shift := range 7 {
				for p := range phases {
					y := 0.0
					for i := range k {
						y += float64(w[(b*phases+p)*k+i]) * math.Sin(2*math.Pi*tone*float64(i+shift)/8000)
					}
					energy += max(0, y)
				}
			}
			if energy > most {
				best, most = b, energy
			}
		}
		mel := func(f float64) float64 { return 1127 * math.Log1p(f/700) }
		want := (mel(tone)-mel(80))/(mel(3840)-mel(80))*(bands+1) - 1
		if math.Abs(float64(best)-want) > 1.5 || best <= last {
			t.Errorf("%v Hz are in band %d, want about %.1f and more than %d", tone, best, want, last)
		}
		last = best
	}
	// The second convolution takes a band's energy, however many phases it has.
	e := filters(s, 1, rand.New(rand.NewPCG(1, 1)))
	own, others := 0.0, 0.0
	for j, v := range e[3*64*8 : 4*64*8] {
		if j/8/phases == 3 {
			own += float64(v)
		} else {
			others += math.Abs(float64(v)) / 15
		}
	}
	if own < 3 || others > own/2 {
		t.Errorf("filter 3 takes %.2f of its band and %.2f of another", own, others)
	}
	s.Kernel[0] = 10 // as the published models have it: too short to tell pitches apart
	if filters(s, 0, rand.New(rand.NewPCG(1, 1))) != nil {
		t.Error("filters of a millisecond")
	}
}
