package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// gpt2Architecture is GPT2LMHeadModel (Radford et al. 2019): a decoder with learned positions,
// LayerNorm before each sublayer, one map for queries, keys and values, and a feed-forward that
// is not gated. Its maps are stored as Conv1D has them, [in, out]: they are turned where a folder
// is read, and back where one is written.
func gpt2Architecture() *architecture {
	return &architecture{class: "GPT2", prefix: "transformer.", targets: []string{"c_attn"}, decoder: &decoderFamily{},
		tensors: gpt2Tensors, linears: gpt2Linears, validate: validateDecoder, entrance: decoderEntrance,
		standard: func(Config) bool { return true }, turned: gpt2Turned,
		tied:  &tied{"wte.weight", DecoderHead, func(c *Config) *bool { return &c.Decoder.OwnHead }},
		parse: parseGPT2}
}

// gpt2Names are those of its tables and norms.
const (
	gpt2Words     = "wte.weight"
	gpt2Positions = "wpe.weight"
	gpt2Norm      = "ln_f.weight"
)

// gpt2Layer names the modules of one layer.
func gpt2Layer(l int) DecoderLayer {
	p := fmt.Sprintf("h.%d.", l)
	all := p + "attn.c_attn"
	return DecoderLayer{Query: all, Key: all, Value: all, AttentionOutput: p + "attn.c_proj", Up: p + "mlp.c_fc", Down: p + "mlp.c_proj",
		BeforeAttention: p + "ln_1", BeforeForward: p + "ln_2"}
}

func gpt2Linears(c Config) []linear {
	h, ff := c.HiddenSize, c.IntermediateSize
	var all []linear
	for i := range c.NumHiddenLayers {
		l := gpt2Layer(i)
		all = append(all, linear{l.Query, h, 3 * h}, linear{l.AttentionOutput, h, h}, linear{l.Up, h, ff}, linear{l.Down, ff, h})
	}
	return all
}

func gpt2Tensors(c Config) []TensorSpec {
	h := c.HiddenSize
	specs := []TensorSpec{{gpt2Words, []int{c.VocabSize, h}}, {gpt2Positions, []int{c.MaxPositions, h}}}
	pair := func(name string, shape ...int) {
		specs = append(specs, TensorSpec{name + ".weight", shape}, TensorSpec{name + ".bias", shape[:1]})
	}
	maps := gpt2Linears(c)
	next := func() {
		pair(maps[0].name, maps[0].out, maps[0].in)
		maps = maps[1:]
	}
	for i := range c.NumHiddenLayers {
		l := gpt2Layer(i)
		pair(l.BeforeAttention, h)
		next()
		next()
		pair(l.BeforeForward, h)
		next()
		next()
	}
	pair(strings.TrimSuffix(gpt2Norm, ".weight"), h)
	if c.Decoder.OwnHead {
		specs = append(specs, TensorSpec{DecoderHead, []int{c.VocabSize, h}})
	}
	return specs
}

// gpt2Turned reports whether a folder holds a tensor as [in, out].
func gpt2Turned(name string) bool {
	return slices.ContainsFunc([]string{"c_attn.weight", "c_proj.weight", "c_fc.weight"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// turn is v [rows, columns] as [columns, rows].
func turn(v []float32, rows, columns int) []float32 {
	out := make([]float32, len(v))
	for i := range rows {
		for j := range columns {
			out[j*rows+i] = v[i*columns+j]
		}
	}
	return out
}

// theirGPT2 is config.json as transformers writes it.
type theirGPT2 struct {
	Vocab     int             `json:"vocab_size"`
	Positions int             `json:"n_positions"`
	Hidden    int             `json:"n_embd"`
	Layers    int             `json:"n_layer"`
	Heads     int             `json:"n_head"`
	Wide      *int            `json:"n_inner"`
	Act       string          `json:"activation_function"`
	Eps       float64         `json:"layer_norm_epsilon"`
	Scaled    bool            `json:"scale_attn_weights"`
	ByLayer   bool            `json:"scale_attn_by_inverse_layer_idx"`
	Cross     bool            `json:"add_cross_attention"`
	Tied      bool            `json:"tie_word_embeddings"`
	Pad       *int            `json:"pad_token_id"`
	Begin     *int            `json:"bos_token_id"`
	End       json.RawMessage `json:"eos_token_id"`
}

// gpt2Defaults are GPT2Config's.
const gpt2Defaults = `{"vocab_size":50257,"n_positions":1024,"n_embd":768,"n_layer":12,"n_head":12,"activation_function":"gelu_new",
"layer_norm_epsilon":1e-5,"scale_attn_weights":true,"tie_word_embeddings":true,"bos_token_id":50256,"eos_token_id":50256}`

// parseGPT2 reads a configuration in transformers' keys, or this package's Config.
func parseGPT2(kind string, keys map[string]json.RawMessage) (Config, error) {
	fail := func(err error) (Config, error) { return Config{}, badConfig(err) }
	var t theirGPT2
	c, own, err := readDecoder(keys, &t, gpt2Defaults)
	if own || err != nil {
		return c, err
	}
	switch {
	case !t.Scaled || t.ByLayer:
		return fail(fmt.Errorf("scale_attn_weights is %v and scale_attn_by_inverse_layer_idx %v: only scores divided by the root of a head's size are supported", t.Scaled, t.ByLayer))
	case t.Cross:
		return fail(fmt.Errorf("add_cross_attention is true: cross-attention is not supported"))
	case t.Heads < 1 || t.Hidden < 1 || t.Hidden > maxHidden || t.Hidden%t.Heads != 0:
		return fail(fmt.Errorf("n_embd is %d and n_head %d, want 1..%d, a multiple of n_head", t.Hidden, t.Heads, maxHidden))
	}
	wide := 4 * t.Hidden
	if t.Wide != nil {
		wide = *t.Wide
	}
	head := t.Hidden / t.Heads
	d := Decoder{Learned: true, KVHeads: t.Heads, HeadSize: head, QueryScale: head, Biases: true, OutputBias: true, ForwardBiases: true,
		OwnHead: !t.Tied, Begin: -1}
	if t.Begin != nil {
		d.Begin = *t.Begin
	}
	if d.Ends, err = endTokens(t.End); err != nil {
		return fail(err)
	}
	pad := d.Ends[0]
	if t.Pad != nil && *t.Pad >= 0 {
		pad = *t.Pad
	}
	c = Config{ModelType: kind, VocabSize: t.Vocab, HiddenSize: t.Hidden, NumHiddenLayers: t.Layers, NumAttentionHeads: t.Heads,
		IntermediateSize: wide, MaxPositions: t.Positions, LayerNormEps: t.Eps, HiddenAct: knownActivation(t.Act), PadTokenID: pad, Decoder: d}
	return c, c.Validate()
}

// gpt2Config is config.json under Hugging Face's keys.
func (c Config) gpt2Config() map[string]any {
	out := map[string]any{
		"model_type": c.ModelType, "vocab_size": c.VocabSize, "n_positions": c.MaxPositions, "n_embd": c.HiddenSize, "n_layer": c.NumHiddenLayers,
		"n_head": c.NumAttentionHeads, "n_inner": c.IntermediateSize, "activation_function": c.HiddenAct, "layer_norm_epsilon": c.LayerNormEps,
		"pad_token_id": c.PadTokenID, "bos_token_id": nil, "eos_token_id": c.Decoder.Ends.theirs(), "tie_word_embeddings": !c.Decoder.OwnHead,
		"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
	}
	if c.Decoder.Begin >= 0 {
		out["bos_token_id"] = c.Decoder.Begin
	}
	return out
}
