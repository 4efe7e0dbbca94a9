package simulate

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/job"
)

// fuzzed is a run of a job that is as small as they get.
func fuzzed(t testing.TB, path string) *Run {
	t.Helper()
	base := tiny.Base(t, 8, 2, 8)
	j := job.Default()
	j.Name, j.Labels, j.Rounds = "fuzz", []string{"one", "two"}, 2
	j.Adapter = job.Adapter{RankMin: 1, RankMax: 1, Alpha: 1, Sequence: 4}
	j.Training.Steps, j.Training.Batch = 1, 1
	j.Cohort.Population, j.Cohort.Floor = 3, 3
	j.Shard = job.Shard{Size: 8, Floor: 3}
	j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort = 1000, 10
	j.Privacy.Accountant = "rdp"
	set := &dataset.Set{Labels: j.Labels, Examples: []dataset.Example{{Text: "one"}}}
	r, err := New(Config{Job: j, Base: base, Population: Each{set, set, set}, Seed: bytes.Repeat([]byte{1}, 16), Workers: 1, State: path})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A state file is this machine's own, but a disk may hand back anything, and a
// stranger may send one with a data set: nothing in it may do worse than be
// refused.
func FuzzState(f *testing.F) {
	path := filepath.Join(f.TempDir(), "state")
	r := fuzzed(f, path)
	defer r.Close()
	if _, err := r.Rounds(f.Context()); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good[sha256.Size:])
	f.Add([]byte{0xa5, 0x01, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		sum := sha256.Sum256(b)
		if err := r.parse(append(sum[:], b...)); err == nil && len(r.rounds) != int(r.core.Version()) {
			t.Errorf("%d rounds at version %d", len(r.rounds), r.core.Version())
		}
	})
}

// What one engine has begun no other continues with: the bits differ.
func TestAnotherEngineIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	r := fuzzed(t, path)
	defer r.Close()
	if _, err := r.Rounds(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg := r.cfg
	cfg.Trainer, cfg.Collect = nil, nil
	same, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer same.Close()
	if same.Done() != 2 {
		t.Errorf("%d rounds taken up, want 2", same.Done())
	}
	cfg.Engine = "another"
	if _, err := New(cfg); !errors.Is(err, ErrState) {
		t.Errorf("another engine: %v", err)
	}
}
