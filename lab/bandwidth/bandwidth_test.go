package bandwidth

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

// TestStandIn checks that a model is found for every number of values asked
// for, with exactly that many.
func TestStandIn(t *testing.T) {
	for _, params := range []int{100, 999, 1000, 9001, 65_536, 135_176, 1_000_003, 3_419_136} {
		h, n, b, c := standInShape(params)
		if 4*n*h*b+(h+1)*c != params || b > h || c < 2 || c > 4000 {
			t.Errorf("%d values: width %d, layers %d, rank %d, classes %d", params, h, n, b, c)
		}
	}
	s, err := StandIn(Size{Params: 9000}, 2)
	if err != nil || s.Params() != 9000 || len(s.updates[0]) != 9000 {
		t.Errorf("stand-in: %v", err)
	}
	var bad *SettingError
	if _, err := StandIn(Size{Params: 7}, 2); !errors.As(err, &bad) || bad.Setting != "params" {
		t.Errorf("seven values: %v", err)
	}
}

func TestAdapterSizes(t *testing.T) {
	sizes, err := AdapterSizes(nil)
	if err != nil || sizes[len(sizes)-1] != (Size{16, 135_176}) {
		t.Errorf("sizes %v, %v", sizes, err)
	}
}

// TestMeasure calls the engine as the command does: a masked row costs keys and
// its ring's bits, one in the clear costs neither.
func TestMeasure(t *testing.T) {
	cfg := Config{Cohort: 4, Shard: 4, Rounds: 2, JobRounds: 10, Downlink: "bf16", Clip: 0.5, NoiseMultiplier: 1}
	s, err := StandIn(Size{Rank: 5, Params: 3000}, cfg.Cohort)
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []Scheme{{"int5", true}, {"int8", false}} {
		row, err := cfg.Measure(t.Context(), s, scheme, "zstd")
		if err != nil {
			t.Fatal(err)
		}
		p := row.Parts
		if sum := p.Vector + p.Slices + p.Keys + p.Assignment + p.Session + p.Framing + p.WebSocket; math.Abs(sum-row.BytesUp-row.BytesDown) > 1e-6*sum {
			t.Errorf("%s: parts add up to %v, the sockets carried %v", scheme, sum, row.BytesUp+row.BytesDown)
		}
		if row.Rank != 5 || row.Params != 3000 || scheme.Masked != (p.Keys > 0) || scheme.Masked != (row.RingBits > 0) {
			t.Errorf("%s: %+v", scheme, row)
		}
		// Updates of norm 1 are clipped to a half: the error is that of quantization alone.
		if row.RelativeMSE > 0.03 || row.Cosine < 0.98 {
			t.Errorf("%s: error %v, cosine %v", scheme, row.RelativeMSE, row.Cosine)
		}
	}
}

// TestMeasureOwnNoise: devices' noise costs the bits of its ring, and a coarse lattice
// makes more of it than a fine one.
func TestMeasureOwnNoise(t *testing.T) {
	s, err := StandIn(Size{Rank: 5, Params: 3000}, 4)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]Row{}
	for _, scheme := range []string{"tern", "int5"} {
		for _, v := range []float64{0, 0.2} {
			cfg := Config{Cohort: 4, Shard: 4, Rounds: 2, JobRounds: 10, Downlink: "bf16", Clip: 1, NoiseMultiplier: 1, OwnNoise: v}
			row, err := cfg.Measure(t.Context(), s, Scheme{scheme, true}, "none")
			if err != nil {
				t.Fatal(err)
			}
			rows[fmt.Sprint(scheme, v)] = row
		}
	}
	if a, b := rows["int50"], rows["int50.2"]; b.RingBits < a.RingBits+4 || a.OwnVariance != 0 || b.Bits < a.Bits+4 {
		t.Errorf("int5: %d bits without own noise, %d with", a.RingBits, b.RingBits)
	}
	// What clipping at L standard deviations takes is made up for, and more of the noise with
	// it, by 1/erf(L/sqrt 2)^2: 1.424 of tern and 1.0054 of int5. The norm bound's allowance
	// for chance is 7.6 and 2 % of 3,072 coordinates.
	for scheme, want := range map[string]float64{"tern": 1.555, "int5": 1.027} {
		if have := rows[scheme+"0.2"].OwnVariance; have < want*0.98 || have > want*1.03 {
			t.Errorf("%s: variance %.4f, want about %.3f", scheme, have, want)
		}
	}
}

func TestRefuses(t *testing.T) {
	good := Config{Cohort: 3, Shard: 3, Rounds: 2, JobRounds: 2, Downlink: "bf16", Clip: 1, NoiseMultiplier: 1}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for setting, spoil := range map[string]func(*Config){
		"cohort": func(c *Config) { c.Cohort = 2 }, "shard": func(c *Config) { c.Shard = 1025 }, "rounds": func(c *Config) { c.Rounds = 1 },
		"job-rounds": func(c *Config) { c.JobRounds = 0 }, "downlink": func(c *Config) { c.Downlink = "f64" },
		"clip": func(c *Config) { c.Clip = math.NaN() }, "own-noise": func(c *Config) { c.OwnNoise = -1 }, "noise multiplier": func(c *Config) { c.NoiseMultiplier = 0 },
	} {
		c := good
		spoil(&c)
		var bad *SettingError
		if err := c.Validate(); !errors.As(err, &bad) || bad.Setting != setting {
			t.Errorf("%s: %v", setting, err)
		}
	}
	s, err := StandIn(Size{Params: 100}, 4)
	if err != nil {
		t.Fatal(err)
	}
	for what, measure := range map[string]func() (Row, error){
		"cohort":  func() (Row, error) { return good.Measure(t.Context(), s, Scheme{"nf4", true}, "none") },
		"schemes": func() (Row, error) { return good.Measure(t.Context(), s, Scheme{"nf5", true}, "none") },
		"codecs":  func() (Row, error) { return good.Measure(t.Context(), s, Scheme{"nf4", true}, "gzip") },
	} {
		var bad *SettingError
		if _, err := measure(); !errors.As(err, &bad) || bad.Setting != what {
			t.Errorf("%s: %v", what, err)
		}
	}
}
