package model

import (
	"fmt"
	"math"
	"slices"
)

// Decoder is what a model has beside an encoder's Config that reads a text and writes it
// on, token by token: Llama (Touvron et al. 2023) and what is made in its shape, as
// Hugging Face's ForCausalLM classes compute it. RMSNorm is before each sublayer,
// positions turn queries and keys (Su et al. 2021), groups of heads share keys and values
// (Ainslie et al. 2023), and the feed-forward is gated (Shazeer 2020).
type Decoder struct {
	// Learned positions are added to the embeddings, in place of turning queries and keys; then
	// norms are LayerNorm, one map gives queries, keys and values, and the feed-forward is not
	// gated: GPT-2.
	Learned bool `json:"learned_positions,omitempty"`

	KVHeads  int  `json:"num_key_value_heads"`
	HeadSize int  `json:"head_dim"`
	Rope     Rope `json:"rope"`
	Local    Rope `json:"local_rope,omitzero"`             // of layers with a window; as Rope where it is zero
	Window   int  `json:"sliding_window,omitempty"`        // tokens that a layer sees, itself the last; 0: all
	Whole    int  `json:"whole_attention_every,omitempty"` // every n-th layer sees all, whatever the window; 0: none does

	Biases        bool `json:"qkv_bias,omitempty"` // of queries, keys and values
	OutputBias    bool `json:"attention_output_bias,omitempty"`
	ForwardBiases bool `json:"mlp_bias,omitempty"`
	HeadNorms     bool `json:"head_norms,omitempty"`        // RMSNorm of each head's queries and keys
	OuterNorms    bool `json:"outer_norms,omitempty"`       // RMSNorm behind each sublayer, too
	GainsFromOne  bool `json:"gains_from_one,omitempty"`    // RMSNorm multiplies by 1 + weight
	ScaledWords   bool `json:"scaled_embeddings,omitempty"` // by sqrt(hidden_size)
	OwnHead       bool `json:"own_lm_head,omitempty"`       // else the token embeddings give the logits
	QueryScale    int  `json:"query_pre_attn_scalar"`       // scores are divided by its square root
	Begin         int  `json:"bos_token_id"`                // -1: none
	Ends          Ends `json:"eos_token_id"`
	Chat          Chat `json:"chat,omitzero"`
}

// Llama is the configuration of a small decoder as Starling makes it: a gated feed-forward
// of 8/3 the width, tied embeddings, two heads to each of the keys' where they are even. The
// first token ends a text.
func Llama(vocab, hidden, layers, heads, positions int) Config {
	groups := heads
	if heads%2 == 0 {
		groups = heads / 2
	}
	return Config{
		ModelType: "llama", VocabSize: vocab, HiddenSize: hidden, NumHiddenLayers: layers, NumAttentionHeads: heads,
		IntermediateSize: (hidden*8/3 + 7) / 8 * 8, MaxPositions: positions, LayerNormEps: 1e-5, HiddenAct: "silu",
		Decoder: Decoder{KVHeads: groups, HeadSize: hidden / heads, Rope: Rope{Theta: 10000}, QueryScale: hidden / heads, Begin: -1},
	}
}

// Ends are tokens that end a text, any of them; of fewer the first is repeated.
type Ends [4]int

// Has reports whether a token is one of them.
func (e Ends) Has(id int32) bool { return slices.Contains(e[:], int(id)) }

// Rope says how far a position turns each pair of a head's columns: pair i of n by
// Theta^(-i/n) radians a position, less where Factor scales long waves down as Llama 3.1 has it.
type Rope struct {
	Theta  float64 `json:"rope_theta"`
	Factor float64 `json:"factor,omitempty"` // 0: none
	// Waves longer than Original/Low positions are Factor times as long, those shorter
	// than Original/High as they were; a blend between.
	Low      float64 `json:"low_freq_factor,omitempty"`
	High     float64 `json:"high_freq_factor,omitempty"`
	Original int     `json:"original_max_position_embeddings,omitempty"`
}

// Limits of a decoder.
const (
	maxContext = 1 << 20
	maxTheta   = 1e9
)

// Frequencies are how far a position turns each of so many pairs, in radians. They are
// computed in float32 as transformers does, whose rounding long positions multiply.
func (r Rope) Frequencies(pairs int) []float64 {
	out := make([]float64, pairs)
	for i := range out {
		power := float32(math.Pow(r.Theta, float64(float32(2*i)/float32(2*pairs))))
		f := 1 / power
		if r.Factor > 0 {
			wave := float32(2*math.Pi) / f
			switch long, short := float64(r.Original)/r.Low, float64(r.Original)/r.High; {
			case float64(wave) > long:
				f /= float32(r.Factor)
			case !(float64(wave) < short):
				smooth := (float32(r.Original)/wave - float32(r.Low)) / float32(r.High-r.Low)
				f = (1-smooth)*f/float32(r.Factor) + smooth*f
			}
		}
		out[i] = float64(f)
	}
	return out
}

