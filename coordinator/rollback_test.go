package coordinator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/model"
)

// TestHostileRollback: who puts an older copy of the store back, by mistake or to have
// the budget again, is told that it has forgotten rounds; so is who takes it away. The
// newest copy goes on.
func TestHostileRollback(t *testing.T) {
	const n = 3
	dir, base := t.TempDir(), tinyBase(t)
	file := filepath.Join(dir, store.FileName)
	job := tinyJob(n)
	job.Rounds = 3
	var keys []*player
	play := func(stopAt int) {
		t.Helper()
		tb := setTable(t, Config{Job: job, Dir: dir, Base: base}, n, func(i int, p *player) {
			if keys != nil {
				p.key = keys[i].key
			}
		})
		keys = tb.players
		tb.onProgress = func(p monitor.Status) {
			if p.State == monitor.StateCommitted && p.Version == stopAt && stopAt < job.Rounds {
				tb.stop()
			}
		}
		if err := tb.run(); stopAt == job.Rounds && err != nil {
			t.Fatal(err)
		}
	}
	play(1)
	older := mustRead(t, file)
	play(3)
	newest := mustRead(t, file)
	again := func() error {
		c, err := New(Config{Job: job, Dir: dir, Base: base, Hosts: []string{}})
		if err == nil {
			err = c.Close()
		}
		return err
	}
	for name, put := range map[string]func() error{
		"older": func() error { return os.WriteFile(file, older, 0o600) },
		"none":  func() error { return os.Remove(file) },
	} {
		for _, beside := range []string{"-wal", "-shm"} {
			if err := os.Remove(file + beside); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if err := again(); !errors.Is(err, ErrRolledBack) || !strings.Contains(err.Error(), "version 3") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.WriteFile(file, newest, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := again(); err != nil {
			t.Errorf("the newest copy after %s: %v", name, err)
		}
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestReleasedElsewhere: another folder that knows of a newer release refuses to go on from an
// older state; a release that is not known there is handed on, at its round and at a start.
func TestReleasedElsewhere(t *testing.T) {
	const n = 3
	dir, base := t.TempDir(), tinyBase(t)
	job := tinyJob(n)
	job.Rounds = 2
	var handed []int
	cfg := Config{Job: job, Dir: dir, Base: base, Hosts: []string{}, Sources: `{"name":"elsewhere"}`,
		Released: func(version int, at string) {
			if b := mustRead(t, filepath.Join(at, model.CheckpointFile)); !strings.Contains(string(b), fmt.Sprintf(`"version": %d`, version)) {
				t.Errorf("version %d is handed on as %s", version, b)
			}
			handed = append(handed, version)
		}}
	if err := setTable(t, cfg, n, nil).run(); err != nil {
		t.Fatal(err)
	}
	if handed = slices.Compact(handed); !slices.Equal(handed, []int{1, 2}) {
		t.Errorf("handed on were %v", handed)
	}
	if text, err := store.ReadSources(dir); err != nil || text != cfg.Sources {
		t.Errorf("sources %q, %v", text, err)
	}
	for version, want := range []error{nil, nil, nil, ErrRolledBack} {
		handed, cfg.Elsewhere = nil, &model.CheckpointInfo{Job: job.Name, Version: version}
		c, err := New(cfg)
		if !errors.Is(err, want) {
			t.Errorf("version %d elsewhere: %v", version, err)
		}
		if is := len(handed) > 0; is != (version < 2) {
			t.Errorf("version %d elsewhere: handed on were %v", version, handed)
		}
		if err == nil {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
