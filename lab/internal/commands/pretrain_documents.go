package commands

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/lab/federation"
	"github.com/starling-fl/starling/lab/pretraining"
	"github.com/starling-fl/starling/model"
)

// documentsForWords is how many generated documents the vocabulary is made of.
const documentsForWords = 6000

// documentBase is a T5 for documents.
type documentBase struct {
	pretraining.WriterSpec
	vocab     int
	patches   bool // the base reads the page's picture too, as patches
	sentinels int  // of each objective of self-pretraining
	tables    bool // generated tables beside invoices
}

// defaultDocuments is what `starling demo --task answer` starts from.
func defaultDocuments() *documentBase {
	c := model.Config{ModelType: "t5", HiddenSize: 64, NumHiddenLayers: 2, NumAttentionHeads: 4, IntermediateSize: 192,
		LayerNormEps: 1e-6, HiddenAct: "relu", T5: model.T5{DecoderLayers: 2, KeySize: 16, Buckets: 32, MaxDistance: 64,
			Scaled: true, End: 1, Boxes: 1001}}
	return &documentBase{vocab: 1536, WriterSpec: pretraining.WriterSpec{Answer: 20,
		Spec: pretraining.Spec{Config: c, Batch: 16, Sequence: 80, Steps: 2600, LearningRate: 3e-3, Seed: 1}}}
}

func (s *documentBase) common() *pretraining.Spec { return &s.Spec }

func (s *documentBase) generator() string {
	if s.tables {
		return federation.GeneratedVersion
	}
	return dataset.DocumentsVersion
}

func (s *documentBase) resize(given func(string) bool, to sizes) error {
	c := &s.Config
	if given("hidden") {
		c.HiddenSize, c.IntermediateSize = to.hidden, 3*to.hidden
		c.NumAttentionHeads = max(1, to.hidden/c.T5.KeySize)
	}
	if given("layers") {
		c.NumHiddenLayers, c.T5.DecoderLayers = to.layers, to.layers
	}
	if given("heads") {
		c.NumAttentionHeads = to.heads
	}
	if given("vocab") {
		s.vocab = to.vocab
	}
	c.VocabSize = max(2, s.vocab) // until the tokenizer says how many it has
	if s.patches {
		c.T5.LinearBoxes = true
		c.T5.Patched.ViT = model.ViT{ImageSize: model.Square(dataset.PageSideDrawn), PatchSize: model.Square(16), Channels: 3,
			Mean: [3]float64{1, 1, 1}, Std: [3]float64{0.25, 0.25, 0.25}} // white paper is 0
	}
	return c.Validate()
}

// train makes a tokenizer and a T5 on generated documents of public providers, and packs them.
func (s *documentBase) train(ctx context.Context, format model.Format, progress pretraining.Progress) (*model.Base, error) {
	s.Source = s.generator()
	js, tok, err := vocabulary(documentTexts(s.documents()), s.vocab, task.MixtureTokens(s.sentinels))
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
	draw, end := drawn(s.documents()(s.Seed), s.Batch, func(rng *rand.Rand, done float64, e dataset.Example, b task.Batch, row int) error {
		return mixture.Draw(rng, done, &e, b, row)
	})
	defer end()
	return pretraining.MakeWriter(ctx, s.WriterSpec, js, format, draw, progress)
}

// documents are what it is trained on, of a seed.
func (s *documentBase) documents() func(seed uint64) iter.Seq[dataset.Example] {
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
