package wire

import (
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
}