func (r Rope) check(key string) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: %s", ErrConfig, key, fmt.Sprintf(format, args...))
	}
	switch {
	case !(r.Theta > 1 && r.Theta <= maxTheta):
		return bad("rope_theta is %v, want within (1, %v]", r.Theta, float64(maxTheta))
	case r.Factor == 0 && (r.Low != 0 || r.High != 0 || r.Original != 0):
		return bad("factor is 0, but other numbers of Llama 3's scaling are given")
	case r.Factor == 0:
		return nil
	case !(r.Factor >= 1 && r.Factor <= 1e4):
		return bad("factor is %v, want within 1..1e4", r.Factor)
	case !(r.Low > 0 && r.High > r.Low && r.High <= 1e4):
		return bad("low_freq_factor is %v and high_freq_factor %v, want 0 < low < high <= 1e4", r.Low, r.High)
	case r.Original < 1 || r.Original > maxContext:
		return bad("original_max_position_embeddings is %d, want 1..%d", r.Original, maxContext)
	}
	return nil
}

// Causal reports whether the base writes the text on that it reads, seeing nothing that
// comes later.
func (c Config) Causal() bool { return c.arch().decoder != nil }

// Windowed reports whether layer l sees no more than the last tokens.
func (d Decoder) Windowed(l int) bool {
	return d.Window > 0 && (d.Whole == 0 || (l+1)%d.Whole != 0)
}

// RopeOf returns the rotation of layer l.
func (d Decoder) RopeOf(l int) Rope {
	if d.Windowed(l) && d.Local != (Rope{}) {
		return d.Local
	}
	return d.Rope
}

// Names of a decoder's tensors that stand beside its layers.
const (
	DecoderWords = "embed_tokens.weight" // token embeddings
	DecoderNorm  = "norm.weight"
	DecoderHead  = "lm_head.weight"
)

// DecoderLayer names the modules of one layer of a decoder.
type DecoderLayer struct {
	Query, Key, Value, AttentionOutput, QueryNorm, KeyNorm         string
	Gate, Up, Down                                                 string
	BeforeAttention, BehindAttention, BeforeForward, BehindForward string // norms; those behind are "" where there are none
}

// DecoderTables names the token embeddings, the positions', "" where they are not learned, and
// the norm behind the last layer.
func (c Config) DecoderTables() (words, positions, norm string) {
	if c.Decoder.Learned {
		return gpt2Words, gpt2Positions, gpt2Norm
	}
	return DecoderWords, "", DecoderNorm
}

// DecoderLayer names the modules of layer l; of learned positions queries, keys and values are one.
func (c Config) DecoderLayer(l int) DecoderLayer {
	if c.Decoder.Learned {
		return gpt2Layer(l)
	}
	p := fmt.Sprintf("layers.%d.", l)
	a, m := p+"self_attn.", p+"mlp."
	n := DecoderLayer{
		Query: a + "q_proj", Key: a + "k_proj", Value: a + "v_proj", AttentionOutput: a + "o_proj",
		QueryNorm: a + "q_norm", KeyNorm: a + "k_norm", Gate: m + "gate_proj", Up: m + "up_proj", Down: m + "down_proj",
		BeforeAttention: p + "input_layernorm", BeforeForward: p + "post_attention_layernorm",
	}
	if c.Decoder.OuterNorms {
		n.BehindAttention, n.BeforeForward, n.BehindForward = p+"post_attention_layernorm", p+"pre_feedforward_layernorm", p+"post_feedforward_layernorm"
	}
	return n
}

// QuerySize and KeySize are the columns of all heads' queries, and of their keys.
func (c Config) QuerySize() int { return c.NumAttentionHeads * c.Decoder.HeadSize }
func (c Config) KeySize() int   { return c.Decoder.KVHeads * c.Decoder.HeadSize }

func decoderLinears(c Config) []linear {
	h, ff := c.HiddenSize, c.IntermediateSize
	var all []linear
	for i := range c.NumHiddenLayers {
		l := c.DecoderLayer(i)
		all = append(all, linear{l.Query, h, c.QuerySize()}, linear{l.Key, h, c.KeySize()}, linear{l.Value, h, c.KeySize()},
			linear{l.AttentionOutput, c.QuerySize(), h}, linear{l.Gate, h, ff}, linear{l.Up, h, ff}, linear{l.Down, ff, h})
	}
	return all
}

