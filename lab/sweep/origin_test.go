package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
)

// fileLab is a lab whose data are foxes and the hash of a file.
func fileLab(t *testing.T) *Lab {
	l := lab(t)
	foxes := l.Data
	l.Data = func(s Source) (*Data, error) {
		d, err := foxes(s)
		if err != nil || s.Path == "" {
			return d, err
		}
		b, err := os.ReadFile(s.Path)
		if err != nil {
			return nil, err
		}
		of, sum := *d, sha256.Sum256(b)
		of.SHA256 = hex.EncodeToString(sum[:])
		return &of, nil
	}
	return l
}

func over(t *testing.T, path string) Point {
	t.Helper()
	p, err := Parse(strings.NewReader(grid), "")
	ok(t, err)
	at := p.Points[0]
	at.Settings.Data = path
	return at
}

// A run goes by what is in its file: another spelling of the path is the same run,
// another content is another.
func TestRunsGoByContents(t *testing.T) {
	dir, runs, l := t.TempDir(), t.TempDir(), fileLab(t)
	t.Chdir(dir)
	path := filepath.Join(dir, "foxes.txt")
	ok(t, os.WriteFile(path, []byte("foxes"), 0o600))
	ok(t, os.WriteFile("copy.txt", []byte("foxes"), 0o600))
	first, done, err := l.Make(t.Context(), over(t, path), runs)
	if err != nil || done {
		t.Fatalf("done %v, %v", done, err)
	}
	for _, spelled := range []string{path, "foxes.txt", "./foxes.txt", "copy.txt"} {
		r, done, err := l.Make(t.Context(), over(t, spelled), runs)
		if err != nil || !done || r.ID != first.ID || r.Accuracy != first.Accuracy {
			t.Errorf("%s: done %v, %v: %+v", spelled, done, err, r)
		}
	}
	ok(t, os.WriteFile(path, []byte("more foxes"), 0o600))
	if r, done, err := l.Make(t.Context(), over(t, path), runs); err != nil || done || r.ID == first.ID {
		t.Errorf("a file that changed: done %v, %v", done, err)
	}
	p := &Plan{Points: []Point{over(t, "foxes.txt"), over(t, path)}}
	if err := l.Keep(p, t.TempDir()); !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), "same simulation") {
		t.Errorf("a grid over two spellings of one file: %v", err)
	}
}

// What was made under the name of its path's spelling is found, unless the file is
// another by now.
func TestRunsByTheirOlderNames(t *testing.T) {
	dir, l := t.TempDir(), fileLab(t)
	path := filepath.Join(t.TempDir(), "foxes.txt")
	ok(t, os.WriteFile(path, []byte("foxes"), 0o600))
	at := over(t, path)
	p := &Plan{Points: []Point{at}}
	ok(t, l.Keep(p, dir))
	runs := filepath.Join(dir, RunsFolder)
	first, _, err := l.Make(t.Context(), at, runs)
	ok(t, err)
	older, err := at.Settings.ID()
	ok(t, err)
	if older == first.ID {
		t.Fatal("the name is that of the spelling")
	}
	ok(t, os.Rename(filepath.Join(runs, first.ID), filepath.Join(runs, older)))

	ok(t, os.WriteFile(path, []byte("more foxes"), 0o600))
	ok(t, l.Keep(p, dir))
	if x, records, err := Read(dir); err != nil || len(records) != 0 || x.Runs[0].ID == first.ID {
		t.Errorf("%d records of another file, %v", len(records), err)
	}
	ok(t, os.WriteFile(path, []byte("foxes"), 0o600))
	unlock, err := lock(filepath.Join(runs, older))
	ok(t, err)
	ok(t, l.Keep(p, dir))
	if _, _, err := l.Make(t.Context(), at, runs); !errors.Is(err, ErrBusy) {
		t.Errorf("a run that another process makes under its older name: %v", err)
	}
	unlock()
	ok(t, l.Keep(p, dir))
	if _, records, err := Read(dir); err != nil || len(records) != 1 || records[0].ID != first.ID || records[0].Accuracy != first.Accuracy {
		t.Errorf("records %+v, %v", records, err)
	}
	if _, done, err := l.Make(t.Context(), at, runs); err != nil || !done {
		t.Errorf("done %v, %v", done, err)
	}
	// One that was interrupted goes on.
	ok(t, os.Remove(filepath.Join(runs, first.ID, recordFile)))
	ok(t, os.Rename(filepath.Join(runs, first.ID), filepath.Join(runs, older)))
	if r, done, err := l.Make(t.Context(), at, runs); err != nil || done || r.ID != first.ID {
		t.Errorf("done %v, %v", done, err)
	}
	if _, err := os.Stat(filepath.Join(runs, older)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the older name: %v", err)
	}
}

// Of processes that find a run under its older name at once one renames its folder, and
// none fails.
func TestOlderNamesFoundAtOnce(t *testing.T) {
	const makers = 4
	path := filepath.Join(t.TempDir(), "foxes.txt")
	ok(t, os.WriteFile(path, []byte("foxes"), 0o600))
	at, l := over(t, path), fileLab(t)
	older, err := at.Settings.ID()
	ok(t, err)
	id, err := l.ID(at.Settings)
	ok(t, err)
	for range 20 {
		dir := t.TempDir()
		ok(t, os.Mkdir(filepath.Join(dir, older), 0o700))
		ok(t, os.WriteFile(filepath.Join(dir, older, "state-of-it"), nil, 0o600))
		ended := make(chan error, makers)
		for range makers {
			go func() { ended <- new(Lab).adopt(at.Settings, id, dir) }()
		}
		for range makers {
			if err := watchdog.Recv(t, "a maker", ended); err != nil && !errors.Is(err, ErrBusy) {
				t.Error(err)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, id, "state-of-it")); err != nil {
			t.Error(err)
		}
	}
}

// The adapter that a run starts from counts by its values too.
func TestStartsGoByContents(t *testing.T) {
	l := lab(t)
	l.Start = func(j job.Job, base *model.Base) (*model.Adapter, error) {
		layout, err := model.NewLayout(base.Config, j.Method(), len(j.Labels))
		if err != nil {
			return nil, err
		}
		return model.NewAdapter(layout, uint64(len(j.Adapter.Start))), nil
	}
	id := func(start string) string {
		t.Helper()
		s, err := over(t, "").Settings.With("adapter.start", start)
		ok(t, err)
		id, err := l.ID(s)
		ok(t, err)
		return id
	}
	if id("one") != id("two") || id("one") == id("three") {
		t.Errorf("one is %s, the same two %s, another %s", id("one"), id("two"), id("three"))
	}
}
