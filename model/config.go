package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
)

// Limits on a configuration, so that a hostile config.json cannot make a
// device allocate without bound.
const (
	maxVocab     = 1 << 20
	maxHidden    = 1 << 13
	maxLayers    = 128
	maxPositions = 1 << 14
	maxClasses   = 1 << 16
	maxTypes     = 256
)

// ErrConfig is the cause of every refused configuration.
var ErrConfig = errors.New("model: invalid configuration")

// Pooling selects the states of the last layer that the head reads.
type Pooling string

const (
	// PoolHF is what the family's ForSequenceClassification does: the first
	// token's state through the family's own head.
	PoolHF Pooling = "hf"
	// PoolFirst is the first token's state itself, PoolMean the mean over all
	// tokens, as sentence-transformers' folders ask for.
	PoolFirst Pooling = "first"
	PoolMean  Pooling = "mean"
	// PoolMeanAffine is PoolMean through an affine map, the tensors
	// pooler.dense: `starling pretrain` fits one so that the head sees features
	// of like scale.
	PoolMeanAffine Pooling = "mean_affine"
	// PoolNone is a base without a pooler, whose tasks read every token.
	PoolNone Pooling = "none"
)

// Config is the shape of a base, with the JSON keys of a Hugging Face BERT's
// config.json whatever the family; see ParseConfig.
type Config struct {
	ModelType         string  `json:"model_type"` // one of ModelTypes
	VocabSize         int     `json:"vocab_size"`
	HiddenSize        int     `json:"hidden_size"`
	NumHiddenLayers   int     `json:"num_hidden_layers"`
	NumAttentionHeads int     `json:"num_attention_heads"`
	IntermediateSize  int     `json:"intermediate_size"`
	MaxPositions      int     `json:"max_position_embeddings"` // rows of the table
	TypeVocabSize     int     `json:"type_vocab_size"`         // 0: the encoder has no token types
	LayerNormEps      float64 `json:"layer_norm_eps"`
	HiddenAct         string  `json:"hidden_act"`   // "gelu" (erf form), "gelu_new" (tanh form), "quick_gelu", "relu" or "silu"
	PadTokenID        int     `json:"pad_token_id"` // tokens with it are masked
	Pooling           Pooling `json:"pooling"`      // "" where nothing is pooled

	T5      T5      `json:"t5,omitzero"`      // what only a t5 has
	ViT     ViT     `json:"vit,omitzero"`     // what only a vit has
	Speech  Speech  `json:"speech,omitzero"`  // what only a hubert or a wav2vec2 has
	Decoder Decoder `json:"decoder,omitzero"` // what only a causal model has
}

// BERT returns the configuration of an encoder as `starling pretrain` makes it,
// with the usual ratios: a feed-forward four times as wide, heads of 32 columns
// unless heads is given.
func BERT(vocab, hidden, layers, heads, positions int) Config {
	if heads == 0 {
		heads = max(1, hidden/32)
	}
	return Config{
		ModelType: "bert", VocabSize: vocab, HiddenSize: hidden, NumHiddenLayers: layers,
		NumAttentionHeads: heads, IntermediateSize: 4 * hidden, MaxPositions: positions,
		LayerNormEps: 1e-12, HiddenAct: "gelu_new", Pooling: PoolMeanAffine,
	}
}

// ModelTypes lists the families by their names in config.json.
func ModelTypes() []string { return slices.Sorted(maps.Keys(architectures)) }

// Validate reports the first relation that the configuration breaks.
func (c Config) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	arch, known := architectures[c.ModelType]
	if !known {
		return bad("model_type is %q, want one of %q", c.ModelType, ModelTypes())
	}
	if arch.validate != nil {
		return arch.validate(c)
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
	case c.HiddenSize%c.NumAttentionHeads != 0:
		return bad("hidden_size %d is not a multiple of num_attention_heads %d", c.HiddenSize, c.NumAttentionHeads)
	case c.PadTokenID < 0 || c.PadTokenID >= c.VocabSize:
		return bad("pad_token_id is %d, want 0..vocab_size-1 %d", c.PadTokenID, c.VocabSize-1)
	case c.MaxTokens() < 1:
		return bad("max_position_embeddings is %d, the first token's position is %d", c.MaxPositions, c.FirstPosition())
	case c.TypeVocabSize < 0 || c.TypeVocabSize > maxTypes || !arch.types && c.TypeVocabSize > 0:
		return bad("type_vocab_size is %d, want 0..%d, and 0 where %s has none", c.TypeVocabSize, maxTypes, c.ModelType)
	case arch.types && c.TypeVocabSize == 0 && c.Pooling == PoolHF:
		return bad("type_vocab_size is 0: every Hugging Face %s has token types", c.ModelType)
	case c.Pooling != PoolHF && c.Pooling != PoolFirst && c.Pooling != PoolMean && c.Pooling != PoolMeanAffine && c.Pooling != PoolNone:
		return bad("pooling is %q, want \"hf\", \"none\", \"first\", \"mean\" or \"mean_affine\"", c.Pooling)
	case !(c.LayerNormEps > 0 && c.LayerNormEps < 1):
		return bad("layer_norm_eps is %v, want within (0, 1)", c.LayerNormEps)
	}
	return c.checkActivation("hidden_act")
}

