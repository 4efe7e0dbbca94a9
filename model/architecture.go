package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// An architecture is one family of Hugging Face checkpoints: how it names what its
// layers are made of. Most are encoders of post-norm transformer layers, and have what
// their ForSequenceClassification puts on top; those that are not say what they hold
// in tensors and linears.
type architecture struct {
	prefix    string            // of the encoder's tensors in a model with a head
	aliases   map[string]string // keys of config.json that have names of their own
	same      map[string]string // keys of config.json that must be as another where they are given
	embedding string            // LayerNorm after the embeddings
	layer     func(l int) Layer
	types     bool // token types are part of it
	offset    func(pad int) int
	pad       int  // pad_token_id where config.json has none
	between   int  // separators between the texts of a pair; 0: one
	textless  bool // it reads something else than texts

	head []Dense // of ForSequenceClassification; the last one gives the classes

	decoder *decoderFamily // of one that writes on what it reads; nil: it is none
	masked  *MaskedHead    // of ForMaskedLM; nil where there is none

	class   string   // of transformers, up to Model or For...
	targets []string // of LoRA, unless a method names others: ends of linear maps' names

	// Where they are set: what takes the place of an encoder's.
	parse    func(kind string, keys map[string]json.RawMessage) (Config, error) // config.json, theirs or ours
	tied     *tied                                                              // whose output may be its token embeddings
	standard func(c Config) bool                                                // transformers has a class that computes it; nil: by its pooling
	entrance func(c Config) Entrance
	depth    func(c Config) (layers, attentions int)
	turned   func(tensor string) bool // a folder holds a map as [in, out]; nil: none
	tensors  func(c Config) []TensorSpec
	linears  func(c Config) []linear // in the order of a forward pass
	validate func(c Config) error
	modules  *strings.Replacer // a tensor's name in an adapter of PEFT's; nil: as in the base
}

// architectures finds them by what config.json calls them.
var architectures = map[string]*architecture{}

func init() { // the values' functions ask for architectures themselves
	maps.Copy(architectures, map[string]*architecture{
		"bert":       &bertArchitecture,
		"electra":    &electraArchitecture,
		"distilbert": &distilbertArchitecture,
		"vit":        &vitArchitecture,
	})
	maps.Copy(architectures, heavy())
}

// Heavy reports whether a page's light build goes without the architecture.
func (c Config) Heavy() bool {
	_, is := heavy()[c.ModelType]
	return is
}

// Layer names the modules of one encoder layer; their tensors are name.weight
// and name.bias.
type Layer struct {
	Query, Key, Value, AttentionOutput, AttentionNorm string
	Intermediate, Output, OutputNorm                  string
}

// Dense is one affine map of a head, from hidden_size columns to as many, the
// last one to the classes.
type Dense struct {
	Name       string
	Activation string // "", "tanh" or "relu"
	Trained    bool   // by the job; else part of the base
	Out        int    // its columns, of one that is not the last; 0: hidden_size
}

// tied names the token embeddings and the map from the last layer to the vocabulary, and where a
// configuration notes that they differ.
type tied struct {
	words, head string
	own         func(c *Config) *bool
}

// Textless reports whether the base reads no text and has no tokenizer.
func (c Config) Textless() bool { return c.arch().textless }

// pools reports whether a head may read one state of a text.
func (a *architecture) pools() bool { return a.parse == nil }

func (c Config) arch() *architecture {
	if a, ok := architectures[c.ModelType]; ok {
		return a
	}
	return &bertArchitecture // of a configuration that Validate refuses
}

// Layer names the modules of encoder layer l.
func (c Config) Layer(l int) Layer { return c.arch().layer(l) }

// EmbeddingNorm names the LayerNorm after the embeddings.
func (c Config) EmbeddingNorm() string { return c.arch().embedding }

// Head lists the maps from the pooled state to the classes.
func (c Config) Head() []Dense {
	if c.Generates() || c.Causal() {
		return nil
	}
	switch c.Pooling {
	case PoolHF:
		return c.arch().head
	case PoolMeanAffine:
		return []Dense{{Name: "pooler.dense"}, {Name: "classifier", Trained: true}}
	}
	return []Dense{{Name: "classifier", Trained: true}}
}

// FirstPosition is the row of the position embeddings that the first token of a
// text takes: RoBERTa counts from behind its padding id.
func (c Config) FirstPosition() int {
	if f := c.arch().offset; f != nil {
		return f(c.PadTokenID)
	}
	return 0
}

// Separators is the number of separators between the texts of a pair.
func (c Config) Separators() int { return max(1, c.arch().between) }

// MaxTokens is the longest text, special tokens included.
func (c Config) MaxTokens() int {
	if c.Generates() || c.Textless() { // its positions are relative, or an image's
		return maxPositions
	}
	return min(maxPositions, c.MaxPositions-c.FirstPosition())
}

// Names of the embedding tables, the same in every family.
const (
	wordsName     = "embeddings.word_embeddings.weight"
	positionsName = "embeddings.position_embeddings.weight"
	typesName     = "embeddings.token_type_embeddings.weight"
)

