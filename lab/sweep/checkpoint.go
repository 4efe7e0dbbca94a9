package sweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/model"
)

// CheckpointFolder is the folder, inside that of a finished run, that predict, evaluate and export read
// (model.ReadCheckpoint). Its base is linked to that of the other runs, where the file system can.
const CheckpointFolder = "checkpoint"

// ErrCheckpoint: a run is done, but its checkpoint cannot be written.
var ErrCheckpoint = errors.New("the run is done, but its checkpoint cannot be written")

// checkpoint writes what is released of a run into its folder, and beside it the adapter
// alone, as the same file.
func (r *Record) checkpoint(folder string, s *Setup, a *model.Adapter) error {
	info := model.CheckpointInfo{
		Job: s.Job.Name, Version: len(r.Curve), Seq: s.Job.Adapter.Sequence, Labels: s.Job.Labels,
		BestRank: r.Rank, RankAccuracy: map[string]float64{}, Privacy: r.promise(), Simulated: true,
	}
	for _, v := range r.ByRank {
		info.RankAccuracy[strconv.Itoa(v.Rank)] = v.Accuracy
	}
	dir := filepath.Join(folder, CheckpointFolder)
	runs, err := os.ReadDir(filepath.Dir(folder))
	if err != nil {
		return err
	}
	var others []string
	for _, run := range runs {
		others = append(others, filepath.Join(filepath.Dir(folder), run.Name(), CheckpointFolder))
	}
	if err := model.WriteCheckpoint(dir, &model.Checkpoint{CheckpointInfo: info, Base: s.Config.Base, Adapter: a}, others...); err != nil {
		return err
	}
	alone := filepath.Join(folder, adapterFile)
	if durable.Link(filepath.Join(dir, model.AdapterFile), alone) == nil {
		return nil
	}
	b, err := model.EncodeAdapter(a)
	if err != nil {
		return err
	}
	return durable.Replace(alone, b, 0o644)
}

// promise is what a checkpoint says of privacy: that there is none, whatever a deployment
// would have.
func (r *Record) promise() string {
	const none = "none: every secret of a simulation follows from its seed, and its operator read all data"
	if r.Guarantee == noGuarantee {
		return none + ", to which no noise was added"
	}
	n := strconv.Itoa(r.Settings.Population)
	return none + "; a deployment to " + n + " devices at these settings would have " + r.Guarantee
}

// hasCheckpoint reports whether a run's checkpoint is whole: its files are written each as a
// whole, the base's first.
func hasCheckpoint(folder string) bool {
	for _, name := range []string{model.AdapterFile, model.CheckpointFile, model.CardFile, filepath.Join(model.CheckpointBase, model.WeightsFile)} {
		if _, err := os.Stat(filepath.Join(folder, CheckpointFolder, name)); err != nil {
			return false
		}
	}
	return true
}

// complete gives a run that was done by a program that left no checkpoint its own, from
// its adapter. What the adapter means also hangs on defaults that the record does not
// hold: it has to score today what it scored then, to the last text.
func (l *Lab) complete(ctx context.Context, p Point, r *Record, folder string) error {
	data, err := os.ReadFile(filepath.Join(folder, adapterFile))
	if err != nil {
		return err
	}
	s, err := l.Setup(p.Settings)
	if err != nil {
		return err
	}
	layout, err := model.NewLayout(s.Config.Base.Config, s.Job.Method(), len(s.Job.Labels))
	if err != nil {
		return err
	}
	a, err := model.ParseAdapter(layout, data)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(folder, adapterFile), err)
	}
	ranks := make([]int, len(r.ByRank))
	for i, v := range r.ByRank {
		ranks[i] = v.Rank
	}
	scores, err := s.Validation.Evaluate(ctx, a, ranks)
	if err != nil {
		return err
	}
	for i, v := range r.ByRank {
		if scores[i].Accuracy != v.Accuracy {
			return fmt.Errorf("its adapter has %.4f on validation data at rank %d and had %.4f: version %q had other defaults; the run has to be made anew in another folder",
				scores[i].Accuracy, v.Rank, v.Accuracy, r.Version)
		}
	}
	return r.checkpoint(folder, s, a)
}
