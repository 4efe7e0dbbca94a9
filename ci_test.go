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

// A release is made by make release and by nobody's actions, of a tag alone; what the job runs is shell that can be read.
// The build runs scripts of npm's packages: the token that writes releases and the signing key are in other steps alone.
func TestReleasesAreMadeHere(t *testing.T) {
	b, err := os.ReadFile(".github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	makes, runs := 0, 0
	for line := range strings.Lines(string(b)) {
		switch line = strings.TrimLeft(strings.TrimSpace(line), "- "); {
		case strings.HasPrefix(line, "uses:"):
			t.Errorf("a release uses another's action: %s", line)
		case strings.HasPrefix(line, "run: |"):
			runs++
		case strings.HasPrefix(line, "make "):
			if makes++; line != "make release" {
				t.Errorf("a release runs %s", line)
			}
		}
	}
	if makes != 1 || runs == 0 || !strings.Contains(string(b), "on:\n  push:\n    tags: ['v*']\npermissions:") {
		t.Errorf("make runs %d times, of %d steps, or not of a tag alone", makes, runs)
	}
	const token, key = "GH_TOKEN: ${{ github.token }}", "KEY: ${{ secrets.SIGNING_KEY }}"
	want := []struct{ step, holds string }{
		{"", "group: release-${{ github.ref }}"}, // what all steps share
		{"fetch the tag", token}, {"build", ""}, {"sign", key}, {"draft", token},
	}
	parts := strings.Split(string(b), "\n      - ")
	if len(parts) != len(want) {
		t.Fatalf("%d parts, want %d", len(parts), len(want))
	}
	for i, w := range want {
		var held []string
		for line := range strings.Lines(parts[i]) {
			if strings.Contains(line, "${{") {
				held = append(held, strings.TrimSpace(line))
			}
		}
		if got := strings.Join(held, "; "); got != w.holds || i > 0 && !strings.HasPrefix(parts[i], "name: "+w.step+"\n") {
			t.Errorf("step %q holds %q, want %q: %.40q", w.step, got, w.holds, parts[i])
		}
		if strings.Contains(parts[i], "make ") != (w.step == "build") && i > 0 {
			t.Errorf("step %q runs the build, or build does not", w.step)
		}
	}
	if sign := parts[3]; !strings.Contains(sign, `trap 'rm -f "$RUNNER_TEMP/key"' EXIT`) {
		t.Errorf("the key stays after %s", sign)
	}
}
