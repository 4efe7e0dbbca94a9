package sweep

import (
	"strings"
	"testing"
)

const excepted = `
vary:
  regime: {noisy: {privacy.epsilon: 2}, free: {privacy.none: true, unclipped: true}}
  adapter.rank_max: [1, 2]
`

// Points are left out by their places, runs go seed by seed, and a group that names
// nothing is refused.
func TestExceptAndSeedBySeed(t *testing.T) {
	p, err := Parse(strings.NewReader(excepted+"except: [{regime: free, adapter.rank_max: \"1\"}]\nseeds: [7, 3]"), "")
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, at := range p.BySeed() {
		order = append(order, at.On["seed"]+at.On["regime"]+at.On["adapter.rank_max"])
	}
	if got := strings.Join(order, " "); got != "7free2 7noisy1 7noisy2 3free2 3noisy1 3noisy2" {
		t.Errorf("points %s", got)
	}
	for bad, names := range map[string]string{
		"except: [{regime: none}]":                  "except[0]",
		"except: [{method: x}]":                     "except[0]",
		"except: [{}]":                              "except[0]",
		"except: [{regime: free}, {regime: noisy}]": "no point",
	} {
		if _, err := Parse(strings.NewReader(excepted+bad), ""); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// The control of an experiment has no noise to scale, and clips nothing only without it.
func TestSettingsOfAControl(t *testing.T) {
	s := DefaultSettings()
	for key, value := range map[string]any{"privacy.none": true, "unclipped": true} {
		var err error
		if s, err = s.With(key, value); err != nil {
			t.Fatal(err)
		}
	}
	j, err := s.JobOf("x", []string{"a", "b"})
	if err != nil || !j.Privacy.None || j.Simulated() || j.ExpectedCohort() != 100 {
		t.Errorf("%+v, %v", j.Privacy, err)
	}
	if s, err = s.With("privacy.none", false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.JobOf("x", []string{"a", "b"}); err == nil || !strings.Contains(err.Error(), "unclipped") {
		t.Errorf("noise without a clip norm: %v", err)
	}
}
