package nn

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/tokenizer"
)

// poolerRows and poolerRidge are FitPooler's defaults in MakeBase.
const (
	poolerRows  = 4000
	poolerRidge = 0.01
)

// MakeBase trains a tokenizer and an encoder on a corpus and packs them. The
// corpus is walked twice, once for the tokenizer and once for the rows.
// spec.Config.VocabSize is the size asked for; the base has the size reached.
// The same corpus and spec give the same base.
func MakeBase(ctx context.Context, spec PretrainSpec, corpus iter.Seq[string], format model.Format, progress Progress) (*model.Base, error) {
	tok, err := tokenizer.Train(corpus, spec.Config.VocabSize)
	if err != nil {
		return nil, fmt.Errorf("%w: tokenizer: %w", ErrCorpus, err)
	}
	spec.Config.VocabSize = tok.VocabSize()
	spec.Candidates = min(spec.Candidates, tok.VocabSize())
	rows := Rows(tok, corpus, spec.Seq)
	tensors, err := Pretrain(ctx, spec, tok, rows, progress)
	if err != nil {
		return nil, err
	}
	weight, bias, err := FitPooler(ctx, spec.Backend, spec.Config, tensors, rows[:min(poolerRows, len(rows))], poolerRidge)
	if err != nil {
		return nil, err
	}
	js, err := json.Marshal(tok)
	if err != nil {
		return nil, err
	}
	return model.NewBase(spec.Config, append(tensors, weight, bias), js, format)
}
