package commands

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/dataset/calls"
	"github.com/starling-fl/starling/lab/pretraining"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/tokenizer"
	"github.com/starling-fl/starling/tokenizer/unigram"
)

// callsForWords is how many generated commands the vocabulary is made of, with a line of
// prose to every proseEvery of them.
const (
	callsForWords = 24000
	proseEvery    = 4
)

// callsSpec is pretraining of a small decoder.
type callsSpec struct {
	pretraining.WriterSpec
	hidden, layers, heads int
	vocab                 int
	format                model.Format
}

// defaultCalls is what `starling demo --task causal` starts from.
func defaultCalls() callsSpec {
	return callsSpec{pretraining.WriterSpec{Batch: 24, Sequence: 40, Steps: 4000, LearningRate: 2e-3, Seed: 1, Source: calls.Version}, 192, 6, 6, 2048, model.NF4}
}

// take sets what the flags of all architectures have been given; the others stay as this
// one's defaults.
func (s *callsSpec) take(f *pflag.FlagSet, given pretraining.EncoderSpec, hidden, layers, heads, vocab, seq int) error {
	if f.Changed("hidden") {
		s.hidden, s.heads = hidden, max(1, hidden/32)
	}
	if f.Changed("layers") {
		s.layers = layers
	}
	if f.Changed("heads") {
		s.heads = heads
	}
	if s.heads < 1 || s.hidden%s.heads != 0 {
		return fmt.Errorf("--heads is %d, want a divisor of --hidden, %d", s.heads, s.hidden)
	}
	takeGiven(f, &s.WriterSpec, &s.vocab, given, vocab, seq)
	return s.sized(max(2, s.vocab))
}

// sized is the configuration for a vocabulary.
func (s *callsSpec) sized(vocab int) error {
	s.Config = model.Llama(vocab, s.hidden, s.layers, s.heads, callsPositions)
	s.Config.Decoder.Ends = model.Ends{1, 1, 1, 1} // of unigram.Train
	return s.Config.Validate()
}

// callsPositions are the longest text of the base.
const callsPositions = 512

// makeCallsBase trains a tokenizer and a decoder on generated commands of public callers and
// on generated prose, and packs them.
func makeCallsBase(ctx context.Context, s callsSpec, progress pretraining.Progress) (*model.Base, error) {
	words, stop := iter.Pull(callsText(generatedSeed))
	defer stop()
	js, err := unigram.Train(func(yield func(string) bool) {
		for range callsForWords {
			if text, _ := words(); !yield(text) {
				return
			}
		}
	}, s.vocab, nil)
	if err != nil {
		return nil, err
	}
	tok, err := tokenizer.Parse(js)
	if err != nil {
		return nil, err
	}
	if err := s.sized(tok.VocabSize()); err != nil {
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
	next, stop := iter.Pull(callsText(s.Seed))
	defer stop()
	drawn := 0 // texts; a run that goes on skips those that it has read
	draw := func(step int, _ *rand.Rand, _ float64, b task.Batch) error {
		for ; drawn < step*s.Batch; drawn++ {
			next()
		}
		for row := range s.Batch {
			text, _ := next() // there is no end of them
			drawn++
			if err := causal.Encode(&dataset.Example{Text: text}, b, row); err != nil {
				return err
			}
		}
		return nil
	}
	tensors, err := pretraining.Writer(ctx, s.WriterSpec, draw, progress)
	if err != nil {
		return nil, err
	}
	return model.NewBase(s.Config, tensors, js, s.format)
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
