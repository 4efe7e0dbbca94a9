package commands

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/dataset/calls"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/lab/pretraining"
	"github.com/starling-fl/starling/model"
)

// callsForWords is how many generated commands the vocabulary is made of, with a line of
// prose to every proseEvery of them.
const (
	callsForWords = 24000
	proseEvery    = 4
)

// callsBase is a small decoder.
type callsBase struct {
	pretraining.WriterSpec
	sizes
}

// defaultCalls is what `starling demo --task causal` starts from.
func defaultCalls() *callsBase {
	return &callsBase{pretraining.WriterSpec{Source: calls.Version, Spec: pretraining.Spec{Batch: 24, Sequence: 40, Steps: 4000, LearningRate: 2e-3, Seed: 1}},
		sizes{hidden: 192, layers: 6, heads: 6, vocab: 2048}}
}

func (s *callsBase) common() *pretraining.Spec { return &s.Spec }
func (*callsBase) generator() string           { return calls.Version }

func (s *callsBase) resize(given func(string) bool, to sizes) error {
	if given("hidden") {
		s.hidden, s.heads = to.hidden, max(1, to.hidden/32)
	}
	if given("layers") {
		s.layers = to.layers
	}
	if given("heads") {
		s.heads = to.heads
	}
	if given("vocab") {
		s.vocab = to.vocab
	}
	if s.heads < 1 || s.hidden%s.heads != 0 {
		return fmt.Errorf("--heads is %d, want a divisor of --hidden, %d", s.heads, s.hidden)
	}
	return s.configure(max(2, s.vocab))
}

// configure is the configuration for a vocabulary.
func (s *callsBase) configure(vocab int) error {
	s.Config = model.Llama(vocab, s.hidden, s.layers, s.heads, callsPositions)
	s.Config.Decoder.Ends = model.Ends{1, 1, 1, 1} // of unigram.Train
	return s.Config.Validate()
}

// callsPositions are the longest text of the base.
const callsPositions = 512

// train makes a tokenizer and a decoder on generated commands of public callers and on generated
// prose, and packs them.
func (s *callsBase) train(ctx context.Context, format model.Format, progress pretraining.Progress) (*model.Base, error) {
	js, tok, err := vocabulary(func(yield func(string) bool) {
		n := 0
		for text := range callsText(generatedSeed) {
			if n++; n > callsForWords || !yield(text) {
				return
			}
		}
	}, s.vocab, nil)
	if err != nil {
		return nil, err
	}
	if err := s.configure(tok.VocabSize()); err != nil {
		return nil, err
	}
	lay, err := s.Layout()
	if err != nil {
		return nil, err
	}
	causal, err := task.New(&model.Base{Config: s.Config, Tokenizer: js}, lay, s.Sequence)
	if err != nil {
		return nil, err
	}
	draw, end := drawn(callsText(s.Seed), s.Batch, func(_ *rand.Rand, _ float64, text string, b task.Batch, row int) error {
		return causal.Encode(&dataset.Example{Text: text}, b, row)
	})
	defer end()
	return pretraining.MakeWriter(ctx, s.WriterSpec, js, format, draw, progress)
}

// callsText is an endless sequence of commands with their calls, and of lines of prose.
func callsText(seed uint64) iter.Seq[string] {
	return func(yield func(string) bool) {
		prose, stop := iter.Pull(pretraining.PublicCorpus(seed, math.MaxInt))
		defer stop()
		n := 0
		for e := range calls.Public(seed) {
			if n++; n%proseEvery == 0 {
				if line, _ := prose(); !yield(line) {
					return
				}
			}
			if !yield(e.Prompt + " " + e.Completion) {
				return
			}
		}
	}
}
