package model

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Limits on a configuration, so that a hostile config.json cannot make a
// device allocate without bound.
const (
	maxVocab     = 1 << 20
	maxHidden    = 1 << 13
	maxLayers    = 128
	maxPositions = 1 << 14
	maxClasses   = 1 << 16
)

// ErrConfig is the cause of every refused configuration.
var ErrConfig = errors.New("model: invalid configuration")

// Config is the shape of a BERT-style encoder, with the JSON keys of a Hugging
// Face config.json.
type Config struct {
	ModelType         string  `json:"model_type"` // "bert"
	VocabSize         int     `json:"vocab_size"`
	HiddenSize        int     `json:"hidden_size"`
	NumHiddenLayers   int     `json:"num_hidden_layers"`
	NumAttentionHeads int     `json:"num_attention_heads"`
	IntermediateSize  int     `json:"intermediate_size"`
	MaxPositions      int     `json:"max_position_embeddings"`
	LayerNormEps      float64 `json:"layer_norm_eps"`
	HiddenAct         string  `json:"hidden_act"`   // "gelu_new" (tanh form) or "gelu" (erf form)
	PadTokenID        int     `json:"pad_token_id"` // always 0: padding is masked by id
	Pooling           string  `json:"pooling"`      // "mean": masked mean over tokens, then the pooler's affine map
}

// BERT returns the configuration of an encoder with the usual ratios: a
// feed-forward four times as wide, heads of 32 columns unless heads is given.
func BERT(vocab, hidden, layers, heads, positions int) Config {
	if heads == 0 {
		heads = max(1, hidden/32)
	}
	return Config{
		ModelType: "bert", VocabSize: vocab, HiddenSize: hidden, NumHiddenLayers: layers,
		NumAttentionHeads: heads, IntermediateSize: 4 * hidden, MaxPositions: positions,
		LayerNormEps: 1e-12, HiddenAct: "gelu_new", Pooling: "mean",
	}
}

// Validate reports the first relation that the configuration breaks.
func (c Config) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"vocab_size", c.VocabSize, maxVocab},
		{"hidden_size", c.HiddenSize, maxHidden},
		{"num_hidden_layers", c.NumHiddenLayers, maxLayers},
		{"num_attention_heads", c.NumAttentionHeads, maxHidden},
		{"intermediate_size", c.IntermediateSize, 8 * maxHidden},
		{"max_position_embeddings", c.MaxPositions, maxPositions},
	} {
		if f.value < 1 || f.value > f.max {
			return bad("%s is %d, want 1..%d", f.name, f.value, f.max)
		}
	}
	switch {
	case c.ModelType != "bert":
		return bad("model_type is %q, want \"bert\"", c.ModelType)
	case c.HiddenSize%c.NumAttentionHeads != 0:
		return bad("hidden_size %d is not a multiple of num_attention_heads %d", c.HiddenSize, c.NumAttentionHeads)
	case c.HiddenAct != "gelu_new" && c.HiddenAct != "gelu":
		return bad("hidden_act is %q, want \"gelu_new\" or \"gelu\"", c.HiddenAct)
	case c.PadTokenID != 0:
		return bad("pad_token_id is %d, want 0", c.PadTokenID)
	case c.Pooling != "mean":
		return bad("pooling is %q, want \"mean\"", c.Pooling)
	case !(c.LayerNormEps > 0 && c.LayerNormEps < 1):
		return bad("layer_norm_eps is %v, want within (0, 1)", c.LayerNormEps)
	}
	return nil
}

// ParseConfig reads a config.json. Keys that it does not know are ignored, as
// Hugging Face files carry many; missing keys take BERT's defaults.
func ParseConfig(data []byte) (Config, error) {
	if len(data) > maxJSON {
		return Config{}, fmt.Errorf("%w: config.json has %d bytes, limit %d", ErrConfig, len(data), maxJSON)
	}
	c := Config{LayerNormEps: 1e-12, HiddenAct: "gelu", Pooling: "mean"}
	if err := json.Unmarshal(data, &c); err != nil {
		return Config{}, fmt.Errorf("%w: config.json: %w", ErrConfig, err)
	}
	return c, c.Validate()
}

