package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/strict"
)

// A refusal recommends what the next check takes: applied as it is said, the job passes.
func TestRemediesPass(t *testing.T) {
	samplings := []string{"", "sampling_rate: 0.5", "sampling_rate: 0.1", "sampling_rate: 0.01", "sampling: fixed, size: %[2]d", "size: %[2]d",
		"sampling: fixed, size: 2, sampling_rate: 0.5", "sampling_rate: 0.5, floor: %[2]d", "floor: %[1]d, dropout: 0.2", "sampling_rate: 0.5, dropout: 0.8"}
	privacies := []string{"{}", "none", "{noise: devices}", "{epsilon: 8, noise: silo}", "{simulated_population: 10000000, simulated_cohort: 100000}"}
	shards := []string{"{}", "{floor: 3}", "{floor: 30}", "{size: 8}", "{corrupt: 0}", "{corrupt: 0.3}", "{breach_bits: 0}", "{semi_honest: true}", "{trim: 1}", "{groups: 4}"}
	populations := []int{2, 3, 4, 6, 12, 24, 40, 100, 1000}
	refused, jobs, at := 0, 0, 0
	for _, n := range populations {
		for _, sampling := range samplings {
			for _, privacy := range privacies {
				for _, shard := range shards {
					if strings.Contains(sampling, "%") {
						sampling = fmt.Sprintf(sampling+"%.[3]s", n, max(2, n/2), "")
					}
					text := fmt.Sprintf("name: x\nlabels: [a, b]\ncohort: {population: %d, %s}\nprivacy: %s\nshard: %s\n", n, sampling, privacy, shard)
					if at++; at%11 != 0 { // the whole grid takes 20 s of a core
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
