package starling

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/job"
)

// premise is a security argument with the job's keys that it depends on.
type premise struct {
	argument string
	text     string // a file and a phrase of it: where the argument is made
	// keys are defaults that the argument was written for, by their names in a job file.
	keys map[string]any
	// holds checks what must be true of the defaults besides; nil: nothing.
	holds func(j job.Job) error
	tests []string // folder and name
}

// premises lists the arguments. If a default changes, read the argument again, with an attacker's
// eyes: then change its text, its test and this table.
var premises = []premise{
	{
		argument: "tracing: devices that know who is in their shard can have nobody honest convicted, " +
			"as long as the declared share of hostile devices holds",
		text: "docs/privacy/proofs.md: although hostile devices choose when to strike",
		keys: map[string]any{"shard.anonymous": false, "shard.identified": false, "shard.corrupt": 0.05, "shard.groups": 0,
			"cohort.sampling_rate": 1.0},
		tests: []string{"coordinator/internal/fleet TestHostileCoalitionFramesNobody", "coordinator/internal/fleet TestWeightOfTheInnocent",
			"coordinator TestHostileFraming"},
	},
	{
		argument: "tracing: a device that strikes wherever it is gets convicted, because shards of the floor often hold no hostile device",
		text:     "docs/privacy/proofs.md: of 64 devices by default within 17",
		keys:     map[string]any{"shard.floor": 10, "shard.corrupt": 0.05, "cohort.population": 24},
		holds: func(j job.Job) error {
			for _, n := range []int{24, 300, 10_000} {
				j.Cohort.Population, j.Cohort.Floor, j.Shard.Size, j.Shard.Floor = n, 0, 0, 0
				if company := j.Shard.Corrupt * float64(j.Derived().Shard.Floor); company > 0.7 {
					return fmt.Errorf("of %d devices a shard of shard.floor holds %.2g hostile ones on average", n, company)
				}
			}
			return nil
		},
		tests: []string{"coordinator/internal/fleet TestStrikersAreFound", "coordinator/internal/fleet TestRareStrikersAreFound",
			"coordinator TestHostileBomb"},
	},
	{
		argument: "robbery: whoever lies, all jobs together get 3 bits about any one example, because each is held to what the device's account has",
		text:     "SECURITY.md: about any one example at most 3 bits of all that a data file ever gives",
		keys:     map[string]any{"privacy.own_noise": 0.0, "privacy.groups": 0, "privacy.noise": ""},
		holds: func(job.Job) error {
			p, local := edge.DefaultPolicy(), edge.LocalPolicy()
			if p.ExampleBits != 3 || p.Bits != 10_000 || p.OwnNoise != 0.1 || local.ExampleBits != 0 {
				return fmt.Errorf("the stock policy allows %v bits about an example, %v about all, own noise %v; one's own coordinator %v", p.ExampleBits, p.Bits, p.OwnNoise, local.ExampleBits)
			}
			return nil
		},
		tests: []string{"lab/cmd/starling TestHostileExampleRobbery", "edge TestHostileIdealReader", "edge/leak TestHostileAimedStarts", "edge TestHostileJobAfterJob", "edge TestHostileJobsAtOnce",
			"edge TestRefusedBeforeEnrolment", "edge TestRefusalsNameWhatWouldDo", "internal/app/rehearsal TestRecommendationsPass"},
	},
	{
		argument: "strikes: a share that a coalition spoils convicts its own members, because they are fewer than half of a shard",
		text:     "docs/PROTOCOL.md: more than half of",
		keys:     map[string]any{"shard.corrupt": 0.05, "shard.breach_bits": 40, "shard.semi_honest": false},
		holds: func(j job.Job) error {
			if j.Shard.Corrupt >= 0.5 {
				return fmt.Errorf("shard.corrupt is %v", j.Shard.Corrupt)
			}
			return nil
		},
		tests: []string{"coordinator TestHostileDealer", "coordinator TestHostileRevealer", "coordinator TestHostileGarbage"},
	},
	{
		argument: "strikes: a device is struck for silence by its own deadline, so that one coin tips nothing",
		text:     "docs/privacy/proofs.md: who is excluded for silence",
		keys:     map[string]any{"deadlines.enough": 0.9, "cohort.sampling_rate": 1.0},
		tests:    []string{"coordinator TestSilenceHangsOnNobodyElse", "coordinator TestHostileSilence"},
	},
	{
		argument: "quorum: one device's coin shows by nothing but the sum, because the others decide alone whether a shard is released",
		text:     "docs/privacy/proofs.md: The quorum rule",
		keys: map[string]any{"cohort.sampling_rate": 1.0, "cohort.dropout": 0.0, "cohort.quorum": 0, "cohort.sampling": "",
			"shard.corrupt": 0.05, "shard.breach_bits": 40, "shard.trim": 0},
		holds: func(j job.Job) error { // and in the first sampled job that an owner would write
			j.Cohort.Population, j.Cohort.SamplingRate = 1000, 0.5
			j.Cohort.Floor, j.Shard.Size, j.Shard.Floor = 0, 0, 0
			if d := j.Derived(); d.Cohort.Dropout != 0.1 || d.FloorDelta() == 0 {
				return fmt.Errorf("cohort.dropout of a sampled job is %v, the floors' part of delta %v", d.Cohort.Dropout, d.FloorDelta())
			}
			return nil
		},
		tests: []string{"job TestQuorum", "coordinator TestTooManyDropoutsPause"},
	},
}

// TestPremises: a default that a security argument depends on is the one that it was written for.
func TestPremises(t *testing.T) {
	j, err := job.Parse(strings.NewReader("name: defaults\nlabels: [a, b]\n"))
	if err != nil {
		t.Fatal(err)
	}
	j = j.Derived()
	documented, err := os.ReadFile("docs/JOB.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range premises {
		for key, want := range p.keys {
			got, err := keyOf(j, key)
			if err != nil {
				t.Errorf("%s: %v", p.argument, err)
				continue
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s is %v by default, %v when this was written: read the argument and change it, its tests and this table: %s (%s)",
					key, got, want, p.argument, p.text)
			}
			if _, name, _ := strings.Cut(key, "."); !strings.Contains(string(documented), "`"+name+"`") {
				t.Errorf("docs/JOB.md has no %s", key)
			}
		}
		if p.holds != nil {
			if err := p.holds(j); err != nil {
				t.Errorf("%s: %v", p.argument, err)
			}
		}
		file, phrase, _ := strings.Cut(p.text, ": ")
		said, err := os.ReadFile(file)
		if err != nil || !strings.Contains(strings.Join(strings.Fields(string(said)), " "), phrase) {
			t.Errorf("%s does not say %q any more: %s, %v", file, phrase, p.argument, err)
		}
		for _, test := range p.tests {
			if dir, name, _ := strings.Cut(test, " "); !hasTest(t, dir, name) {
				t.Errorf("%s has no test %s: %s", dir, name, p.argument)
			}
		}
	}
}

// keyOf is a job's value of a key.
func keyOf(j job.Job, key string) (any, error) {
	v := reflect.ValueOf(j)
	for name := range strings.SplitSeq(key, ".") {
		of := v
		for i := range of.NumField() {
			if tag, _, _ := strings.Cut(of.Type().Field(i).Tag.Get("yaml"), ","); tag == name {
				v = of.Field(i)
			}
		}
		if v == of {
			return nil, fmt.Errorf("a job has no key %s", key)
		}
	}
	return v.Interface(), nil
}

// hasTest reports whether a package has a test of that name.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	is := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(t `)
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && is.Match(b) {
			return true
		}
	}
	return false
}
