package sweep

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// Two machines' folders are one sweep: what either made, what failed and was made nowhere,
// and what is left.
func TestFoldersOfOneSweep(t *testing.T) {
	p, err := Parse(strings.NewReader(grid), "")
	ok(t, err)
	l, dirs := lab(t), []string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		part := &Plan{Name: p.Name, Axes: p.Axes, Points: p.Points[:4]}
		ok(t, l.Keep(part, dir))
		for _, at := range part.Points[i : i+2] { // the second by both
			_, _, err := l.Make(t.Context(), at, filepath.Join(dir, RunsFolder))
			ok(t, err)
		}
	}
	_, err = l.KeepFailure(p.Points[2], filepath.Join(dirs[0], RunsFolder), errors.New("diverged")) // made by the other
	ok(t, err)
	_, err = l.KeepFailure(p.Points[3], filepath.Join(dirs[1], RunsFolder), errors.New("diverged"))
	ok(t, err)
	x, done, failed, err := ReadAll(dirs...)
	ok(t, err)
	if len(x.Runs) != 4 || len(done) != 3 || len(failed) != 1 || failed[0].ID != x.Runs[3].ID || len(x.Missing(done, failed)) != 0 {
		t.Errorf("%d runs, %d done, failed %v", len(x.Runs), len(done), failed)
	}
	x, done, failed, err = ReadAll(dirs[0])
	ok(t, err)
	if missing := x.Missing(done, failed); len(missing) != 1 || missing[0].ID != x.Runs[3].ID {
		t.Errorf("missing of the first alone: %v", missing)
	}
	other := t.TempDir()
	ok(t, l.Keep(&Plan{Axes: p.Axes[:1], Points: p.Points[:1]}, other))
	if _, _, _, err := ReadAll(dirs[0], other); err == nil || !strings.Contains(err.Error(), "is not part of the sweep in "+dirs[0]) {
		t.Errorf("another sweep: %v", err)
	}
}
