package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
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

func TestParseJob(t *testing.T) {
	j, err := ParseJob(strings.NewReader(goodJob))
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultJob()
	want.Name, want.Labels, want.Rounds = "invoices", []string{"invoice", "receipt"}, 4
	want.Deadlines.Collect, want.Privacy.Epsilon = 90*time.Second, 3
	want.Cohort.Floor, want.Shard.Floor = 12, j.Shard.Floor
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
	if _, err := LoadJob(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "colour") {
		t.Errorf("an unknown key: %v", err)
	}
	if _, err := LoadJob(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestJobRefusals: each broken relation is named.
func TestJobRefusals(t *testing.T) {
	for _, c := range []struct{ yaml, names string }{
		{"name: x\nlabels: [a, b]\nprivacy:\n  clip_nrom: 1\n", "clip_nrom"},
		{"name: x\nlabels: [a, b]\nname: y\n", "name"},
		{"labels: [a, b]\n", "name"},
		{"name: x\nlabels: [a]\n", "labels"},
		{"name: x\nlabels: [a, a]\n", "twice"},
		{"name: x\nlabels: [a, b]\nrounds: 0\n", "rounds"},
		{"name: x\nlabels: [a, b]\nprivacy: {clip_norm: 0}\n", "clip_norm"},
		{"name: x\nlabels: [a, b]\nprivacy: {clip_norm: .nan}\n", "clip_norm"},
		{"name: x\nlabels: [a, b]\nprivacy: {epsilon: -1}\n", "epsilon"},
		{"name: x\nlabels: [a, b]\nprivacy: {delta: 0.5}\n", "delta"},
		{"name: x\nlabels: [a, b]\nprivacy: {accountant: moments}\n", "accountant"},
		{"name: x\nlabels: [a, b]\nprivacy: {simulated_population: 1000}\n", "simulated_cohort"},
		{"name: x\nlabels: [a, b]\nprivacy: {simulated_population: 1000, simulated_cohort: 10}\n", "nothing would be simulated"},
		{"name: x\nlabels: [a, b]\nprivacy: {simulated_population: 1000, simulated_cohort: 2000}\n", "simulated_population"},
		{"name: x\nlabels: [a, b]\nadapter: {rank_min: 4, rank_max: 2}\n", "rank_min"},
		{"name: x\nlabels: [a, b]\nadapter: {alpha: 0}\n", "alpha"},
		{"name: x\nlabels: [a, b]\ntraining: {optimizer: lion}\n", "optimizer"},
		{"name: x\nlabels: [a, b]\ncohort: {sampling_rate: 1.5}\n", "sampling_rate"},
		{"name: x\nlabels: [a, b]\ncohort: {floor: 30}\n", "above the expected cohort"},
		{"name: x\nlabels: [a, b]\ncohort: {population: 40, sampling_rate: 0.5, floor: 12}\n", "misses cohort.floor"},
		{"name: x\nlabels: [a, b]\ncohort: {floor: 3}\nshard: {floor: 8}\n", "shard.floor"},
		{"name: x\nlabels: [a, b]\nshard: {corrupt: 1}\n", "corrupt"},
		{"name: x\nlabels: [a, b]\nshard: {corrupt: 0.4}\n", "shard.floor"},
		{"name: x\nlabels: [a, b]\nshard: {corrupt: 0.4, floor: 12}\n", "breach_bits"},
		{"name: x\nlabels: [a, b]\nshard: {size: 5000}\n", "shard.size"},
		{"name: x\nlabels: [a, b]\nwire: {uplink: f32}\n", "uplink"},
		{"name: x\nlabels: [a, b]\nwire: {downlink: nf5}\n", "nf5"},
		{"name: x\nlabels: [a, b]\nserver: {optimizer: sgd}\n", "server"},
		{"name: x\nlabels: [a, b]\ndeadlines: {collect: 0s}\n", "deadlines.collect"},
		{"name: x\nlabels: [a, b]\nenrolment: {secret: short}\n", "secret"},
		{"name: x\nlabels: [a, b]\nrounds: many\n", "rounds"},
		{"[", "job"},
	} {
		_, err := ParseJob(strings.NewReader(c.yaml))
		if err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%q: %v, does not name %q", c.yaml, err, c.names)
		}
	}
	if _, err := ParseJob(strings.NewReader(strings.Repeat("#", 1<<21))); err == nil {
		t.Error("a job of two megabytes was read")
	}
}

// TestNewRefusals: what needs the base, the noise or the folder to be seen.
func TestNewRefusals(t *testing.T) {
	base := tinyBase(t)
	refused := func(name, says string, edit func(*Config)) {
		t.Helper()
		cfg := Config{Job: tinyJob(4), Dir: t.TempDir(), Base: base, Hosts: []string{}}
		edit(&cfg)
		c, err := New(cfg)
		if err == nil {
			c.Close()
			t.Errorf("%s was taken", name)
		} else if !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, does not say %q", name, err, says)
		}
	}
	refused("no base", "base", func(c *Config) { c.Base = nil })
	refused("a sequence longer than the base", "positions", func(c *Config) { c.Job.Adapter.Sequence = 9 })
	refused("an unreachable epsilon", "epsilon", func(c *Config) { c.Job.Privacy.NoiseMultiplier = 0.1 })
	refused("an epsilon of nothing", "epsilon", func(c *Config) { c.Job.Privacy.Epsilon = 1e-9; c.Job.Rounds = 1000 })
	refused("no folder", "folder", func(c *Config) { c.Dir = "" })
	refused("a short seed", "seed", func(c *Config) { c.Seed = []byte("abc") })
	refused("a full-precision base as compact", "compact_base", func(c *Config) {
		c.Base = tinyBase(t)
		for _, x := range c.Base.Tensors {
			x.Data[0], x.Data[1] = 1, 0.3
		}
		c.Job.Training.CompactBase = true
	})
	refused("a zero clip norm", "clip_norm", func(c *Config) { c.Job.Privacy.ClipNorm = 0 })

	dir := t.TempDir()
	c, err := New(Config{Job: tinyJob(4), Dir: dir, Base: base, Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Job: tinyJob(4), Dir: dir, Base: base}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a second coordinator: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	other := tinyJob(4)
	other.Privacy.ClipNorm = 2
	if _, err := New(Config{Job: other, Dir: dir, Base: base}); !errors.Is(err, store.ErrOtherJob) {
		t.Errorf("another clip norm: %v", err)
	}
	same := tinyJob(4)
	same.Deadlines.Collect++ // may be edited between starts
	if c, err = New(Config{Job: same, Dir: dir, Base: base}); err != nil {
		t.Errorf("another deadline: %v", err)
	} else if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestCalibration: the noise that will be drawn keeps all rounds within the
// budget, and is not wastefully large.
func TestCalibration(t *testing.T) {
	for name, edit := range map[string]func(*Job){
		"delivered": func(*Job) {},
		"simulated": func(j *Job) { j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 1_000_000, 10_000 },
		"rdp":       func(j *Job) { j.Privacy.Accountant = "rdp" },
		"one round": func(j *Job) { j.Rounds = 1 },
		"adaptive":  func(j *Job) { j.Clipping.Adaptive = true },
		"providers": func(j *Job) {
			j.Providers = ProvidersJob{Most: 8, Expected: 4, SamplingRate: 0.25} // one of a device in expectation
		},
		"one provider": func(j *Job) {
			j.Cohort.Population, j.Cohort.SamplingRate, j.Cohort.Floor = 48, 0.5, 3
			j.Providers = ProvidersJob{Most: 1, SamplingRate: 0.5}
		},
	} {
		j := tinyJob(24)
		j.Rounds = 20
		edit(&j)
		terms, err := newTerms(j, tinyBase(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := terms.verifyBudget(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		terms.z *= 0.999
		if err := terms.verifyBudget(); !errors.Is(err, ErrBudget) {
			t.Errorf("%s: a thousandth less noise would do, too (%v)", name, err)
		}
		if name == "one provider" {
			terms.units *= 2
		}
		if terms.units != 24 {
			t.Errorf("%s: denominator %v", name, terms.units)
		}
	}
}
