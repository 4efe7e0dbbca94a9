package commands

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"

	"github.com/spf13/pflag"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/lab/federation"
	"github.com/starling-fl/starling/lab/pretraining"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
	"github.com/starling-fl/starling/tokenizer"
	"github.com/starling-fl/starling/tokenizer/unigram"
)

// documentsForWords is how many generated documents the vocabulary is made of.
const documentsForWords = 6000

// documentSpec is pretraining of a base for documents.
type documentSpec struct {
	pretraining.WriterSpec
	vocab     int
	format    model.Format
	patches   bool // the base reads the page's picture too, as patches
	sentinels int  // of each objective of self-pretraining
	tables    bool // generated tables beside invoices
}

// defaultDocuments is what `starling demo --task answer` starts from.
func defaultDocuments() documentSpec {
	c := model.Config{ModelType: "t5", HiddenSize: 64, NumHiddenLayers: 2, NumAttentionHeads: 4, IntermediateSize: 192,
		LayerNormEps: 1e-6, HiddenAct: "relu", T5: model.T5{DecoderLayers: 2, KeySize: 16, Buckets: 32, MaxDistance: 64,
			Scaled: true, End: 1, Boxes: 1001}}
	return documentSpec{WriterSpec: pretraining.WriterSpec{Config: c, Batch: 16, Sequence: 80, Answer: 20, Steps: 2600, LearningRate: 3e-3, Seed: 1,
		Source: dataset.DocumentsVersion}, vocab: 1536, format: model.NF4}
}

// take sets what the flags of all architectures have been given; the others stay as
// this one's defaults.
func (s *documentSpec) take(f *pflag.FlagSet, given pretraining.EncoderSpec, hidden, layers, heads, vocab, seq int) error {
	if f.Changed("hidden") {
		s.Config.HiddenSize, s.Config.IntermediateSize = hidden, 3*hidden
		s.Config.NumAttentionHeads = max(1, hidden/s.Config.T5.KeySize)
	}
	if f.Changed("layers") {
		s.Config.NumHiddenLayers, s.Config.T5.DecoderLayers = layers, layers
	}
	if f.Changed("heads") {
		s.Config.NumAttentionHeads = heads
	}
	takeGiven(f, &s.WriterSpec, &s.vocab, given, vocab, seq)
	c := s.Config
	c.VocabSize = max(2, s.vocab)
	if s.patches {
		s.Config.T5.LinearBoxes = true
		s.Config.T5.Patched.ViT = model.ViT{ImageSize: model.Square(dataset.PageSideDrawn), PatchSize: model.Square(16), Channels: 3,
			Mean: [3]float64{1, 1, 1}, Std: [3]float64{0.25, 0.25, 0.25}} // white paper is 0
		c.T5 = s.Config.T5
	}
	return c.Validate()
}

// takeGiven sets what is counted alike for all that write.
func takeGiven(f *pflag.FlagSet, s *pretraining.WriterSpec, size *int, given pretraining.EncoderSpec, vocab, seq int) {
	for name, set := range map[string]func(){
		"vocab": func() { *size = vocab }, "seq": func() { s.Sequence = seq }, "batch": func() { s.Batch = given.Batch },
		"steps": func() { s.Steps = given.Steps }, "lr": func() { s.LearningRate = given.LearningRate }, "seed": func() { s.Seed = given.Seed },
	} {
		if f.Changed(name) {
			set()
		}
	}
}

// makeDocumentBase trains a tokenizer and a T5 on generated documents of public
// providers, and packs them.
func makeDocumentBase(ctx context.Context, s documentSpec, progress pretraining.Progress) (*model.Base, error) {
	js, err := unigram.Train(documentTexts(s.documents()), s.vocab, task.MixtureTokens(s.sentinels))
	if err != nil {
		return nil, err
	}
	tok, err := tokenizer.Parse(js)
	if err != nil {
		return nil, err
	}
	s.Config.VocabSize = tok.VocabSize()
	lay, err := s.Layout()
	if err != nil {
		return nil, err
	}
	mixture, err := task.NewMixture(lay, tok, s.Sequence)
	if err != nil {
		return nil, err
	}
	next, stop := iter.Pull(s.documents()(s.Seed))
	defer stop()
	drawn := 0 // documents; a run that goes on skips those that it has read
	draw := func(step int, rng *rand.Rand, done float64, b task.Batch) error {
		for ; drawn < step*s.Batch; drawn++ {
			next()
		}
		for row := range s.Batch {
			e, _ := next() // there is no end of them
			drawn++
			if err := mixture.Draw(rng, done, &e, b, row); err != nil {
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

// documents are what it is trained on, of a seed.
func (s documentSpec) documents() func(seed uint64) iter.Seq[dataset.Example] {
	if s.tables {
		return federation.Public
	}
	return dataset.PublicDocuments
}

// documentTexts are the words, questions and prompts of some public documents.
func documentTexts(public func(seed uint64) iter.Seq[dataset.Example]) iter.Seq[string] {
	return func(yield func(string) bool) {
		n := 0
		for e := range public(generatedSeed) {
			if n++; n > documentsForWords {
				break
			}
			if !yield(fmt.Sprintf("question: %s context: %s", e.Question, strings.Join(e.Words, " "))) {
				return
			}
		}
		yield("continue: fill in: context: question:")
	}
}
