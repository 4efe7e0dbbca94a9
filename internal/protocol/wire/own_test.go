package wire

import (
	"math"
	"strings"
	"testing"
)

// TestOwnNoiseIsWhatIsClaimed: a job that counts devices' noise announces as much of it as
// it claims for the number of devices that it counts on.
func TestOwnNoiseIsWhatIsClaimed(t *testing.T) {
	for name, c := range map[string]struct {
		p    Privacy
		want string // of the error; empty: none
	}{
		"central":                   {Privacy{NoiseMultiplier: 1}, ""},
		"central, and some of own":  {Privacy{NoiseMultiplier: 1, OwnNoise: 0.1}, ""},
		"central, and counted":      {Privacy{NoiseMultiplier: 1, OwnNoise: 0.1, Honest: 100}, "job.privacy.honest"},
		"devices":                   {Privacy{NoiseMultiplier: 1, Noise: NoiseDevices, OwnNoise: 0.1, Honest: 100}, ""},
		"devices, a little less":    {Privacy{NoiseMultiplier: 1.001, Noise: NoiseDevices, OwnNoise: 0.1, Honest: 100}, "add 1"},
		"devices, of fewer":         {Privacy{NoiseMultiplier: 1, Noise: NoiseDevices, OwnNoise: 0.1, Honest: 99}, "add 0.99"},
		"devices that are none":     {Privacy{NoiseMultiplier: 1, Noise: NoiseDevices, OwnNoise: 1}, "job.privacy.honest"},
		"silo":                      {Privacy{NoiseMultiplier: 0.8, Noise: NoiseSilo, OwnNoise: 0.8, Honest: 1}, ""},
		"silo without":              {Privacy{NoiseMultiplier: 0.8, Noise: NoiseSilo, Honest: 1}, "add 0"},
		"another word":              {Privacy{NoiseMultiplier: 0.8, Noise: "local", OwnNoise: 1, Honest: 1}, "job.privacy.noise"},
		"noise that takes some off": {Privacy{NoiseMultiplier: 1, OwnNoise: -0.1}, "job.privacy.own_noise"},
	} {
		j := job()
		j.Privacy = c.p
		_, err := j.AppendBinary(nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// A group's data must not move the others' later vectors, nor may there be more groups than fit.
	for name, c := range map[string]struct {
		dual   float64
		groups uint32
		noise  string
		want   string
	}{
		"groups":            {0, 256, NoiseCentral, ""},
		"too many":          {0, 257, NoiseCentral, "job.groups"},
		"one is none":       {1, 1, NoiseDevices, ""},
		"groups and shares": {1, 2, NoiseDevices, "job.groups"},
		"groups and whole":  {1, 2, NoiseSilo, ""},
	} {
		j := job()
		j.Dual, j.Groups = c.dual, c.groups
		j.Providers, j.ProviderRate = 0, 0
		if j.Privacy = (Privacy{NoiseMultiplier: 1, Noise: c.noise}); c.noise != NoiseCentral {
			j.Privacy.OwnNoise, j.Privacy.Honest = 1, 1
		}
		_, err := j.AppendBinary(nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestDualOfWhat: a device keeps a dual variable where one unit's data moves its own vector
// alone, or where each vector carries all of the noise.
func TestDualOfWhat(t *testing.T) {
	for name, c := range map[string]struct {
		dual      float64
		providers uint32
		noise     string
		want      string // of the error; empty: none
	}{
		"none":               {0, 4, NoiseCentral, ""},
		"devices":            {1, 0, NoiseCentral, ""},
		"devices, own noise": {1, 0, NoiseDevices, ""},
		"providers":          {8.4, 4, NoiseCentral, "job.providers"},
		"providers, shares":  {8.4, 4, NoiseDevices, "job.providers"},
		"providers, whole":   {8.4, 4, NoiseSilo, ""},
		"devices, of two":    {2, 0, NoiseCentral, "job.dual"},
		"negative":           {-1, 0, NoiseCentral, "job.dual"},
		"tiny":               {1e-300, 0, NoiseCentral, "job.dual"},
		"no number":          {math.NaN(), 0, NoiseCentral, "job.dual"},
		"endless":            {math.Inf(1), 0, NoiseCentral, "job.dual"},
	} {
		j := job()
		j.Dual, j.Providers = c.dual, c.providers
		if j.ProviderRate = 0; c.providers > 0 {
			j.ProviderRate = 0.5
		}
		if j.Privacy = (Privacy{NoiseMultiplier: 1, Noise: c.noise}); c.noise != NoiseCentral {
			j.Privacy.OwnNoise, j.Privacy.Honest = 1, 1
		}
		_, err := j.AppendBinary(nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
