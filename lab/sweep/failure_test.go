package sweep

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/simulate"
)

// A run that came to nothing is told by the folder until it is made.
func TestFailuresAreKept(t *testing.T) {
	p, err := Parse(strings.NewReader(grid), "")
	ok(t, err)
	p.Points = p.Points[:2]
	dir, l := t.TempDir(), lab(t)
	ok(t, l.Keep(p, dir))
	runs := filepath.Join(dir, RunsFolder)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, ended := l.Make(ctx, p.Points[0], runs)
	if !errors.Is(ended, context.Canceled) {
		t.Fatalf("a run that is ended: %v", ended)
	}
	_, err = l.KeepFailure(p.Points[0], runs, ended)
	ok(t, err)
	x, done, err := Read(dir)
	ok(t, err)
	failed, err := Failures(dir, x)
	ok(t, err)
	if len(done) != 0 || len(failed) != 1 || failed[0].Error != ended.Error() || failed[0].On["method"] != p.Points[0].On["method"] {
		t.Errorf("%d done, failed %+v", len(done), failed)
	}
	// A run that is made in the end has not failed.
	p.Points[0].Settings, err = p.Points[0].Settings.With("training.learning_rate", 0.001)
	ok(t, err)
	_, err = l.KeepFailure(p.Points[0], runs, errors.New("a disk that was full"))
	ok(t, err)
	ok(t, l.Keep(p, dir))
	_, _, err = l.Make(t.Context(), p.Points[0], runs)
	ok(t, err)
	x, done, err = Read(dir)
	ok(t, err)
	if failed, err = Failures(dir, x); err != nil || len(failed) != 0 || len(done) != 1 {
		t.Errorf("%d done, failed %+v: %v", len(done), failed, err)
	}
}

// Of two that make the same run at once one does, and the other is told.
func TestTwoMakersOfOneRun(t *testing.T) {
	p, err := Parse(strings.NewReader(grid), "")
	ok(t, err)
	dir, l := t.TempDir(), lab(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, ended := make(chan struct{}), make(chan error, 1)
	first := *l
	first.Progress = func(_ Point, r simulate.Round, _ int) {
		if r.Number == 1 {
			close(began)
			<-ctx.Done()
		}
	}
	go func() {
		_, _, err := first.Make(ctx, p.Points[0], dir)
		ended <- err
	}()
	watchdog.Recv(t, "the first round", began)
	if _, _, err := l.Make(t.Context(), p.Points[0], dir); !errors.Is(err, ErrBusy) {
		t.Errorf("a run that another makes: %v", err)
	}
	cancel()
	if err := watchdog.Recv(t, "the first maker's end", ended); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, _, err := l.Make(t.Context(), p.Points[0], dir); err != nil {
		t.Errorf("a run that nobody makes any more: %v", err)
	}
}

// Who asks for a cohort that a job refuses for its size is told which one it takes.
func TestCohortsThatAreTooSmall(t *testing.T) {
	s := DefaultSettings()
	s.Cohort = 3
	_, err := s.JobOf("x", []string{"a", "b"})
	remedy, _ := job.RemedyOf(err)
	if len(remedy) != 1 || remedy[0].Key != "cohort" {
		t.Fatalf("a cohort of 3: %v", err)
	}
	least := remedy[0].Value.(int)
	for _, c := range []struct {
		less int
		want bool
	}{{0, true}, {1, false}} {
		again, err := s.With("cohort", least-c.less)
		ok(t, err)
		if _, err := again.JobOf("x", []string{"a", "b"}); (err == nil) != c.want {
			t.Errorf("a cohort of %d: %v", least-c.less, err)
		}
	}
}

// Data of another kind than the base or the task takes are refused before anything is
// made, with what would do.
func TestDataThatDoNotFit(t *testing.T) {
	sight, err := model.RandomBase(model.NewViT(16, 2, 8, 2, 1), 1, nil)
	ok(t, err)
	texts := lab(t)
	kinds := map[string]func(*dataset.Example){
		"texts": func(*dataset.Example) {},
		"images": func(e *dataset.Example) {
			e.Text, e.Image = "", &dataset.Image{Width: 8, Height: 8, Channels: 1, Pixels: make([]float32, 64)}
		},
		"words":     func(e *dataset.Example) { e.Tags = []int{0} },
		"questions": func(e *dataset.Example) { e.Question = "who?" },
		"prompts":   func(e *dataset.Example) { e.Completion = "on" },
	}
	for _, c := range []struct {
		holds, task string
		base        *model.Base
		says        string // "": it fits
	}{
		{"texts", "", texts.Base, ""},
		{"images", "image", sight, ""},
		{"words", "tag", texts.Base, ""},
		{"images", "", texts.Base, "the folder of a vit as --base, and set task to image"},
		{"images", "image", texts.Base, "the folder of a vit as --base"},
		{"images", "", sight, ""}, // the only task of such a base
		{"images", "classify", sight, "set task to image"},
		{"texts", "", sight, "give images as data, or a base that reads texts"},
		{"words", "", texts.Base, "set task to tag"},
		{"questions", "", texts.Base, "give --base starling/documents, which does, or set task to span"},
		{"prompts", "", texts.Base, "starling base fetch"},
	} {
		d, err := texts.Data(Source{Seed: 1})
		ok(t, err)
		for _, set := range []*dataset.Set{d.Train, d.Validation, d.Test} {
			for i := range set.Examples {
				kinds[c.holds](&set.Examples[i])
			}
		}
		if c.holds == "questions" || c.holds == "prompts" {
			d.Labels = nil
		}
		l := *texts
		l.Base, l.Data = c.base, func(Source) (*Data, error) { return d, nil }
		s := over(t, "").Settings
		if c.task != "" {
			s, err = s.With("task", c.task)
			ok(t, err)
		}
		if err := l.Check(s); (err == nil) != (c.says == "") || err != nil && (!errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s, task %q, a %s: %v", c.holds, c.task, c.base.Config.ModelType, err)
		}
	}
}
