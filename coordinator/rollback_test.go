package coordinator

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
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
