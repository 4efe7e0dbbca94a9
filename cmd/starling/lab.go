package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/simulate/sweep"
)

// openLab makes what the simulations of a command share, over the base of that path or
// name; close ends it.
func openLab(path string, workers int, f engineFlags, columns dataset.Columns) (lab *sweep.Lab, close func() error, err error) {
	base, err := loadBase(path)
	if err != nil {
		return nil, nil, err
	}
	e, err := f.open()
	if err != nil {
		return nil, nil, err
	}
	type key struct {
		path string
		seed uint64
	}
	var mu sync.Mutex
	known := map[key]*sweep.Data{} // by mu: a grid asks for the same few again and again
	trainer := e.trainer(workers)
	return &sweep.Lab{
		Base: base, Workers: workers, Engine: e.name, Trainer: trainer, Compile: e.compile, Version: version, Start: loadStart,
		Data: func(path string, seed uint64) (*sweep.Data, error) {
			mu.Lock()
			defer mu.Unlock()
			if d := known[key{path, seed}]; d != nil {
				return d, nil
			}
			d, err := labData(path, seed, columns)
			if err == nil {
				known[key{path, seed}] = d
			}
			return d, err
		},
		Evaluators: func(b *model.Base, l *model.Layout, sequence int, sets ...*dataset.Set) ([]sweep.Evaluator, error) {
			out := make([]sweep.Evaluator, len(sets))
			if l.LoRA.Task.Asks() {
				made, err := newAnswerers(e.backend, b, l, sequence, sets...)
				for i, m := range made {
					out[i] = labAnswerer{m}
				}
				return out, err
			}
			made, err := newEvaluators(e.backend, b, l, sequence, sets...)
			for i, m := range made {
				out[i] = labEvaluator{m}
			}
			return out, err
		},
	}, trainer.Close, nil
}

// labEvaluator is an evaluator that also says macro-F1.
type labEvaluator struct{ *evaluator }

func (e labEvaluator) Score(ctx context.Context, a *model.Adapter, rank int) (accuracy, macroF1 float64, err error) {
	s, err := e.score(ctx, a, rank)
	return s.Accuracy, s.MacroF1, err
}

// labAnswerer is an answerer that also says ANLS.
type labAnswerer struct{ *answerer }

func (e labAnswerer) Score(ctx context.Context, a *model.Adapter, rank int) (exact, anls float64, err error) {
	s, err := e.score(ctx, a, rank)
	return s.ExactMatch, s.ANLS, err
}

// labData holds validation and test out of a file, or generates both.
func labData(path string, seed uint64, columns dataset.Columns) (*sweep.Data, error) {
	if path == "" {
		d, err := generatedData(seed, 1) // clients make their own documents
		if err != nil {
			return nil, err
		}
		return &sweep.Data{Name: d.Name, Labels: d.Labels, Validation: d.Validation, Test: d.Test}, nil
	}
	f := fileDivision{path: path, columns: columns, seed: seed}
	all, err := loadLabelled(path, columns)
	if err != nil {
		return nil, err
	}
	sum, err := dataHash(path, all)
	if err != nil {
		return nil, err
	}
	if len(all.Labels) == 1 {
		return nil, fmt.Errorf("%s: every example has the label %q: want at least 2 labels", path, all.Labels[0])
	}
	parts, err := f.split(all, &fleetData{})
	if err != nil {
		return nil, err
	}
	for i, what := range []string{"train on", "validate on", "test on"} {
		if len(parts[i].Examples) == 0 {
			return nil, fmt.Errorf("%s: %d examples are too few: none is left to %s", path, len(all.Examples), what)
		}
	}
	return &sweep.Data{Name: filepath.Base(path), SHA256: sum, Labels: all.Labels, Train: parts[0], Validation: parts[1], Test: parts[2]}, nil
}

// dataHash tells what is at path from what it was, or will be: the hash of a file, or of
// a folder of images their labels and hashes in order.
func dataHash(path string, of *dataset.Set) (_ string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if at, err := f.Stat(); err != nil {
		return "", err
	} else if at.IsDir() {
		for _, e := range of.Examples {
			fmt.Fprintf(h, "%q %x\n", of.Labels[e.Label], e.Image.Identity())
		}
	} else if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
