package pretraining

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/gomlx/compute"

	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// poolerRows and poolerRidge are FitPooler's defaults in MakeBase.
const (
	poolerRows  = 4000
	poolerRidge = 2.0
)

// MakeBase trains a tokenizer and an encoder on a corpus and packs them. The
// corpus is walked twice, once for the tokenizer and once for the rows.
// spec.Config.VocabSize is the size asked for; the base has the size reached.
// The same corpus and spec give the same base.
func MakeBase(ctx context.Context, spec EncoderSpec, corpus iter.Seq[string], format model.Format, progress Progress) (*model.Base, error) {
	tok, err := tokenizer.Train(corpus, spec.Config.VocabSize)
	if err != nil {
		return nil, fmt.Errorf("%w: tokenizer: %w", ErrCorpus, err)
	}
	spec.Config.VocabSize = tok.VocabSize()
	spec.Candidates = min(spec.Candidates, tok.VocabSize())
	rows := Rows(tok, corpus, spec.Sequence)
	tensors, err := Encoder(ctx, spec, tok, rows, progress)
	if err != nil {
		return nil, err
	}
	js, err := json.Marshal(tok)
	if err != nil {
		return nil, err
	}
	// The pooler is fitted to the encoder as it is stored: quantized.
	plain, err := model.NewBase(spec.Config, append(tensors, identityPooler(spec.Config)...), js, format)
	if err != nil {
		return nil, err
	}
	return WithPooler(ctx, spec.Backend, plain, rows[:min(poolerRows, len(rows))], format)
}

// WithPooler returns the base with its pooler fitted to rows (FitPooler) and
// the rest unchanged: NF4 and bf16 store again what they have stored. format is
// the base's.
func WithPooler(ctx context.Context, be compute.Backend, b *model.Base, rows [][]int32, format model.Format) (*model.Base, error) {
	n := len(b.Tensors) - 2
	weight, bias, err := FitPooler(ctx, be, b.Config, b.Tensors[:n:n], rows, poolerRidge)
	if err != nil {
		return nil, err
	}
	return model.NewBase(b.Config, append(b.Tensors[:n:n], weight, bias), b.Tokenizer, format)
}

// identityPooler is the pooler of a base before it is fitted.
func identityPooler(c model.Config) []model.Tensor {
	h := c.HiddenSize
	w := model.Tensor{Name: "pooler.dense.weight", Shape: []int{h, h}, Data: make([]float32, h*h)}
	for i := range h {
		w.Data[i*h+i] = 1
	}
	return []model.Tensor{w, {Name: "pooler.dense.bias", Shape: []int{h}, Data: make([]float32, h)}}
}