func decoderTensors(c Config) []TensorSpec {
	h, d := c.HiddenSize, c.Decoder
	specs := []TensorSpec{{DecoderWords, []int{c.VocabSize, h}}}
	norm := func(name string, size int) {
		if name != "" {
			specs = append(specs, TensorSpec{name + ".weight", []int{size}})
		}
	}
	maps := decoderLinears(c)
	next := func(bias bool) {
		m := maps[0]
		maps = maps[1:]
		specs = append(specs, TensorSpec{m.name + ".weight", []int{m.out, m.in}})
		if bias {
			specs = append(specs, TensorSpec{m.name + ".bias", []int{m.out}})
		}
	}
	for i := range c.NumHiddenLayers {
		l := c.DecoderLayer(i)
		norm(l.BeforeAttention, h)
		next(d.Biases)
		next(d.Biases)
		next(d.Biases)
		if d.HeadNorms {
			norm(l.QueryNorm, d.HeadSize)
			norm(l.KeyNorm, d.HeadSize)
		}
		next(d.OutputBias)
		norm(l.BehindAttention, h)
		norm(l.BeforeForward, h)
		next(d.ForwardBiases)
		next(d.ForwardBiases)
		next(d.ForwardBiases)
		norm(l.BehindForward, h)
	}
	specs = append(specs, TensorSpec{DecoderNorm, []int{h}})
	if d.OwnHead {
		specs = append(specs, TensorSpec{DecoderHead, []int{c.VocabSize, h}})
	}
	return specs
}

func validateDecoder(c Config) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	d := c.Decoder
	ranges := []inRange{
		{"vocab_size", c.VocabSize, 2, maxVocab},
		{"hidden_size", c.HiddenSize, 1, maxHidden},
		{"num_hidden_layers", c.NumHiddenLayers, 1, maxLayers},
		{"num_attention_heads", c.NumAttentionHeads, 1, maxHidden},
		{"num_key_value_heads", d.KVHeads, 1, max(1, c.NumAttentionHeads)},
		{"head_dim", d.HeadSize, 2, maxHidden},
		{"intermediate_size", c.IntermediateSize, 1, 8 * maxHidden},
		{"max_position_embeddings", c.MaxPositions, 1, maxContext},
		{"sliding_window", d.Window, 0, maxContext},
		{"whole_attention_every", d.Whole, 0, maxLayers},
		{"query_pre_attn_scalar", d.QueryScale, 1, 1 << 20},
		{"pad_token_id", c.PadTokenID, 0, c.VocabSize - 1},
		{"bos_token_id", d.Begin, -1, c.VocabSize - 1},
		{"type_vocab_size", c.TypeVocabSize, 0, 0},
	}
	for _, id := range d.Ends {
		ranges = append(ranges, inRange{"eos_token_id", id, 0, c.VocabSize - 1})
	}
	for _, f := range ranges {
		if f.value < f.min || f.value > f.max {
			return bad("%s is %d, want %d..%d", f.name, f.value, f.min, f.max)
		}
	}
	switch {
	case c.NumAttentionHeads%d.KVHeads != 0:
		return bad("num_attention_heads %d is not a multiple of num_key_value_heads %d", c.NumAttentionHeads, d.KVHeads)
	case d.Learned != (c.ModelType == "gpt2"):
		return bad("learned_positions is %v of a %s", d.Learned, c.ModelType)
	case d.Learned && (d.KVHeads != c.NumAttentionHeads || c.QuerySize() != c.HiddenSize || d.Rope != Rope{} || d.Local != Rope{} || d.Window != 0 ||
		d.HeadNorms || d.OuterNorms || d.GainsFromOne || d.ScaledWords || !d.Biases || !d.OutputBias || !d.ForwardBiases):
		return bad("a gpt2 has as many keys' heads as heads, of hidden_size together, biases, and nothing of other decoders")
	case !d.Learned && d.HeadSize%2 != 0:
		return bad("head_dim is %d, want an even number: positions turn pairs of columns", d.HeadSize)
	case c.QuerySize() > 2*maxHidden:
		return bad("num_attention_heads %d times head_dim %d is %d, limit %d", c.NumAttentionHeads, d.HeadSize, c.QuerySize(), 2*maxHidden)
	case c.Pooling != "":
		return bad("pooling is %q, but a %s pools nothing", c.Pooling, c.ModelType)
	case !(c.LayerNormEps > 0 && c.LayerNormEps < 1):
		return bad("rms_norm_eps is %v, want within (0, 1)", c.LayerNormEps)
	}
	if err := d.Chat.check(); err != nil {
		return err
	}
	if d.Learned {
		return c.checkActivation("activation_function")
	}
	if err := d.Rope.check("rope_parameters"); err != nil {
		return err
	}
	if d.Local != (Rope{}) {
		if err := d.Local.check("rope_parameters of layers with a window"); err != nil {
			return err
		}
	}
	return c.checkActivation("hidden_act")
}
