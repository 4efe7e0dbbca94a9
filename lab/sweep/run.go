package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/leaf/durable"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/simulate"
)

// Record is a run's result with all of its settings.
type Record struct {
	ID       string            `json:"id"`
	On       map[string]string `json:"on"` // by axis of the grid
	Settings Settings          `json:"settings"`
	Engine   string            `json:"engine"`
	Version  string            `json:"version"`
	Base     string            `json:"base"` // SHA-256 of the base, hexadecimal
	Data     string            `json:"data"` // how the population was put together
	Division *Division         `json:"division,omitempty"`
	// Start is the SHA-256 of the adapter that the first round began with, hexadecimal;
	// "" for a fresh one.
	Start string `json:"start,omitempty"`

	Values          int     `json:"values"` // trained, at the largest rank
	Rho             float64 `json:"rho"`
	NoiseMultiplier float64 `json:"noise_multiplier"`
	Epsilon         float64 `json:"epsilon"` // of the simulated deployment
	Delta           float64 `json:"delta"`
	Guarantee       string  `json:"guarantee"`
	// Search is the cost of the whole search that this run belongs to; nil if its privacy is not counted, or
	// nothing is private.
	Search *dp.Guarantee `json:"search,omitempty"`

	// Means over the rounds.
	SignalNorm float64 `json:"signal_norm"`
	NoiseNorm  float64 `json:"noise_norm"`
	Clipped    float64 `json:"clipped"`
	Cohort     float64 `json:"cohort"`
	BytesUp    float64 `json:"bytes_up"` // of one device and round, the masked vector
	BytesDown  float64 `json:"bytes_down"`

	Rank       int     `json:"rank"`       // chosen by validation
	Validation float64 `json:"validation"` // accuracy at it
	Accuracy   float64 `json:"accuracy"`   // on the test split, at it
	MacroF1    float64 `json:"macro_f1"`
	// MajorityAccuracy is the accuracy that always saying the test split's commonest label has; 0
	// where there are no labels.
	MajorityAccuracy float64 `json:"commonest,omitempty"`
	// References are what the accuracy is held to beside it; nil of a record that an older program made.
	References *References `json:"references,omitempty"`
	// ANLS is of answers, which have no classes: accuracies are then exact matches.
	// Of questions from several data sets it is the mean over the sets of each one's mean,
	// and Sources has these; TabFact's is accuracy, as its publishers have it.
	ANLS    *float64           `json:"anls,omitempty"`
	Sources map[string]float64 `json:"anls_by_source,omitempty"`
	// Error rates of words and of characters of what is transcribed, which has no classes:
	// accuracies are then 1 less the word error rate. nil for other tasks.
	WordErrors      *float64 `json:"word_error_rate,omitempty"`
	CharacterErrors *float64 `json:"character_error_rate,omitempty"`

	ByRank []simulate.RankAccuracy `json:"by_rank"` // validation, every rank
	Curve  []simulate.Round        `json:"rounds"`

	Seconds float64 `json:"seconds"` // of the last process that worked on it
}

// Score compares runs, 0..1: ANLS of answers, else accuracy.
func (r *Record) Score() float64 {
	if r.ANLS != nil {
		return *r.ANLS
	}
	return r.Accuracy
}

// stateFiles are in the folder of a run that is not done: one for each base, engine and
// so on that it was begun with, so that none of them stands in another's way.
const stateFiles = "state-*"

// Names of the other files in a run's folder.
const (
	recordFile  = "result.json"
	adapterFile = "adapter.safetensors"
)

// noGuarantee is that of a run without noise, whose epsilon and delta are 0 for none.
const noGuarantee = "none: no noise was added, and no epsilon holds"

// ErrOther: the folder's run was made with other settings, data or programs.
var ErrOther = errors.New("it was made with something else")

// Make makes the point's run in its folder below dir, or takes up where it was
// interrupted. A run that is done is read; done tells which. One that another process is
// making is [ErrBusy]. With [ErrCheckpoint] the record is there all the same.
func (l *Lab) Make(ctx context.Context, p Point, dir string) (r *Record, done bool, err error) {
	id, err := l.ID(p.Settings)
	if err == nil {
		err = l.adopt(p.Settings, id, dir)
	}
	if err != nil {
		return nil, false, err
	}
	folder := filepath.Join(dir, id)
	if len(p.Settings.First) > 0 {
		if p.Settings.start, err = l.before(ctx, p, dir); err != nil {
			return nil, false, err
		}
	}
	r, err = l.finished(p, folder)
	if err == nil && hasCheckpoint(folder) || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err == nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, false, err
	}
	unlock, err := lock(folder)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", folder, err)
	}
	defer unlock()
	if r, err = l.finished(p, folder); err == nil { // by another process, meanwhile, or by an older program
		if !hasCheckpoint(folder) {
			if err = l.complete(ctx, p, r, folder); err != nil {
				err = fmt.Errorf("%w: %w", ErrCheckpoint, err)
			}
		}
		return r, true, err
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	r, err = l.make(ctx, p, id, folder)
	return r, false, err
}

// firstFolder holds the runs, below a folder of runs, that others start from.
const firstFolder = "first"

// before makes the run that a point's starts from, and names its checkpoint. Points that
// start from the same share it.
func (l *Lab) before(ctx context.Context, p Point, dir string) (string, error) {
	var err error
	if p.Settings, err = p.Settings.Before(); err != nil {
		return "", err
	}
	r, _, err := l.Make(ctx, p, filepath.Join(dir, firstFolder))
	if err != nil {
		return "", fmt.Errorf("first: %w", err)
	}
	return filepath.Join(dir, firstFolder, r.ID, CheckpointFolder), nil
}

