package commands

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/app/bases"
	"github.com/starling-fl/starling/internal/app/bases/start"
	"github.com/starling-fl/starling/internal/app/command"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/app/fleetdata"
	"github.com/starling-fl/starling/lab/federation"
	"github.com/starling-fl/starling/lab/sweep"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate"
)

// openLab makes what the simulations of a command share, over the base of that path or
// name; close ends it.
func openLab(a *command.App, path string, workers int, f engine.Flags, columns dataset.Columns) (lab *sweep.Lab, close func() error, err error) {
	base, err := bases.Load(path)
	if err != nil {
		return nil, nil, err
	}
	e, err := f.Open()
	if err != nil {
		return nil, nil, err
	}
	data := labData{columns: columns}
	trainer := e.Trainer(workers)
	return &sweep.Lab{
		Base: base, Workers: workers, Engine: e.Name, Trainer: trainer, Compile: e.Compile, Version: a.Version, Start: start.Load,
		Data: data.get,
		Evaluators: func(b *model.Base, l *model.Layout, sequence int, sets ...*dataset.Set) ([]sweep.Evaluator, error) {
			out := make([]sweep.Evaluator, len(sets))
			if l.Method.Task.Asks() {
				made, err := evaluate.NewQuestions(e.Backend, b, l, sequence, sets...)
				for i, m := range made {
					out[i] = labAnswerer{m}
				}
				return out, err
			}
			made, err := evaluate.NewLabelled(e.Backend, b, l, sequence, sets...)
			for i, m := range made {
				out[i] = labEvaluator{m}
			}
			return out, err
		},
	}, trainer.Close, nil
}

// labEvaluator is an evaluator that also says macro-F1, or error rates.
type labEvaluator struct{ *evaluate.Labelled }

func (e labEvaluator) Score(ctx context.Context, a *model.Adapter, rank int) (sweep.Score, error) {
	s, err := e.Labelled.Score(ctx, a, rank)
	return sweep.Score{Accuracy: s.Accuracy, MacroF1: s.MacroF1, WordErrors: s.WordErrors, CharacterErrors: s.CharacterErrors}, err
}

// labAnswerer is an answerer that also says ANLS.
type labAnswerer struct{ *evaluate.Questions }

func (e labAnswerer) Score(ctx context.Context, a *model.Adapter, rank int) (sweep.Score, error) {
	s, err := e.Questions.Score(ctx, a, rank)
	return answerScore(s), err
}

// answerScore is the two-stage mean: of each set's own metric, over the sets.
func answerScore(s evaluate.AnswerScore) sweep.Score {
	out := sweep.Score{Accuracy: s.ExactMatch, ANLS: s.ANLS}
	if len(s.Sources) > 0 {
		out.Sources, out.ANLS = map[string]float64{}, 0
	}
	for _, name := range slices.Sorted(maps.Keys(s.Sources)) {
		out.Sources[name] = ownMetric(name, s.Sources[name])
		out.ANLS += out.Sources[name] / float64(len(s.Sources))
	}
	return out
}

// ownMetric is the figure by which a set's publishers score it: accuracy of TabFact's statements,
// which are answered yes or no, ANLS of every other.
func ownMetric(source string, s evaluate.AnswerScore) float64 {
	if source == federation.TabFact {
		return s.ExactMatch
	}
	return s.ANLS
}

// labData holds validation and test out of files, or generates both. A grid asks for the
// same few again and again: each file is read once, and divided once for each seed.
type labData struct {
	columns dataset.Columns

	mu      sync.Mutex
	read    map[string]labFile
	divided map[sweep.Source]*sweep.Data
}

// labFile is all of a labelled file.
type labFile struct {
	name   string // the file's own, whatever a link to it is called
	sha256 string
	all    *dataset.Set
}

func (l *labData) get(at sweep.Source) (*sweep.Data, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.divided[at]; d != nil {
		return d, nil
	}
	d, err := l.divide(at)
	if err != nil {
		return nil, err
	}
	if l.divided == nil {
		l.divided = map[sweep.Source]*sweep.Data{}
	}
	l.divided[at] = d
	return d, nil
}

// divide is get of what is not known yet.
func (l *labData) divide(of sweep.Source) (*sweep.Data, error) {
	if of.Path == "" {
		d, err := fleetdata.Invoices(of.Seed, 1) // clients make their own documents
		if err != nil {
			return nil, err
		}
		return &sweep.Data{Name: d.Name, Labels: d.Labels, Validation: d.Validation, Test: d.Test}, nil
	}
	file, err := l.file(of.Path)
	if err != nil {
		return nil, err
	}
	hashes := []string{file.sha256}
	var test *dataset.Set
	if of.Test != "" {
		own, err := l.file(of.Test)
		if err != nil {
			return nil, err
		}
		test, hashes = own.all, append(hashes, "test "+own.sha256)
	}
	var clients [][]int
	if of.Partition != "" {
		if clients, err = dataset.LoadPartition(of.Partition, len(file.all.Examples)); err != nil {
			return nil, err
		}
		sum, err := fleetdata.Hash(of.Partition, dataset.Columns{}, nil)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, "partition "+sum)
	}
	d, err := of.Divide(file.all, test, clients)
	if err != nil {
		return nil, err
	}
	d.Name, d.SHA256 = file.name, file.sha256
	if len(hashes) > 1 {
		sum := sha256.Sum256([]byte(strings.Join(hashes, "\n")))
		d.SHA256 = hex.EncodeToString(sum[:])
	}
	return d, nil
}

// file reads a file that is not known yet.
func (l *labData) file(path string) (labFile, error) {
	if f, ok := l.read[path]; ok {
		return f, nil
	}
	all, err := l.columns.Load(path)
	if err != nil {
		return labFile{}, err
	}
	if err := fleetdata.CheckLabels(path, all); err != nil {
		return labFile{}, err
	}
	sum, err := fleetdata.Hash(path, l.columns, all)
	if err != nil {
		return labFile{}, err
	}
	own, err := fleetdata.Name(path)
	if err != nil {
		return labFile{}, err
	}
	if l.read == nil {
		l.read = map[string]labFile{}
	}
	l.read[path] = labFile{name: own, sha256: sum, all: all}
	return l.read[path], nil
}
