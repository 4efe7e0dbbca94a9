package job

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const goodJob = `
name: invoices
labels: [invoice, receipt]
rounds: 4
cohort:
  population: 24
deadlines:
  collect: 90s
privacy:
  epsilon: 3
`

func TestParse(t *testing.T) {
	j, err := Parse(strings.NewReader(goodJob))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Server.LearningRate, want.Server.Epsilon = 1, 1e-3
	want.Name, want.Labels, want.Rounds = "invoices", []string{"invoice", "receipt"}, 4
	want.Deadlines.Collect, want.Privacy.Epsilon = 90*time.Second, 3
	want.Cohort.Floor, want.Shard.Floor, want.Shard.Size = 12, j.Shard.Floor, 64
	if !reflect.DeepEqual(j, want) {
		t.Errorf("parsed\n%+v, want\n%+v", j, want)
	}
	if j.Shard.Floor < 8 || j.Shard.Floor > 12 {
		t.Errorf("shard floor %d", j.Shard.Floor)
	}
	path := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(path, []byte(goodJob+"colour: red\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "colour") {
		t.Errorf("an unknown key: %v", err)
	}
	for _, data := range []string{"train-0.jsonl", "rows.csv.gz"} {
		if _, err := Load(data); err == nil || !strings.Contains(err.Error(), "starling init --data "+data) {
			t.Errorf("%s: %v", data, err)
		}
	}
	if _, err := Load(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestRefusals: each broken relation is named.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ yaml, names string }{
		{"name: x\nlabels: [a, b]\nprivacy:\n  clip_nrom: 1\n", "clip_nrom"},
		{"name: x\nlabels: [a, b]\nname: y\n", "name"},
		{"labels: [a, b]\n", "name"},
		{"name: x\nlabels: [a]\n", "labels"},
		{"name: x\nlabels: [a, a]\n", "twice"},
		{"name: x\nlabels: [a, b]\nrounds: 0\n", "rounds"},
		{"name: x\nlabels: [a, b]\nprivacy: {clip_norm: -1}\n", "clip_norm"},
		{"name: x\nlabels: [a, b]\nprivacy: {clip_norm: .nan}\n", "clip_norm"},
		{"name: x\nlabels: [a, b]\nrounds: 3.9\n", `rounds: "3.9" is not a whole number`},
		{"{\"name\": \"x\", \"training\": {\"memory\": 64.9}}", `training.memory: "64.9" is not a whole number`},
		{"name: x\nlabels: [a, b]\nprivacy: {epsilon: -1}\n", "epsilon"},
		{"name: x\nlabels: [a, b]\nprivacy: {delta: 0.5}\n", "delta"},
		{"name: x\nlabels: [a, b]\nprivacy: {accountant: moments}\n", "accountant"},
		{"name: x\nlabels: [a, b]\nprivacy: {simulated_population: 1000}\n", "simulated_cohort"},
		{"name: x\nlabels: [a, b]\nprivacy: {simulated_population: 1000, simulated_cohort: 10}\n", "nothing would be simulated"},
		{"name: x\nlabels: [a, b]\nprivacy: {simulated_population: 1000, simulated_cohort: 2000}\n", "simulated_population"},
		{"name: x\nlabels: [a, b]\nadapter: {rank_min: 4, rank_max: 2}\n", "rank_min"},
		{"name: x\nlabels: [a, b]\nadapter: {alpha: -1}\n", "alpha"},
		{"name: x\nlabels: [a, b]\ntraining: {optimizer: lion}\n", "optimizer"},
		{"name: x\nlabels: [a, b]\ntraining: {arithmetic: bf16}\n", "training.arithmetic"},
		{"name: x\nlabels: [a, b]\ntraining: {learning_rate: -0.1}\n", "training.learning_rate"},
		{"name: x\nlabels: [a, b]\ntraining: {head_learning_rate: .nan}\n", "training.head_learning_rate"},
		{"name: x\nlabels: [a, b]\ntraining: {weight_decay: 1}\n", "training.weight_decay"},
		{"name: x\nlabels: [a, b]\ncohort: {sampling_rate: 1.5}\n", "sampling_rate"},
		{"name: x\nlabels: [a, b]\ncohort: {floor: 30}\n", "above the expected cohort"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 40, sampling_rate: 0.5, floor: 12}\n", "misses cohort.floor"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 40, sampling_rate: 0.5, floor: 12}\n", "; set cohort.sampling: fixed, cohort.size: 20, and leave"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 10, sampling: fixed}\n", "cohort.size is 0, must be in 2..cohort.population = 10"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 10, sampling: fixed, size: 11}\n", "cohort.size is 11"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 3, sampling: fixed, size: 1}\nshard: {corrupt: 0}\n", "one device's update is not hidden"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 10, size: 3}\n", "cohort.size is 3, which has a meaning with cohort.sampling fixed only"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 10, sampling: coins}\n", "must be poisson or fixed"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 10, sampling: fixed, size: 3, sampling_rate: 0.3}\n", "leave the rate out"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 10, sampling: fixed, size: 3, dropout: 0.2}\n", "leave them out"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 10, sampling: fixed, size: 3, floor: 4}\nshard: {floor: 2}\n", "cohort.floor is 4, above cohort.size = 3"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 10, sampling: fixed, size: 3}\n", "set shard.corrupt: 0"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 10, sampling: fixed, size: 3}\nshard: {corrupt: 0}\nprivacy: {simulated_population: 1000, simulated_cohort: 10}\n", "of coins only"},
		{"name: x\nlabels: [a, b]\ncohort: {floor: 3}\nshard: {floor: 8}\n", "shard.floor"},
		{"name: x\nlabels: [a, b]\nshard: {corrupt: 1}\n", "corrupt"},
		{"name: x\nlabels: [a, b]\nshard: {corrupt: 0.4}\n", "shard.floor"},
		{"name: x\nlabels: [a, b]\nshard: {corrupt: 0.4, floor: 12}\n", "breach_bits"},
		{"name: x\nlabels: [a, b]\nshard: {size: 5000}\n", "shard.size"},
		{"name: x\nlabels: [a, b]\nshard: {trim: -1}\n", "shard.trim"},
		{"name: x\nlabels: [a, b]\nshard: {groups: -1}\n", "shard.groups"},
		{"name: x\nlabels: [a, b]\nshard: {groups: 16777217}\n", "shard.groups"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 1000, sampling_rate: 0.5}\nshard: {groups: 2}\n", "shard.groups"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 400, floor: 300}\nshard: {groups: 8, anonymous: true}\n", "shard.groups"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 400, floor: 300}\nshard: {groups: 5, size: 64}\n", "shard.groups"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 400, floor: 300}\nshard: {groups: 11, floor: 30}\n", "shard.groups"},
		{"name: x\nlabels: [a, b]\nshard: {trim: 1}\n", "needs 3 shards"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 60, floor: 48}\nshard: {trim: 1, size: 24}\n", "makes 2 of shard.size = 24"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 4000, sampling_rate: 0.5, floor: 100}\nshard: {trim: 1, size: 16}\n", "device's coin"},
		{"name: x\nlabels: [a, b]\nwire: {uplink: f32}\n", "uplink"},
		{"name: x\nlabels: [a, b]\nwire: {downlink: nf5}\n", "nf5"},
		{"name: x\nlabels: [a, b]\nserver: {optimizer: sgd}\n", "server.optimizer"},
		{"name: x\nlabels: [a, b]\nserver: {learning_rate: -1}\n", "server.learning_rate"},
		{"name: x\nlabels: [a, b]\nserver: {momentum: 1}\n", "server.momentum"},
		{"name: x\nlabels: [a, b]\nrounds: 20\nserver: {average: 21}\n", "server.average"},
		{"name: x\nlabels: [a, b]\nserver: {average: -1}\n", "server.average"},
		{"name: x\nlabels: [a, b]\nserver: {optimizer: fedadagrad, beta1: 1}\n", "server.beta1"},
		{"name: x\nlabels: [a, b]\nserver: {optimizer: fedyogi, beta2: -0.5}\n", "server.beta2"},
		{"name: x\nlabels: [a, b]\nserver: {optimizer: fedadam, epsilon: -1}\n", "server.epsilon"},
		{"name: x\nlabels: [a, b]\ndeadlines: {collect: 0s}\n", "deadlines.collect"},
		{"name: x\nlabels: [a, b]\nenrolment: {secret: short}\n", "secret"},
		{"name: x\nlabels: [a, b]\nrounds: many\n", "rounds"},
		{"[", "job"},
		{"name: x\nlabels: !0\n0: 0\n", "YAML"}, // made the parser panic
	} {
		_, err := Parse(strings.NewReader(c.yaml))
		if err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%q: %v, does not name %q", c.yaml, err, c.names)
		}
	}
	if _, err := Parse(strings.NewReader(strings.Repeat("#", 1<<21))); err == nil {
		t.Error("a job of two megabytes was read")
	}
}