// ParseConfig reads a config.json: that of a Hugging Face checkpoint of a known
// family, or one that Starling wrote for a model of its own (see WriteDir), which
// carries this package's Config whole. Keys that do not change what is computed
// are ignored; missing ones take the family's defaults; a value that asks for
// something else than what is computed here is refused.
func ParseConfig(data []byte) (Config, error) {
	if len(data) > maxJSON {
		return Config{}, fmt.Errorf("%w: config.json has %d bytes, limit %d", ErrConfig, len(data), maxJSON)
	}
	keys := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &keys); err != nil {
		return Config{}, fmt.Errorf("%w: config.json: %w", ErrConfig, err)
	}
	var kind string
	if err := json.Unmarshal(keys["model_type"], &kind); err != nil {
		return Config{}, fmt.Errorf("%w: config.json has no model_type", ErrConfig)
	}
	if kind == ownModelType {
		var c Config
		if err := json.Unmarshal(keys[ownConfigKey], &c); err != nil {
			return Config{}, fmt.Errorf("%w: config.json: %s: %w", ErrConfig, ownConfigKey, err)
		}
		return c, c.Validate()
	}
	c := Config{ModelType: kind, LayerNormEps: 1e-12, HiddenAct: "gelu", Pooling: PoolHF}
	arch, known := architectures[kind]
	if !known {
		return Config{}, c.Validate()
	}
	if arch.parse != nil {
		return arch.parse(kind, keys)
	}
	if arch.types {
		c.TypeVocabSize = 2 // BertConfig's default
	}
	c.PadTokenID = arch.pad
	for theirs, ours := range arch.aliases {
		if v, ok := keys[theirs]; ok {
			keys[ours] = v
		}
	}
	if err := refuseConfig(keys); err != nil {
		return Config{}, err
	}
	for key, other := range arch.same {
		if given, ok := keys[key]; ok && string(given) != string(keys[other]) {
			return Config{}, fmt.Errorf("%w: config.json: %s is %.40s and %s %.40s: a %s is read where they are the same", ErrConfig,
				key, keys[key], other, keys[other], kind)
		}
	}
	canonical, err := json.Marshal(keys)
	if err != nil {
		return Config{}, fmt.Errorf("%w: config.json: %w", ErrConfig, err)
	}
	if err := json.Unmarshal(canonical, &c); err != nil {
		return Config{}, fmt.Errorf("%w: config.json: %w", ErrConfig, err)
	}
	c.HiddenAct = knownActivation(c.HiddenAct)
	return c, c.Validate()
}

// refuseConfig refuses what would make the checkpoint compute something else than
// the encoder of this package.
func refuseConfig(keys map[string]json.RawMessage) error {
	for key, want := range map[string]string{
		"position_embedding_type": `"absolute"`,
		"is_decoder":              "false",
		"add_cross_attention":     "false",
	} {
		if got, ok := keys[key]; ok && string(got) != want && string(got) != "null" {
			return fmt.Errorf("%w: config.json: %s is %.40s, only %s is supported", ErrConfig, key, got, want)
		}
	}
	var q struct {
		Method string `json:"quant_method"`
		Type   string `json:"bnb_4bit_quant_type"`
	}
	if raw, ok := keys["quantization_config"]; ok && json.Unmarshal(raw, &q) == nil && (q.Method != "bitsandbytes" || q.Type != "nf4") {
		return fmt.Errorf("%w: config.json: quantization_config is %.40q %.40q, only unquantized weights and bitsandbytes' nf4 are read",
			ErrConfig, q.Method, q.Type)
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

// FolderLabels are the names that a folder's config.json has for a head's outputs, in
// their order; nil where it names none, or some twice, or with a gap.
func FolderLabels(fsys fs.FS) ([]string, error) {
	data, err := ReadFile(fsys, ConfigFile, maxJSON)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Names map[string]string `json:"id2label"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%w: config.json: %w", ErrConfig, err)
	}
	var labels []string
	for range doc.Names {
		name := doc.Names[strconv.Itoa(len(labels))]
		if name == "" || slices.Contains(labels, name) {
			return nil, nil
		}
		labels = append(labels, name)
	}
	return labels, nil
}
