package wire

import (
	"strings"
	"testing"
)

// What is announced of noise that cancels between releases is whole, and of a job that can have it.
func TestSeparationIsAnnounced(t *testing.T) {
	for text, change := range map[string]func(*Job){
		"": func(*Job) {},
		"job.privacy.separation is 1, at least 2": func(j *Job) { j.Privacy.Separation = 1 },
		"job.privacy.separation is 1073741825":    func(j *Job) { j.Privacy.Separation = MaxSeparation + 1 },
		"job.privacy.band is 0":                   func(j *Job) { j.Privacy.Band = 0 },
		"job.privacy.band is 4097":                func(j *Job) { j.Privacy.Band, j.Privacy.Separation = MaxBand+1, 5000 },
		"job.privacy.eighths is 0":                func(j *Job) { j.Privacy.Eighths = 0 },
		"job.privacy.eighths is 8":                func(j *Job) { j.Privacy.Eighths = 8 },
		"job.privacy.separation is 0, at least 2": func(j *Job) { j.Privacy.Separation = 0 },
		"sampling_rate 0.5":                       func(j *Job) { j.Privacy.SamplingRate = 0.5 },
		"2 providers":                             func(j *Job) { j.Providers, j.ProviderRate = 2, 0.5 },
		`job.privacy.noise "devices"`:             func(j *Job) { j.Privacy.Noise, j.Privacy.OwnNoise, j.Privacy.Honest = NoiseDevices, 9, 9 },
	} {
		j := job()
		j.Privacy.SamplingRate, j.Privacy.Separation, j.Privacy.Band, j.Privacy.Eighths = 1, 5, 2, 4
		j.Providers, j.ProviderRate, j.Dual = 0, 0, 0
		change(j)
		_, err := j.AppendBinary(nil)
		if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