// TestUnitRefusals: relations of what is protected, named.
func TestUnitRefusals(t *testing.T) {
	const head = "name: x\nlabels: [a, b]\n"
	for _, c := range []struct{ yaml, names string }{
		{"providers: {max: -1}\n", "providers.max"},
		{"providers: {max: 65537}\n", "providers.max"},
		{"providers: {max: 4, sampling_rate: 0}\n", "providers.sampling_rate"},
		{"providers: {max: 4, expected: 5}\n", "providers.expected"},
		{"providers: {max: 4, expected: -1}\n", "providers.expected"},
		{"providers: {max: 4, expected: 1e-40}\n", "providers.expected"},
		{"providers: {max: 4, sampling_rate: 1e-12}\n", "providers.sampling_rate"},
		{"providers: {max: 1, sampling_rate: 1e-300}\n", "providers.sampling_rate"},
		{"providers: {sampling_rate: 0.5}\n", "providers.max is 0"},
		{"wire: {uplink: fixed16}\nproviders: {max: 50}\n", "50 vectors a device"},
		{"clipping: {adaptive: true, quantile: 1}\n", "quantile"},
		{"clipping: {adaptive: true, rate: .inf}\n", "rate"},
		{"privacy: {clip_norm: 2}\nclipping: {adaptive: true, min: 3}\n", "clipping.min"},
		{"privacy: {clip_norm: 2}\nclipping: {adaptive: true, max: 1}\n", "clipping.max"},
		{"clipping: {adaptive: true, count_noise: -1}\n", "clipping.count_noise"},
		{"clipping: {quantile: 0.9}\n", "clipping.adaptive is false"},
		{"clipping: {rate: 3}\n", "clipping.adaptive is false"},
		{"clipping: {max: 1e300}\n", "clipping.adaptive is false"},
	} {
		if _, err := Parse(strings.NewReader(head + c.yaml)); err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%q: %v, does not name %q", c.yaml, err, c.names)
		}
	}
	j, err := Parse(strings.NewReader(head + "privacy: {clip_norm: 2}\nproviders: {max: 6}\nclipping: {adaptive: true}\n"))
	if err != nil || j.Providers != (Providers{Max: 6, Expected: 6, SamplingRate: 1}) || j.Clipping.Min != 0.002 || j.Clipping.Max != 2000 {
		t.Errorf("%+v, %+v, %v", j.Providers, j.Clipping, err)
	}
}