// LoRA describes the adapter: low-rank updates of the query and value
// projections of every layer, h += (alpha/b) * x A[:b,:]^T B[:,:b]^T.
type LoRA struct {
	RMax  int     `json:"r_max"` // rank of the stored matrices, 1..hidden
	Alpha float64 `json:"alpha"` // numerator of the scale alpha/b, > 0
}

// Scale is the factor of the low-rank product at rank b.
func (l LoRA) Scale(b int) float64 { return l.Alpha / float64(b) }

// Validate checks the adapter against the encoder that it is for.
func (l LoRA) Validate(c Config) error {
	if l.RMax < 1 || l.RMax > c.HiddenSize {
		return fmt.Errorf("%w: r_max is %d, want 1..hidden_size %d", ErrConfig, l.RMax, c.HiddenSize)
	}
	if !(l.Alpha > 0 && l.Alpha <= 1e6) {
		return fmt.Errorf("%w: alpha is %v, want within (0, 1e6]", ErrConfig, l.Alpha)
	}
	return nil
}

// Tensor is a named, dense, row-major array of float32.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// Elements is the number of elements of a shape.
func Elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// TensorSpec is the name and shape of a tensor.
type TensorSpec struct {
	Name  string
	Shape []int
}

// BaseTensors lists the frozen tensors of an encoder in their canonical order,
// with Hugging Face's BertModel names. Linear weights are [out, in]. The
// pooler is an affine map of the pooled state (no tanh): pretraining fits it on
// public text so that the head sees features of like scale; a base without one
// gets the identity.
func (c Config) BaseTensors() []TensorSpec {
	h, f := c.HiddenSize, c.IntermediateSize
	specs := []TensorSpec{
		{"embeddings.word_embeddings.weight", []int{c.VocabSize, h}},
		{"embeddings.position_embeddings.weight", []int{c.MaxPositions, h}},
		{"embeddings.LayerNorm.weight", []int{h}},
		{"embeddings.LayerNorm.bias", []int{h}},
	}
	for l := range c.NumHiddenLayers {
		p := LayerPrefix(l)
		specs = append(specs,
			TensorSpec{p + "attention.self.query.weight", []int{h, h}},
			TensorSpec{p + "attention.self.query.bias", []int{h}},
			TensorSpec{p + "attention.self.key.weight", []int{h, h}},
			TensorSpec{p + "attention.self.key.bias", []int{h}},
			TensorSpec{p + "attention.self.value.weight", []int{h, h}},
			TensorSpec{p + "attention.self.value.bias", []int{h}},
			TensorSpec{p + "attention.output.dense.weight", []int{h, h}},
			TensorSpec{p + "attention.output.dense.bias", []int{h}},
			TensorSpec{p + "attention.output.LayerNorm.weight", []int{h}},
			TensorSpec{p + "attention.output.LayerNorm.bias", []int{h}},
			TensorSpec{p + "intermediate.dense.weight", []int{f, h}},
			TensorSpec{p + "intermediate.dense.bias", []int{f}},
			TensorSpec{p + "output.dense.weight", []int{h, f}},
			TensorSpec{p + "output.dense.bias", []int{h}},
			TensorSpec{p + "output.LayerNorm.weight", []int{h}},
			TensorSpec{p + "output.LayerNorm.bias", []int{h}},
		)
	}
	return append(specs,
		TensorSpec{"pooler.dense.weight", []int{h, h}},
		TensorSpec{"pooler.dense.bias", []int{h}})
}

// LayerPrefix is the name prefix of encoder layer l.
func LayerPrefix(l int) string { return fmt.Sprintf("encoder.layer.%d.", l) }
