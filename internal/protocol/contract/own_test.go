package contract

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
)

// noisy is the vector of a job with own noise, and its terms.
func noisy(t *testing.T, uplink string, shard, values int, v float64) (Terms, Vector) {
	t.Helper()
	terms, err := Job{Uplink: uplink, Masking: secagg.Config{ShardMax: shard, ShardMin: 2}, Own: Own{v, 1e-6, 200}}.Terms()
	if err != nil {
		t.Fatal(err)
	}
	vector, err := terms.Planned(&wire.Plan{Values: uint32(values), ClipNorm: 1, CountCoordinates: 3, CountSymbol: 1})
	if err != nil {
		t.Fatal(err)
	}
	return terms, vector
}

// TestRoomForOwnNoise holds the ring to figures computed by hand: nf4 over 135,000 values
// has a squared norm of some 21.4 a coordinate, so that own noise of .0094 is 16.03 grid units wide;
// tails are cut where 1000 * 135,171 * 400 / 1e-6 < 2^56 such events have a chance of one, 8.81
// standard deviations.
func TestRoomForOwnNoise(t *testing.T) {
	terms, v := noisy(t, "nf4", 64, 135_000, 0.0094)
	sigma := math.Sqrt(v.Own.Float())
	if v.Size() != 135_171 || math.Abs(sigma-16.03) > 0.01 || math.Abs(v.tail-8.811) > 0.001 {
		t.Fatalf("%d coordinates, sigma %.3f, tail %.4f", v.Size(), sigma, v.tail)
	}
	c := terms.Masking(v)
	if want := 64*12 + int(math.Ceil(v.tail*sigma*8)); c.MaxSum != want || c.MaxSymbol != 12+int(math.Ceil(v.tail*sigma)) || c.Width != 12 || terms.Bits(v) != 12 {
		t.Errorf("width %d, symbols to %d, sums to %d, want 12 bits and %d", c.Width, c.MaxSymbol, c.MaxSum, want)
	}
	// What has a width of its own keeps it, and grows where it must.
	for noise, width := range map[float64]int{0.0001: 16, 0.01: 17, 1: 22} {
		if terms, v := noisy(t, "fixed16", 64, 135_000, noise); terms.Bits(v) != width {
			t.Errorf("fixed16 with own noise %v: %d bits, want %d", noise, terms.Bits(v), width)
		}
	}
	// Noise that is finer than the grid is refused, and one without a delta.
	for name, j := range map[string]Job{
		"narrow":   {Uplink: "tern", Masking: secagg.Config{ShardMax: 8}, Own: Own{0.001, 1e-6, 200}},
		"no delta": {Uplink: "nf4", Masking: secagg.Config{ShardMax: 8}, Own: Own{Noise: 1, Rounds: 200}},
		"no round": {Uplink: "nf4", Masking: secagg.Config{ShardMax: 8}, Own: Own{Noise: 1, Delta: 1e-6}},
	} {
		terms, err := j.Terms()
		if err == nil {
			_, err = terms.Planned(&wire.Plan{Values: 1000, ClipNorm: 1})
		}
		if !errors.Is(err, ErrUplink) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHonestNoisySumsPass: updates at the full norm, all alike, under the noise that
// devices add; what is beyond it is refused in each of the ways.
func TestHonestNoisySumsPass(t *testing.T) {
	for trial, uplink := range quant.SchemeNames() {
		const n = 6
		terms, v := noisy(t, uplink, n, 3000, 0.4)
		noise := dp.NewSampler(rand.NewChaCha8([32]byte{byte(trial)}))
		d, sum := v.Lattice.D(), make([]int64, v.Size())
		x := make([]float32, v.Lattice.Dim())
		for i := range x {
			x[i] = float32(math.Sin(float64(i)))
		}
		for device := range n {
			symbols := make([]int32, v.Size())
			if _, err := v.Lattice.EncodeInto(symbols[:d], x, rand.NewChaCha8([32]byte{byte(trial), byte(device)})); err != nil {
				t.Fatal(err)
			}
			v.Count.Encode(symbols[d:], true)
			if err := dp.AddOwn(symbols, v.Own, noise); err != nil {
				t.Fatal(err)
			}
			for i, s := range symbols {
				sum[i] += int64(s)
				if c := terms.Masking(v); int(s) > c.MaxSymbol || int(-s) > c.MaxSymbol {
					t.Errorf("%s: symbol %d, room for %d", uplink, s, c.MaxSymbol)
				}
			}
		}
		if err := v.CheckSum(sum, n, n); err != nil {
			t.Errorf("%s: %v", uplink, err)
		}
		limit := n*int64(v.Lattice.MaxSymbol()) + v.reach(n)
		for name, change := range map[string]func(s []int64){
			"a coordinate":  func(s []int64) { s[7] = limit + 1 },
			"the other way": func(s []int64) { s[7] = -limit - 1 },
			"a count":       func(s []int64) { s[d+1] = n*int64(v.Count.Symbol) + v.reach(n) + 1 },
			"counts apart":  func(s []int64) { s[d], s[d+1] = -v.reach(n), v.reach(n)+1 },
			"a norm": func(s []int64) {
				for i := range s[:d] {
					s[i] = limit * 9 / 10
				}
			},
			"another's, in a sum of fewer": func(s []int64) { s[7] = limit },
		} {
			bad, devices := slices.Clone(sum), n
			if change(bad); name == "another's, in a sum of fewer" {
				devices--
			}
			if err := v.CheckSum(bad, n, devices); !errors.Is(err, quant.ErrRange) {
				t.Errorf("%s: %s: %v", uplink, name, err)
			}
		}
		if err := v.CheckSum(sum[1:], n, n); !errors.Is(err, quant.ErrLength) {
			t.Errorf("%s: a short sum: %v", uplink, err)
		}
	}
}