// FuzzParse: whatever the file, parsing does not panic, and what it takes is
// a job that validates.
func FuzzParse(f *testing.F) {
	f.Add(goodJob)
	f.Add("name: x\nlabels: [a, b]\nprivacy: {simulated_population: 1000000, simulated_cohort: 10000}\n")
	f.Add("name: x\nlabels: [a, b]\ncohort: {population: 100000, sampling_rate: 0.01}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		j, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		if err := j.Validate(); err != nil {
			t.Errorf("a parsed job does not validate: %v", err)
		}
	})
}

// TestArithmetic: exact is the default, written or not, and one job.
func TestArithmetic(t *testing.T) {
	parse := func(training string) Job {
		t.Helper()
		j, err := Parse(strings.NewReader("name: x\nlabels: [a, b]\n" + training))
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	silent, exact, fused := parse(""), parse("training: {arithmetic: exact}\n"), parse("training: {arithmetic: fused}\n")
	if !reflect.DeepEqual(silent, exact) || silent.Fused() || !fused.Fused() {
		t.Errorf("silent %+v, exact %+v, fused %+v", silent.Training, exact.Training, fused.Training)
	}
}

// TestPrivacyNone: the group, or the word in its place; what the group says keeps its
// defaults, and an unknown key is named with its line.
func TestPrivacyNone(t *testing.T) {
	const head = "name: x\nlabels: [a, b]\n"
	word, err := Parse(strings.NewReader(head + "privacy: none\n"))
	if err != nil {
		t.Fatal(err)
	}
	group, err := Parse(strings.NewReader(head + "privacy: {none: true}\n"))
	if err != nil || !word.Privacy.None || !reflect.DeepEqual(word, group) {
		t.Errorf("the word is %+v, the group %+v: %v", word.Privacy, group.Privacy, err)
	}
	some, err := Parse(strings.NewReader(head + "privacy:\n  epsilon: 3\n"))
	want := Default().Privacy
	want.Epsilon = 3
	if some.Privacy.Delta, some.Privacy.ClipNorm = want.Delta, want.ClipNorm; err != nil || some.Privacy != want {
		t.Errorf("%+v, want %+v: %v", some.Privacy, want, err)
	}
	if _, err := Parse(strings.NewReader(head + "privacy:\n  epsilon: 3\n  clip_nrom: 1\n")); err == nil || !strings.Contains(err.Error(), "clip_nrom") || !strings.Contains(err.Error(), "[5:3]") {
		t.Errorf("an unknown key: %v", err)
	}
}

// What scores a job is looked for beside its file, and is not part of what devices are told and the store holds a job to.
func TestValidationFile(t *testing.T) {
	dir := t.TempDir()
	for given, want := range map[string]string{"reviews.jsonl": filepath.Join(dir, "reviews.jsonl"), "/srv/reviews.jsonl": "/srv/reviews.jsonl"} {
		path := filepath.Join(dir, "job.yaml")
		if err := os.WriteFile(path, []byte("name: t\nlabels: [a, b]\nvalidation_file: "+given), 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Load(path)
		if err != nil || j.ValidationFile != want {
			t.Errorf("%s: %q, want %q, %v", given, j.ValidationFile, want, err)
		}
		told, err := json.Marshal(j)
		if err != nil || strings.Contains(string(told), "reviews") {
			t.Errorf("told: %s, %v", told, err)
		}
	}
}
