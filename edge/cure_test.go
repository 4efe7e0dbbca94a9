package edge

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

var recommended = regexp.MustCompile(`privacy\.own_noise: ([0-9.e+]+)|privacy\.groups: (\d+)|rounds: (\d+)`)

// Whatever a job and whatever the data has told before: each single thing that a refusal recommends
// passes, and if bits are left, more noise is among it.
func TestRefusalsNameWhatWouldDo(t *testing.T) {
	p := DefaultPolicy()
	p.ExampleNoise = 1
	refused, by := 0, map[string]int{}
	for _, v := range []float64{0, 0.01, 0.05, 0.1, 0.3, 1, 3} {
		for _, k := range []uint32{0, 1, 4, 16, 64, 256} {
			for _, rounds := range []uint64{1, 20, 200, 10_000} {
				for _, units := range []uint32{0, 8} {
					for _, steps := range []uint32{0, 1, 4} {
						for _, had := range []Shown{{}, {5000, p.ExampleBits / 2, 0}, {9999, p.ExampleBits - 0.001, 2}, {10_001, 1, 0}} {
							j := wire.Job{Rounds: rounds, Groups: k, Providers: units, Privacy: wire.Privacy{OwnNoise: v}}
							j.Steps, j.ClipNorm, j.Batch = steps, 1, 64
							if v > 0 {
								j.Privacy.Noise = wire.NoiseDevices
							}
							found := p.checkNoise(&j, had)
							if len(found) == 0 {
								continue
							}
							refused++
							all := recommended.FindAllStringSubmatch(PolicyErrors(found[0])[0].Want, -1)
							more := false
							for _, m := range all {
								trial := j
								var err error
								switch {
								case m[1] != "":
									more = true
									trial.Privacy.Noise = wire.NoiseDevices
									trial.Privacy.OwnNoise, err = strconv.ParseFloat(m[1], 64)
									by["noise"]++
								case m[2] != "":
									var n uint64
									n, err = strconv.ParseUint(m[2], 10, 32)
									trial.Groups = uint32(n)
									by["groups"]++
								default:
									trial.Rounds, err = strconv.ParseUint(m[3], 10, 64)
									by["rounds"]++
								}
								ok(t, err)
								if again := p.checkNoise(&trial, had); len(again) > 0 {
									t.Errorf("v %v, k %d, %d rounds, %d units, had %v: %s, and then: %v", v, k, rounds, units, had, m[0], again[0])
								}
								if m[2] != "" {
									if again := p.checkPlanned(&trial); len(p.checkPlanned(&j)) == 0 && len(again) > 0 {
										t.Errorf("k %d, %d steps: %s, and then: %v", k, steps, m[0], again[0])
									}
								}
							}
							if left := had.Data < p.Bits; more != left {
								t.Errorf("v %v, k %d, %d rounds, had %v: more noise recommended: %v", v, k, rounds, had, more)
							}
						}
					}
				}
			}
		}
	}
	if refused < 1000 || by["noise"] < 500 || by["groups"] < 50 || by["rounds"] < 50 {
		t.Errorf("%d were refused, recommended %v: the grid shows nothing", refused, by)
	}
}
