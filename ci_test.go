package starling

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
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

// A release is made by make release and by nobody's actions, of a tag alone; what the job runs is shell that can be read.
func TestReleasesAreMadeHere(t *testing.T) {
	b, err := os.ReadFile(".github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	var w struct {
		On struct {
			Push struct{ Tags, Branches []string }
		}
		Jobs map[string]struct {
			Steps []struct{ Run, Uses string }
		}
	}
	if err := yaml.Unmarshal(b, &w); err != nil {
		t.Fatal(err)
	}
	makes := 0
	for _, j := range w.Jobs {
		for _, s := range j.Steps {
			if s.Uses != "" || s.Run == "" {
				t.Errorf("a step uses %q", s.Uses)
			}
			if err := exec.Command("sh", "-n", "-c", s.Run).Run(); err != nil {
				t.Errorf("%v: %s", err, s.Run)
			}
			for line := range strings.Lines(s.Run) {
				if strings.HasPrefix(line, "make ") {
					if makes++; line != "make release\n" {
						t.Errorf("a release runs %s", line)
					}
				}
			}
		}
	}
	if makes != 1 || len(w.On.Push.Tags) != 1 || len(w.On.Push.Branches) > 0 {
		t.Errorf("make runs %d times, on %+v", makes, w.On)
	}
}