// finished reads the record of a run that is done; fs.ErrNotExist where it is not.
func (l *Lab) finished(p Point, folder string) (*Record, error) {
	r, err := readRecord(folder)
	if err != nil {
		return nil, err
	}
	from, err := l.madeFrom(p.Settings)
	if err != nil {
		return nil, err
	}
	if !from.are(r) || r.Engine != l.Engine {
		return nil, fmt.Errorf("%s: %w: %s; use another folder", folder, ErrOther, strings.Join(from.changed(r, l.Engine), "; "))
	}
	r.ID, r.On = filepath.Base(folder), p.On
	return r, nil
}

// make makes a run in its folder.
func (l *Lab) make(ctx context.Context, p Point, id, folder string) (*Record, error) {
	began := time.Now()
	s, err := l.Setup(p.Settings)
	if err != nil {
		return nil, err
	}
	s.Config.State = filepath.Join(folder, stateFiles)
	if l.Progress != nil {
		s.Config.Progress = func(round simulate.Round) { l.Progress(p, round, s.Job.Rounds) }
	}
	run, err := simulate.New(s.Config)
	if err != nil {
		return nil, err
	}
	if l.Begin != nil {
		others, err := otherStates(folder, run.State())
		if err != nil {
			return nil, errors.Join(err, run.Close())
		}
		l.Begin(p, run.Done(), others)
	}
	result, err := run.Rounds(ctx)
	if err = errors.Join(err, run.Close()); err != nil {
		return nil, err
	}
	from, err := l.madeFrom(p.Settings)
	if err != nil {
		return nil, err
	}
	r := &Record{
		ID: id, On: p.On, Settings: p.Settings, Engine: l.Engine, Version: l.Version, Base: from.base, Data: s.Config.Data, Division: s.Division, Start: from.start,
	}
	if l.Doing != nil {
		l.Doing(fmt.Sprintf("scoring rank %d on the test part", result.BestRank))
	}
	if err := r.fill(ctx, s, result); err != nil {
		return nil, err
	}
	if l.Doing != nil {
		l.Doing("scoring the untouched base and a linear model on the test part")
	}
	if r.References, err = l.refer(ctx, s); err != nil {
		return nil, err
	}
	r.Seconds = time.Since(began).Seconds()
	if err := r.checkpoint(folder, s, result.Adapter); err != nil {
		return nil, err
	}
	return r, r.write(folder, run.State(), run.Job().Wire)
}

// otherStates are those of a folder but own.
func otherStates(folder, own string) (others []string, err error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		path := filepath.Join(folder, f.Name())
		if strings.HasPrefix(f.Name(), "state") && path != own {
			others = append(others, path)
		}
	}
	return others, nil
}

// fill computes the record's figures; the test split is asked once, at the rank
// that validation chose.
func (r *Record) fill(ctx context.Context, s *Setup, result simulate.Result) error {
	r.Values, r.Rho, r.NoiseMultiplier = result.Values, result.Rho, result.NoiseMultiplier
	r.Epsilon, r.Delta, r.Guarantee = result.Guarantee.Epsilon, result.Guarantee.Delta, result.Guarantee.String()
	if s.Job.Privacy.None {
		r.Guarantee = noGuarantee
	}
	r.Search = result.Search
	r.ByRank, r.Curve, r.Rank = result.Validation, result.Rounds, result.BestRank
	for _, v := range result.Validation {
		if v.Rank == r.Rank {
			r.Validation = v.Accuracy
		}
	}
	n := float64(len(result.Rounds))
	for _, round := range result.Rounds {
		r.SignalNorm += round.SignalNorm / n
		r.NoiseNorm += round.NoiseNorm / n
		r.Clipped += round.Clipped / n
		r.Cohort += float64(round.Cohort) / n
		r.BytesUp += float64(round.BytesUp) / n
		r.BytesDown += float64(round.BytesDown) / n
	}
	score, err := s.Test.Score(ctx, result.Adapter, r.Rank)
	r.Accuracy, r.MacroF1 = score.Accuracy, score.MacroF1
	r.WordErrors, r.CharacterErrors = score.WordErrors, score.CharacterErrors
	if e, ok := s.Test.(judged); ok {
		r.MajorityAccuracy = e.MajorityAccuracy()
	}
	if s.Job.Method().Task.Asks() {
		r.ANLS, r.Sources = &score.ANLS, score.Sources
	}
	return err
}

// write keeps the record that says the run is done; the state is not needed any more.
func (r *Record) write(folder, state string, w job.Wire) error {
	b, err := bytesTable(r.Curve, w)
	if err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(folder, bytesFile), b, 0o644); err != nil {
		return err
	}
	if b, err = json.MarshalIndent(r, "", " "); err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(folder, recordFile), append(b, '\n'), 0o644); err != nil {
		return err
	}
	for _, path := range []string{state, filepath.Join(folder, failureFile)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

const maxRecord = 64 << 20

func readRecord(folder string) (*Record, error) {
	var r Record
	if err := readJSON(filepath.Join(folder, recordFile), &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// ClipNorm is the clip norm of the last round.
func (r *Record) ClipNorm() float64 {
	if len(r.Curve) == 0 {
		return 0
	}
	return r.Curve[len(r.Curve)-1].ClipNorm
}
