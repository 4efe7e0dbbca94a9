package rehearsal

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/bench"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/base"
)

// stock is a job with the job file's defaults but for what is about the privacy budget, which
// takes time to find.
func stock(change func(*job.Job)) job.Job {
	j := job.Default()
	j.Name, j.Labels = "stock", []string{"a", "b", "c"}
	j.Privacy.NoiseMultiplier, j.Privacy.Epsilon = 1, 1e6
	change(&j)
	return j
}

func keys(found []edge.PolicyError) (list []string) {
	for _, f := range found {
		list = append(list, f.Key)
	}
	return list
}

// The job file's defaults and the default policies fit each other: whatever steps, batch, rank and
// method a job has that are themselves within a policy, no default that follows from them is beyond
// it. Who adds the noise, and what is trained, is asked about.
func TestDefaultsFitEachOther(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	policy := edge.DefaultPolicy()
	n := 0
	for _, method := range model.MethodNames() {
		for _, optimizer := range []string{"adamw", "sgd", "momentum"} {
			for _, steps := range []int{2, 4, 30, policy.Steps} {
				for _, rank := range []int{8, policy.Rank} {
					if method != "lora" && rank != 8 || optimizer != "adamw" && steps != policy.Steps {
						continue
					}
					j := stock(func(j *job.Job) {
						j.Adapter.Method, j.Adapter.RankMax = method, rank
						j.Training.Optimizer, j.Training.Steps = optimizer, steps
						if method == "lora" {
							j.Adapter.Targets = []string{model.AllLinear}
						}
						if steps == policy.Steps {
							j.Training.Batch = policy.Batch
						}
					})
					announced, err := coordinator.Announcement(j, b)
					if err != nil {
						t.Fatal(method, optimizer, steps, rank, err)
					}
					r, err := Announced(announced, b)
					if err != nil {
						t.Fatal(err)
					}
					n++
					if len(r.Trusted) > 0 {
						t.Errorf("%s, %s, %d steps, rank %d: with --trust-local it is refused: %v", method, optimizer, steps, rank, r.Trusted)
					}
					for _, key := range keys(r.Elsewhere) {
						if !slices.Contains([]string{"own_noise", "example_bits", "bits", "tensors"}, key) {
							t.Errorf("%s, %s, %d steps, rank %d: elsewhere it is refused: %v", method, optimizer, steps, rank, r.Elsewhere)
						}
					}
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("%d jobs were tried", n)
	}
}

// Of larger bases the clip norm that follows is within the policy, too, with the room that an
// adaptive one may take: AdamW's longest update is four times the default.
func TestDefaultClipNormsFit(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	policy := edge.DefaultPolicy()
	for _, size := range []struct{ hidden, layers int }{{64, 2}, {128, 2}, {384, 6}, {768, 12}, {1024, 24}} {
		c := b.Config
		c.HiddenSize, c.IntermediateSize, c.NumHiddenLayers, c.NumAttentionHeads = size.hidden, 4*size.hidden, size.layers, size.hidden/32
		for _, method := range model.MethodNames() {
			for _, rank := range []int{1, 8, policy.Rank} {
				j := stock(func(j *job.Job) {
					j.Adapter.Method, j.Adapter.RankMax, j.Training.Steps = method, rank, policy.Steps
					if method == "lora" {
						j.Adapter.Targets = []string{model.AllLinear}
					}
				}).ForBase(c)
				if 4*j.Privacy.ClipNorm > policy.ClipNorm {
					t.Errorf("width %d, %d layers, %s, rank %d: clip norm %v, limit %v", size.hidden, size.layers, method, rank, j.Privacy.ClipNorm, policy.ClipNorm)
				}
			}
		}
	}
}

// What no stock device would train is said before there are devices, by the limit's name.
func TestRehearsalNamesLimits(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	for key, change := range map[string]func(*job.Job){
		"batch":     func(j *job.Job) { j.Training.Batch = 65 },
		"rank":      func(j *job.Job) { j.Adapter.RankMax = 33 },
		"steps":     func(j *job.Job) { j.Training.Steps = 200 },
		"clip_norm": func(j *job.Job) { j.Privacy.ClipNorm = 1001 },
		"start":     func(j *job.Job) { j.Bounds.B = 41 },
		"uplinks":   func(j *job.Job) { j.Wire.Uplink = "fixed16" },
	} {
		announced, err := coordinator.Announcement(stock(change), b)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Announced(announced, b)
		if err != nil {
			t.Fatal(err)
		}
		if got := keys(r.Trusted); !slices.Equal(got, []string{key}) {
			t.Errorf("%s: refused for %q", key, got)
		}
		var said strings.Builder
		if err := r.Print(&said); err != nil || !strings.Contains(said.String(), "\n  "+key+" (") {
			t.Errorf("%s: %s, %v", key, &said, err)
		}
	}
	announced, err := coordinator.Announcement(stock(func(j *job.Job) { j.Training.Steps, j.Training.Batch = 1, 15 }), b)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Announced(announced, b); err != nil || !slices.Contains(keys(r.Elsewhere), "examples") {
		t.Errorf("an update of 15 examples: %+v, %v", r, err)
	}
}

var recommended = regexp.MustCompile(`privacy\.own_noise: ([0-9.e+]+)|privacy\.groups: (\d+)|rounds: (\d+)`)

// What the refusal of a job recommends about noise, groups and rounds is taken by the coordinator, and no
// stock device refuses the job for them then: the default job's refusal, too.
func TestRecommendationsPass(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := func(j job.Job) []edge.PolicyError {
		t.Helper()
		announced, err := coordinator.Announcement(j, b)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Announced(announced, b)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(r.Elsewhere, func(e edge.PolicyError) bool {
			return !slices.Contains([]string{"own_noise", "example_noise", "example_bits", "bits"}, e.Key)
		})
	}
	tried := map[string]int{}
	for name, c := range map[string]func(*job.Job){
		"default":      func(*job.Job) {},
		"long":         func(j *job.Job) { j.Rounds = 500 },
		"groups":       func(j *job.Job) { j.Privacy.Noise, j.Privacy.OwnNoise, j.Privacy.Groups = job.NoiseDevices, 0.3, 2 },
		"little noise": func(j *job.Job) { j.Privacy.Noise, j.Privacy.OwnNoise, j.Privacy.Groups = job.NoiseDevices, 0.05, 16 },
		"the robbery": func(j *job.Job) {
			j.Privacy.Noise, j.Privacy.OwnNoise, j.Rounds, j.Training.Steps = job.NoiseDevices, 0.1, 50, 1
		},
	} {
		// The target asks for less than that, so that it is own_noise that decides.
		j := stock(func(j *job.Job) { j.Privacy.NoiseMultiplier = 0.1; c(j) })
		found := elsewhere(j)
		if len(found) == 0 {
			t.Errorf("%s: a stock device would join it", name)
			continue
		}
		for _, m := range recommended.FindAllStringSubmatch(found[0].Want, -1) {
			k, err := j, error(nil)
			switch {
			case m[1] != "":
				tried["own_noise"]++
				k.Privacy.Noise = job.NoiseDevices
				k.Privacy.OwnNoise, err = strconv.ParseFloat(m[1], 64)
			case m[2] != "":
				tried["groups"]++
				k.Privacy.Groups, err = strconv.Atoi(m[2])
			default:
				tried["rounds"]++
				k.Rounds, err = strconv.Atoi(m[3])
			}
			if err != nil {
				t.Fatal(err)
			}
			if again := elsewhere(k); len(again) > 0 {
				t.Errorf("%s: %s is recommended, and then: %v", name, m[0], again)
			}
		}
	}
	if tried["own_noise"] < 5 || tried["groups"] < 2 {
		t.Errorf("recommended and tried: %v", tried)
	}
}

// Made-up training at an absurd rate is noticed, at the default's it is not.
func TestRehearsalTrains(t *testing.T) {
	for rate, bad := range map[string]bool{"0": false, "1e20": true} {
		file := filepath.Join(t.TempDir(), "job.yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, "name: x\nlabels: [a, b]\ntraining: {optimizer: sgd, learning_rate: %s}\n", rate), 0o600); err != nil {
			t.Fatal(err)
		}
		var r Report
		if err := r.Train(watchdog.Context(t), bench.Config{Job: file}, 4); err != nil || (r.Diverges != "") != bad {
			t.Errorf("rate %s: %q, %v", rate, r.Diverges, err)
		}
	}
}

// Noise that is longer than clipping lets a mean update be is warned of, with what it would take; a fleet that is
// large enough, or that stands for one, hears nothing.
func TestNoiseIsWeighed(t *testing.T) {
	b, err := base.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*job.Job)
		says   string // "": nothing
	}{
		{func(j *job.Job) { j.Cohort.Population, j.Privacy.NoiseMultiplier = 40, 10 }, "expect nothing to be learnt. At this privacy.epsilon about 660 devices"},
		{func(j *job.Job) { j.Cohort.Population, j.Privacy.NoiseMultiplier = 40, 1 }, "accuracy suffers"},
		{func(j *job.Job) { j.Cohort.Population, j.Privacy.NoiseMultiplier = 4000, 10 }, ""},
		{func(j *job.Job) { j.Cohort.Population = 40; j.Privacy.None, j.Privacy.NoiseMultiplier = true, 0 }, ""},
		{func(j *job.Job) {
			j.Cohort.Population, j.Privacy.NoiseMultiplier, j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 40, 10, 4000, 4000
		}, ""},
	} {
		terms, err := core.NewTerms(stock(c.change), b)
		if err != nil {
			t.Fatal(err)
		}
		var r Report
		r.Weigh(terms.Rho(), terms.Job)
		if (r.Weighed == "") != (c.says == "") || !strings.Contains(r.Weighed, c.says) {
			t.Errorf("rho %v: %q, want %q", r.Rho, r.Weighed, c.says)
		}
	}
}
