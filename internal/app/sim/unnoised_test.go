package sim

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/model"
)

// A job without privacy adds nothing to the sum and says so wherever it speaks: to its
// devices, in what it reports, in its ledger and in what it releases. Its folder takes no
// private job, nor a private one's folder it.
func TestJobWithoutNoise(t *testing.T) {
	cfg := config(t, 6)
	j := &cfg.Coordinator.Job
	j.Privacy.None = true
	j.Privacy.SimulatedPopulation, j.Privacy.SimulatedCohort, j.Privacy.NoiseMultiplier = 0, 0, 0
	cfg.AcceptNotPrivate = true
	r, err := play(t, cfg)
	ok(t, err)
	if r.Private || r.Delivered != nil || r.Simulated != nil || r.Rounds != 3 {
		t.Errorf("%+v", r.Result)
	}
	// The head's bias begins at zero, and every update is 0.02 in each value: without
	// noise three rounds are three of them but for rounding.
	head := r.Adapter.Slice(0)
	for _, x := range head[len(head)-2:] {
		if math.Abs(float64(x)-0.06) > 1e-3 {
			t.Errorf("%v, want 0.06", x)
		}
	}
	l, err := store.ReadLedger(cfg.Coordinator.Dir)
	ok(t, err)
	if l.Private || !l.Unnoised || len(l.Entries) != 3 {
		t.Errorf("ledger: private %v, unnoised %v, %d entries", l.Private, l.Unnoised, len(l.Entries))
	}
	for _, e := range l.Entries {
		if e.Event.Kind != dp.KindUnnoised || e.Event.NoiseMultiplier != 0 || e.Note.Delivered != nil {
			t.Errorf("%+v", e)
		}
		if _, err := accounting.Epsilon([]dp.Event{e.Event}, 1e-6, dp.Tight); !errors.Is(err, dp.ErrUnnoised) {
			t.Errorf("an accountant says %v", err)
		}
	}
	ck, err := model.ReadCheckpoint(r.Checkpoint)
	ok(t, err)
	if !strings.HasPrefix(ck.Privacy, "not private") || !strings.Contains(ck.Privacy, "no noise") {
		t.Errorf("checkpoint: %q", ck.Privacy)
	}
	card, err := os.ReadFile(filepath.Join(r.Checkpoint, model.CardFile))
	ok(t, err)
	if !strings.Contains(string(card), "Not private: no noise") {
		t.Error("the model card does not say so")
	}
	again := config(t, 6)
	again.Coordinator.Dir = cfg.Coordinator.Dir
	if _, err := coordinator.New(again.Coordinator); err == nil {
		t.Error("a private job goes on in the folder of one without noise")
	}
}
