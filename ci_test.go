package starling

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What passes in the jobs side by side passes in .ci/run as a whole: each of its steps is in one job.
func TestEveryStepHasOneJob(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	script := read(".ci/run")
	listed := regexp.MustCompile(`(?m)^steps=\((.*)\)$`).FindStringSubmatch(script)
	if listed == nil {
		t.Fatal(".ci/run has no list of steps")
	}
	steps := strings.Fields(listed[1])
	var defined, jobs []string
	for _, m := range regexp.MustCompile(`(?m)^run_(\w+)\(\)`).FindAllStringSubmatch(script, -1) {
		defined = append(defined, m[1])
	}
	if !slices.Equal(steps, defined) {
		t.Errorf(".ci/run lists %q and defines %q", steps, defined)
	}
	for _, m := range regexp.MustCompile(`steps: ([a-z0-9 ]+) \}`).FindAllStringSubmatch(read(".github/workflows/ci.yml"), -1) {
		jobs = append(jobs, strings.Fields(m[1])...)
	}
	slices.Sort(steps)
	slices.Sort(jobs)
	if !slices.Equal(steps, jobs) {
		t.Errorf("steps of .ci/run %q, of the jobs %q", steps, jobs)
	}
}
