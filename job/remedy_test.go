package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/strict"
	"github.com/starling-fl/starling/internal/testkit/nightly"
)

// A refusal recommends what the next check takes: applied as it is said, the job passes.
func TestRemediesPass(t *testing.T) {
	samplings := []string{"", "sampling_rate: 0.5", "sampling_rate: 0.1", "sampling_rate: 0.01", "sampling: fixed, size: %[2]d", "size: %[2]d",
		"sampling: fixed, size: 2, sampling_rate: 0.5", "sampling_rate: 0.5, floor: %[2]d", "floor: %[1]d, dropout: 0.2", "sampling_rate: 0.5, dropout: 0.8"}
	privacies := []string{"{}", "none", "{noise: devices}", "{epsilon: 8, noise: silo}", "{simulated_population: 10000000, simulated_cohort: 100000}"}
	shards := []string{"{}", "{floor: 3}", "{floor: 30}", "{size: 8}", "{corrupt: 0}", "{corrupt: 0.3}", "{breach_bits: 0}", "{semi_honest: true}", "{trim: 1}", "{groups: 4}"}
	populations := []int{2, 3, 4, 6, 12, 24, 40, 100, 1000}
	refused, jobs, at, step := 0, 0, 0, 61
	if nightly.All() {
		step = 1 // ten minutes of a core
	}
	for _, n := range populations {
		for _, sampling := range samplings {
			for _, privacy := range privacies {
				for _, shard := range shards {
					if strings.Contains(sampling, "%") {
						sampling = fmt.Sprintf(sampling+"%.[3]s", n, max(2, n/2), "")
					}
					text := fmt.Sprintf("name: x\nlabels: [a, b]\ncohort: {population: %d, %s}\nprivacy: %s\nshard: %s\n", n, sampling, privacy, shard)
					if at++; at%step != 0 {
						continue
					}
					jobs++
					if passesAsAdvised(t, text) {
						refused++
					}
				}
			}
		}
	}
	if refused < jobs/10 || refused > jobs*19/20 {
		t.Errorf("%d of %d jobs were refused: the grid shows nothing", refused, jobs)
	}
}

// passesAsAdvised parses a job and, where it is refused, what its refusal recommends.
func passesAsAdvised(t *testing.T, text string) (refused bool) {
	t.Helper()
	_, err := Parse(strings.NewReader(text))
	if err == nil {
		return false
	}
	remedy, ok := RemedyOf(err)
	if !ok {
		t.Errorf("%s%v: nothing is recommended", text, err)
		return true
	}
	if !strings.HasSuffix(err.Error(), remedy.String()) || strings.HasSuffix(WithoutRemedy(err).Error(), remedy.String()) {
		t.Errorf("%v: does not end with %s", err, remedy)
	}
	tree := map[string]any{}
	if err := strict.Decode([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	for _, c := range remedy {
		group, key, _ := strings.Cut(c.Key, ".")
		in := tree[group].(map[string]any)
		if in[key] = c.Value; c.Value == nil {
			delete(in, key)
		}
	}
	again, err := strict.Encode(tree)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(strings.NewReader(string(again))); err != nil {
		t.Errorf("%sits refusal recommends %s, and is refused then: %v", text, remedy, err)
	}
	return true
}

// An error that no change of who takes part removes recommends none.
func TestNoRemedyForOtherErrors(t *testing.T) {
	for _, text := range []string{"name: x\nlabels: [a]\n", "name: x\nlabels: [a, b]\nrounds: 0\n", "name: x\nlabels: [a, b]\ncohort: {population: 1}\n"} {
		_, err := Parse(strings.NewReader(text))
		if r, ok := RemedyOf(err); err == nil || ok {
			t.Errorf("%q: %v, recommended %v", text, err, r)
		}
	}
}

// When rounds begin is a number or a share, and no fewer devices than a round needs.
func TestStart(t *testing.T) {
	for text, want := range map[string]int{"": 40, "start: 30": 30, "start: 0.5": 20, "start: 1": 40, "start: 0.51": 21, "start: 40, start_within: 24h": 40} {
		j, err := Parse(strings.NewReader(fmt.Sprintf("name: x\nlabels: [a, b]\ncohort: {population: 40, %s}\n", text)))
		if err != nil || j.StartsWith() != want {
			t.Errorf("%s: %d, %v; want %d", text, j.StartsWith(), err, want)
		}
	}
	for text, names := range map[string]string{
		"start: 41": "must be in 0..cohort.population = 40", "start: -1": "must be in 0..", "start: 2.5": "whole number", "start: .nan": "not a number",
		"start_within: -1h": "must not be negative", "start: 5": "a round needs 20; set cohort.start: 20, which would do",
		"sampling: fixed, size: 24, floor: 12, start: 12": "a round needs 24",
	} {
		_, err := Parse(strings.NewReader(fmt.Sprintf("name: x\nlabels: [a, b]\ncohort: {population: 40, %s}\n", text)))
		if err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%s: %v, does not say %q", text, err, names)
		}
	}
}
