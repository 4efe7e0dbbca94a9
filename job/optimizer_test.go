package job

import (
	"strings"
	"testing"
)

// A server's learning rate and epsilon follow the optimizer, unless they are given.
func TestServerRatesFollowTheOptimizer(t *testing.T) {
	for text, want := range map[string][2]float64{
		"":                        {1, 1e-3}, // as it was: the job's hash
		"{optimizer: fedavg}":     {1, 1e-3},
		"{optimizer: fedadam}":    {1e-3, 1e-5},
		"{optimizer: fedyogi}":    {1e-3, 1e-5},
		"{optimizer: fedadagrad}": {0.1, 1e-5},
		"{optimizer: fedadam, learning_rate: 1, epsilon: 1.0e-3}": {1, 1e-3},
		"{optimizer: fedadam, learning_rate: 0.5}":                {0.5, 1e-5},
	} {
		job := "name: a\nlabels: [x, y]\n"
		if text != "" {
			job += "server: " + text + "\n"
		}
		j, err := Parse(strings.NewReader(job))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := [2]float64{j.Server.LearningRate, j.Server.Epsilon}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// Passes that no device can make within its steps are refused with what would do.
func TestEpochsFitTheSteps(t *testing.T) {
	_, err := Parse(strings.NewReader("name: a\nlabels: [x, y]\ntraining: {epochs: 16}\n"))
	if err == nil || !strings.Contains(err.Error(), "training.epochs is 16 and training.steps 4") || !strings.Contains(err.Error(), "16 for devices of up to") {
		t.Error(err)
	}
	if _, err = Parse(strings.NewReader("name: a\nlabels: [x, y]\ntraining: {epochs: 16, steps: 16}\n")); err != nil {
		t.Error(err)
	}
}
