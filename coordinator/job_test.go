package coordinator

import (
	"errors"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/testkit/tiny"
)

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
	refused("rounds of one device", "cohort.size is 1, must be at least 2", func(c *Config) {
		c.Job.Privacy.None, c.Job.Shard.Corrupt = true, 0
		c.Job.Cohort.Sampling, c.Job.Cohort.Size, c.Job.Cohort.Floor = "fixed", 1, 0
	})
	refused("no folder", "folder", func(c *Config) { c.Dir = "" })
	refused("a short seed", "seed", func(c *Config) { c.Seed = []byte("abc") })
	refused("a full-precision base as compact", "compact_base", func(c *Config) {
		c.Base = tinyBase(t)
		for _, x := range c.Base.Tensors {
			x.Data[0], x.Data[1] = 1, 0.3
		}
		c.Job.Training.CompactBase = true
	})
	refused("a full-precision base as nf4", "base_format", func(c *Config) { c.Job.BaseFormat = "nf4" })
	refused("another base than the job names", "base_sha256", func(c *Config) { c.Job.BaseSHA256 = strings.Repeat("00", 32) })
	refused("a hash that is none", "base_sha256", func(c *Config) { c.Job.BaseSHA256 = "00" })
	refused("a branch for a commit", "base_revision", func(c *Config) { c.Job.BaseRevision = "main" })
	refused("a format that is none", "base_format", func(c *Config) { c.Job.BaseFormat = "f16" })
	refused("pieces that do not make up the batch", "micro_batch", func(c *Config) { c.Job.Training.MicroBatch = 3 })
	refused("a negative clip norm", "clip_norm", func(c *Config) { c.Job.Privacy.ClipNorm = -1 })

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
	for want, edit := range map[string]func(*Config){
		"privacy.clip_norm: 1 in the folder, 2 in the file.":    func(c *Config) { c.Job.Privacy.ClipNorm = 2 },
		"adapter.rank_max: 3 in the folder, 2 in the file.":     func(c *Config) { c.Job.Adapter.RankMax = 2 },
		"labels: [\"a\",\"b\"] in the folder, [\"a\",\"c\"] in": func(c *Config) { c.Job.Labels = []string{"a", "c"} },
		"rounds: 2 in the folder, 5 in the file.":               func(c *Config) { c.Job.Rounds = 5 },
		"the run: not set in the folder, reproducible":          func(c *Config) { c.Seed = make([]byte, 32) },
		"base: bert, SHA-256":                                   func(c *Config) { c.Base = tiny.Base(t, 8, 2, 8) },
	} {
		cfg := Config{Job: tinyJob(4), Dir: dir, Base: base}
		edit(&cfg)
		if _, err := New(cfg); !errors.Is(err, store.ErrOtherJob) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	same := tinyJob(4)
	same.Deadlines.Collect++ // may be edited between starts
	if c, err = New(Config{Job: same, Dir: dir, Base: base}); err != nil {
		t.Errorf("another deadline: %v", err)
	} else if err := c.Close(); err != nil {
		t.Error(err)
	}
}
