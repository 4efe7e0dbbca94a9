package sweep

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/simulate"
)

// A run that is done has a checkpoint, which says what a simulation is, and whose base
// is on the disk once for all runs of a grid.
func TestRunLeavesACheckpoint(t *testing.T) {
	p, err := Parse(strings.NewReader(grid), "")
	ok(t, err)
	dir, l := t.TempDir(), lab(t)
	var bases []os.FileInfo
	for _, at := range p.Points[:3] {
		r, _, err := l.Make(t.Context(), at, dir)
		ok(t, err)
		folder := filepath.Join(dir, r.ID)
		c, err := model.ReadCheckpoint(filepath.Join(folder, CheckpointFolder))
		ok(t, err)
		if c.Version != 3 || c.Job != "foxes" || c.BestRank != r.Rank || !slices.Equal(c.Labels, []string{"a", "b"}) || c.Seq != 8 || len(c.RankAccuracy) != len(r.ByRank) {
			t.Errorf("%+v", c.CheckpointInfo)
		}
		for _, want := range []string{"none: ", "its operator read all data", "a deployment to 2000 devices at these settings would have SIMULATED epsilon"} {
			if !strings.Contains(c.Privacy, want) {
				t.Errorf("privacy is %q, want %q in it", c.Privacy, want)
			}
		}
		card := string(c.Card(c.Method.RMax, "peft"))
		if !c.Simulated || strings.Contains(card, "never left") || !strings.Contains(card, "Trained by a simulation") || !strings.Contains(card, "simulated federated fine-tuning") {
			t.Errorf("the card says:\n%s", card)
		}
		alone, err := os.ReadFile(filepath.Join(folder, adapterFile))
		ok(t, err)
		released, err := os.ReadFile(filepath.Join(folder, CheckpointFolder, model.AdapterFile))
		ok(t, err)
		if string(alone) != string(released) {
			t.Error("the checkpoint has another adapter than the run")
		}
		base, err := os.Stat(filepath.Join(folder, CheckpointFolder, model.CheckpointBase, model.WeightsFile))
		ok(t, err)
		bases = append(bases, base)
	}
	if err := os.Link(filepath.Join(dir, "x"), filepath.Join(dir, "y")); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no hard links here")
	}
	for _, b := range bases[1:] {
		if !os.SameFile(bases[0], b) {
			t.Error("the base lies on the disk more than once")
		}
	}
}

// Without noise nothing is promised of a deployment either.
func TestCheckpointOfARunWithoutNoise(t *testing.T) {
	p, err := Parse(strings.NewReader(grid), "")
	ok(t, err)
	dir, l := t.TempDir(), lab(t)
	at := p.Points[0]
	at.Settings.Job = clone(at.Settings.Job)
	at.Settings.Job["privacy"] = map[string]any{"none": true}
	r, _, err := l.Make(t.Context(), at, dir)
	ok(t, err)
	c, err := model.ReadCheckpoint(filepath.Join(dir, r.ID, CheckpointFolder))
	ok(t, err)
	if !strings.HasPrefix(c.Privacy, "none: ") || strings.Contains(c.Privacy, "epsilon") || !strings.Contains(c.Privacy, "no noise was added") {
		t.Errorf("privacy is %q", c.Privacy)
	}
}

// A run of a program that left no checkpoint gets it from its adapter, unless that means
// something else today.
func TestRunOfBeforeGetsACheckpoint(t *testing.T) {
	p, err := Parse(strings.NewReader(grid), "")
	ok(t, err)
	dir, l := t.TempDir(), lab(t)
	first, _, err := l.Make(t.Context(), p.Points[0], dir)
	ok(t, err)
	folder := filepath.Join(dir, first.ID, CheckpointFolder)
	want, err := model.ReadCheckpoint(folder)
	ok(t, err)
	ok(t, os.RemoveAll(folder))
	for range 2 { // the second finds it there
		r, done, err := l.Make(t.Context(), p.Points[0], dir)
		if err != nil || !done || r.Accuracy != first.Accuracy {
			t.Fatalf("%+v, %v, %v", r, done, err)
		}
		got, err := model.ReadCheckpoint(folder)
		ok(t, err)
		if !slices.Equal(got.Adapter.Slice(2), want.Adapter.Slice(2)) || got.Privacy != want.Privacy || got.BestRank != want.BestRank {
			t.Errorf("%+v, want %+v", got.CheckpointInfo, want.CheckpointInfo)
		}
	}
	ok(t, os.Remove(filepath.Join(folder, model.AdapterFile))) // cut off while it was written
	_, _, err = l.Make(t.Context(), p.Points[0], dir)
	ok(t, err)
	if _, err := model.ReadCheckpoint(folder); err != nil {
		t.Error(err)
	}

	ok(t, os.RemoveAll(folder))
	record := filepath.Join(dir, first.ID, recordFile)
	b, err := os.ReadFile(record)
	ok(t, err)
	changed := strings.Replace(string(b), `"by_rank": [`, `"by_rank": [{"rank": 1, "accuracy": 0.125},`, 1)
	ok(t, os.WriteFile(record, []byte(changed), 0o600))
	r, done, err := l.Make(t.Context(), p.Points[0], dir)
	if !errors.Is(err, ErrCheckpoint) || !strings.Contains(err.Error(), "had 0.1250") || !done || r == nil {
		t.Errorf("an adapter that scores otherwise: %+v, %v, %v", r, done, err)
	}
	ok(t, os.Remove(filepath.Join(dir, first.ID, adapterFile)))
	if r, done, err = l.Make(t.Context(), p.Points[0], dir); !errors.Is(err, ErrCheckpoint) || !done || r == nil {
		t.Errorf("without an adapter: %+v, %v, %v", r, done, err)
	}
	if hasCheckpoint(filepath.Join(dir, first.ID)) {
		t.Error("a checkpoint was written all the same")
	}
}

// A record says that the run is done: whatever cuts it off before, the checkpoint is
// there first.
func TestCheckpointComesBeforeTheRecord(t *testing.T) {
	p, err := Parse(strings.NewReader(grid), "")
	ok(t, err)
	dir, l := t.TempDir(), lab(t)
	id, err := l.ID(p.Points[0].Settings)
	ok(t, err)
	// A file stands where the checkpoint's folder would.
	ok(t, os.MkdirAll(filepath.Join(dir, id), 0o700))
	ok(t, os.WriteFile(filepath.Join(dir, id, CheckpointFolder), nil, 0o600))
	if _, _, err := l.Make(t.Context(), p.Points[0], dir); err == nil {
		t.Fatal("a checkpoint was written into a file")
	}
	if _, err := readRecord(filepath.Join(dir, id)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the run is done: %v", err)
	}
	ok(t, os.Remove(filepath.Join(dir, id, CheckpointFolder)))
	again := *l
	made := 0
	again.Progress = func(Point, simulate.Round, int) { made++ }
	if _, done, err := again.Make(context.Background(), p.Points[0], dir); err != nil || done || made > 0 {
		t.Errorf("done %v, %d rounds were made again: %v", done, made, err)
	}
}