// BaseTensors lists the frozen tensors of a base in their canonical order,
// under the names that its family's Hugging Face model has. Linear weights are
// [out, in].
func (c Config) BaseTensors() []TensorSpec {
	if f := c.arch().tensors; f != nil {
		return f(c)
	}
	h, f := c.HiddenSize, c.IntermediateSize
	specs := []TensorSpec{{wordsName, []int{c.VocabSize, h}}, {positionsName, []int{c.MaxPositions, h}}}
	if c.TypeVocabSize > 0 {
		specs = append(specs, TensorSpec{typesName, []int{c.TypeVocabSize, h}})
	}
	pair := func(name string, shape ...int) {
		specs = append(specs, TensorSpec{name + ".weight", shape}, TensorSpec{name + ".bias", shape[:1]})
	}
	pair(c.EmbeddingNorm(), h)
	for i := range c.NumHiddenLayers {
		l := c.Layer(i)
		pair(l.Query, h, h)
		pair(l.Key, h, h)
		pair(l.Value, h, h)
		pair(l.AttentionOutput, h, h)
		pair(l.AttentionNorm, h)
		pair(l.Intermediate, f, h)
		pair(l.Output, h, f)
		pair(l.OutputNorm, h)
	}
	for _, d := range c.Head() {
		if !d.Trained {
			pair(d.Name, h, h)
		}
	}
	return specs
}

// bert: BertModel (Devlin et al. 2019), and MiniLM and all others that were made
// in its shape.
var bertArchitecture = architecture{
	class:     "Bert",
	targets:   []string{"query", "value"},
	prefix:    "bert.",
	embedding: "embeddings.LayerNorm",
	layer:     bertLayer,
	types:     true,
	head:      []Dense{{Name: "pooler.dense", Activation: "tanh"}, {Name: "classifier", Trained: true}},
	masked: &MaskedHead{Dense: "cls.predictions.transform.dense", Norm: "cls.predictions.transform.LayerNorm",
		Bias: "cls.predictions.bias"},
}

func bertLayer(l int) Layer {
	p := fmt.Sprintf("encoder.layer.%d.", l)
	return Layer{
		Query: p + "attention.self.query", Key: p + "attention.self.key", Value: p + "attention.self.value",
		AttentionOutput: p + "attention.output.dense", AttentionNorm: p + "attention.output.LayerNorm",
		Intermediate: p + "intermediate.dense", Output: p + "output.dense", OutputNorm: p + "output.LayerNorm",
	}
}

// roberta: RobertaModel (Liu et al. 2019). Its head's first layer belongs to no
// pretrained checkpoint: it is trained with the rest.
var robertaArchitecture = architecture{
	class:     "Roberta",
	targets:   []string{"query", "value"},
	prefix:    "roberta.",
	embedding: "embeddings.LayerNorm",
	layer:     bertLayer,
	types:     true,
	offset:    func(pad int) int { return pad + 1 },
	pad:       1,
	between:   2,
	head: []Dense{{Name: "classifier.dense", Activation: "tanh", Trained: true},
		{Name: "classifier.out_proj", Trained: true}},
	masked: &MaskedHead{Dense: "lm_head.dense", Norm: "lm_head.layer_norm", Bias: "lm_head.bias", Activation: "gelu"},
}

// ofRoberta is what has RoBERTa's encoder and heads under another name, as XLM-R
// (Conneau et al. 2020) and CamemBERT (Martin et al. 2020) do: their tokenizers are
// SentencePiece's, and they put two separators between texts as well.
func ofRoberta(class string) *architecture {
	a := robertaArchitecture
	a.class = class
	return &a
}

// electra: ElectraModel (Clark et al. 2020), of the discriminators whose embeddings are as wide
// as their layers: base and large.
var electraArchitecture = architecture{
	class:     "Electra",
	targets:   []string{"query", "value"},
	prefix:    "electra.",
	same:      map[string]string{"embedding_size": "hidden_size"},
	embedding: "embeddings.LayerNorm",
	layer:     bertLayer,
	types:     true,
	head: []Dense{{Name: "classifier.dense", Activation: "gelu", Trained: true},
		{Name: "classifier.out_proj", Trained: true}},
}

// distilbert: DistilBertModel (Sanh et al. 2019): no token types, no pooler.
var distilbertArchitecture = architecture{
	class:   "DistilBert",
	targets: []string{"q_lin", "v_lin"},
	prefix:  "distilbert.",
	aliases: map[string]string{
		"dim": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads",
		"hidden_dim": "intermediate_size", "activation": "hidden_act",
	},
	embedding: "embeddings.LayerNorm",
	layer: func(l int) Layer {
		p := fmt.Sprintf("transformer.layer.%d.", l)
		return Layer{
			Query: p + "attention.q_lin", Key: p + "attention.k_lin", Value: p + "attention.v_lin",
			AttentionOutput: p + "attention.out_lin", AttentionNorm: p + "sa_layer_norm",
			Intermediate: p + "ffn.lin1", Output: p + "ffn.lin2", OutputNorm: p + "output_layer_norm",
		}
	},
	head:   []Dense{{Name: "pre_classifier", Activation: "relu", Trained: true}, {Name: "classifier", Trained: true}},
	masked: &MaskedHead{Dense: "vocab_transform", Norm: "vocab_layer_norm", Bias: "vocab_projector.bias"},
}
