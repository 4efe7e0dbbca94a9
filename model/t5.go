package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// T5 is what an encoder with a decoder has in addition to an encoder's Config: Raffel et al. 2020,
// in the shapes that Hugging Face's T5ForConditionalGeneration computes.
//
// With Boxes it reads each token's place (VT5, Tito et al. 2023): to the embedding of a token is
// added a map of LayerNorm(x[left] + y[top] + x[right] + y[bottom]), or with LinearBoxes a map of
// the four as parts of the page. With Visual the encoder reads the states that a frozen encoder has
// of the page's picture behind the tokens, through a map; with Patched the picture's patches
// themselves.
type T5 struct {
	DecoderLayers int  `json:"num_decoder_layers"`
	KeySize       int  `json:"d_kv"` // columns of one head's keys; the heads' need not make hidden_size
	Buckets       int  `json:"relative_attention_num_buckets"`
	MaxDistance   int  `json:"relative_attention_max_distance"`
	Gated         bool `json:"is_gated_act"`
	OwnHead       bool `json:"own_lm_head"`           // else the token embeddings give the logits
	Scaled        bool `json:"scale_decoder_outputs"` // by 1/sqrt(hidden_size), before the head
	Start         int  `json:"decoder_start_token_id"`
	End           int  `json:"eos_token_id"`

	Boxes       int  `json:"max_2d_position_embeddings,omitempty"` // coordinates are 0..Boxes-1; 0: none are read
	LinearBoxes bool `json:"linear_boxes,omitempty"`

	// How the page's picture is read, one of them at most.
	Visual  Visual  `json:"visual_config,omitzero"`
	Patched Patched `json:"patch_config,omitzero"`
}

// Limits of a T5.
const (
	maxBuckets  = 1 << 10
	maxDistance = 1 << 16
	maxBoxes    = 1 << 12
	maxPatches  = 1 << 12
)

// Generates reports whether the base writes text, where others give classes.
func (c Config) Generates() bool { return c.ModelType == "t5" }

// InnerSize is the columns of all heads' keys together.
func (c Config) InnerSize() int { return c.NumAttentionHeads * c.T5.KeySize }

var t5Architecture = architecture{
	class:    "T5",
	targets:  []string{"q", "v"},
	tensors:  t5Tensors,
	linears:  t5Linears,
	validate: validateT5,
	parse:    parseT5,
	tied:     &tied{T5Shared, T5Head, func(c *Config) *bool { return &c.T5.OwnHead }},
	standard: func(c Config) bool { return c.T5.Boxes == 0 && !c.T5.Visual.On() },
	entrance: t5Entrance,
	depth: func(c Config) (layers, attentions int) {
		return c.NumHiddenLayers + c.T5.DecoderLayers, c.NumHiddenLayers + 2*c.T5.DecoderLayers
	},
}

// Names of a T5's tensors.
const (
	T5Shared      = "shared.weight" // token embeddings
	T5Head        = "lm_head.weight"
	T5EncoderNorm = "encoder.final_layer_norm.weight"
	T5DecoderNorm = "decoder.final_layer_norm.weight"
	T5EncoderBias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight" // [buckets, heads]
	T5DecoderBias = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
	T5BoxX        = "spatial_embedding.x_position_embeddings.weight"
	T5BoxY        = "spatial_embedding.y_position_embeddings.weight"
	T5BoxNorm     = "spatial_embedding.LayerNorm"
	T5BoxMatcher  = "spatial_embedding.spatial_emb_matcher"
	T5PageMatcher = "visual_embedding.visual_emb_matcher"
	T5Visual      = "visual_embedding.image_model."     // before the names of an encoder of images
	T5PatchMap    = "visual_embedding.patch_embed.proj" // as a masked autoencoder's (He et al. 2022), with a place before
)

// T5Block names the modules of one block: of a decoder with attention to the encoder,
// of an encoder without.
type T5Block struct {
	Self, Cross, FeedForward             string // modules; Cross is "" in an encoder
	SelfNorm, CrossNorm, FeedForwardNorm string // tensors
}

// T5Block names the modules of block l of the encoder or the decoder.
func (c Config) T5Block(decoder bool, l int) T5Block {
	layer := func(side string, n int) string { return fmt.Sprintf("%s.block.%d.layer.%d.", side, l, n) }
	if !decoder {
		a, f := layer("encoder", 0), layer("encoder", 1)
		return T5Block{Self: a + "SelfAttention", SelfNorm: a + "layer_norm.weight",
			FeedForward: f + "DenseReluDense", FeedForwardNorm: f + "layer_norm.weight"}
	}
	a, x, f := layer("decoder", 0), layer("decoder", 1), layer("decoder", 2)
	return T5Block{Self: a + "SelfAttention", SelfNorm: a + "layer_norm.weight",
		Cross: x + "EncDecAttention", CrossNorm: x + "layer_norm.weight",
		FeedForward: f + "DenseReluDense", FeedForwardNorm: f + "layer_norm.weight"}
}

// t5Blocks calls f for every block in the order of a forward pass.
func (c Config) t5Blocks(f func(decoder bool, l int, b T5Block)) {
	for l := range c.NumHiddenLayers {
		f(false, l, c.T5Block(false, l))
	}
	for l := range c.T5.DecoderLayers {
		f(true, l, c.T5Block(true, l))
	}
}

func t5Linears(c Config) []linear {
	var all []linear
	h, inner, ff := c.HiddenSize, c.InnerSize(), c.IntermediateSize
	attention := func(module string) {
		all = append(all, linear{module + ".q", h, inner}, linear{module + ".k", h, inner},
			linear{module + ".v", h, inner}, linear{module + ".o", inner, h})
	}
	c.t5Blocks(func(_ bool, _ int, b T5Block) {
		attention(b.Self)
		if b.Cross != "" {
			attention(b.Cross)
		}
		if c.T5.Gated {
			all = append(all, linear{b.FeedForward + ".wi_0", h, ff}, linear{b.FeedForward + ".wi_1", h, ff})
		} else {
			all = append(all, linear{b.FeedForward + ".wi", h, ff})
		}
		all = append(all, linear{b.FeedForward + ".wo", ff, h})
	})
	return all
}

func t5Tensors(c Config) []TensorSpec {
	h := c.HiddenSize
	specs := []TensorSpec{{T5Shared, []int{c.VocabSize, h}}}
	add := func(name string, shape ...int) { specs = append(specs, TensorSpec{name, shape}) }
	if n := c.T5.Boxes; n > 0 {
		in := h
		if c.T5.LinearBoxes {
			in = 4
		} else {
			add(T5BoxX, n, h)
			add(T5BoxY, n, h)
			add(T5BoxNorm+".weight", h)
			add(T5BoxNorm+".bias", h)
		}
		add(T5BoxMatcher+".weight", h, in)
		add(T5BoxMatcher+".bias", h)
	}
	if c.T5.Visual.On() {
		for _, t := range vitTensors(c.T5.Visual.Config()) {
			add(T5Visual+t.Name, t.Shape...)
		}
		add(T5PageMatcher+".weight", h, c.T5.Visual.HiddenSize)
		add(T5PageMatcher+".bias", h)
	}
	if p := c.T5.Patched; p.On() {
		add(T5PatchMap+".weight", h, p.Channels, p.PatchSize.Height, p.PatchSize.Width)
		add(T5PatchMap+".bias", h)
	}
	maps := t5Linears(c)
	c.t5Blocks(func(decoder bool, l int, b T5Block) {
		for _, part := range []struct{ module, norm string }{{b.Self, b.SelfNorm}, {b.Cross, b.CrossNorm}, {b.FeedForward, b.FeedForwardNorm}} {
			if part.module == "" {
				continue
			}
			add(part.norm, h)
			for len(maps) > 0 && strings.HasPrefix(maps[0].name, part.module+".") {
				add(maps[0].name+".weight", maps[0].out, maps[0].in)
				maps = maps[1:]
			}
			if l == 0 && part.module == b.Self {
				add(part.module+".relative_attention_bias.weight", c.T5.Buckets, c.NumAttentionHeads)
			}
		}
		if !decoder && l == c.NumHiddenLayers-1 {
			add(T5EncoderNorm, h)
		}
	})
	add(T5DecoderNorm, h)
	if c.T5.OwnHead {
		add(T5Head, c.VocabSize, h)
	}
	return specs
}

// inRange is a key of config.json with its bounds.
type inRange struct {
	name            string
	value, min, max int
}

func validateT5(c Config) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	t := c.T5
	for _, f := range []inRange{
		{"vocab_size", c.VocabSize, 2, maxVocab},
		{"d_model", c.HiddenSize, 1, maxHidden},
		{"num_layers", c.NumHiddenLayers, 1, maxLayers},
		{"num_decoder_layers", t.DecoderLayers, 1, maxLayers},
		{"num_heads", c.NumAttentionHeads, 1, maxHidden},
		{"d_kv", t.KeySize, 1, maxHidden},
		{"d_ff", c.IntermediateSize, 1, 8 * maxHidden},
		{"relative_attention_num_buckets", t.Buckets, 4, maxBuckets},
		{"pad_token_id", c.PadTokenID, 0, c.VocabSize - 1},
		{"eos_token_id", t.End, 0, c.VocabSize - 1},
		{"decoder_start_token_id", t.Start, 0, c.VocabSize - 1},
		{"max_2d_position_embeddings", t.Boxes, 0, maxBoxes},
		// What a config of another family would set has no meaning here.
		{"max_position_embeddings", c.MaxPositions, 0, 0},
		{"type_vocab_size", c.TypeVocabSize, 0, 0},
	} {
		if f.value < f.min || f.value > f.max {
			return bad("%s is %d, want %d..%d", f.name, f.value, f.min, f.max)
		}
	}
	switch {
	case c.InnerSize() > 2*maxHidden:
		return bad("num_heads %d times d_kv %d is %d, limit %d", c.NumAttentionHeads, t.KeySize, c.InnerSize(), 2*maxHidden)
	case t.Buckets%4 != 0:
		return bad("relative_attention_num_buckets is %d, want a multiple of 4", t.Buckets)
	case t.MaxDistance <= t.Buckets/2 || t.MaxDistance > maxDistance:
		return bad("relative_attention_max_distance is %d, want %d..%d", t.MaxDistance, t.Buckets/2+1, maxDistance)
	case c.Pooling != "":
		return bad("pooling is %q, but a t5 pools nothing", c.Pooling)
	case t.LinearBoxes && t.Boxes < 2:
		return bad("linear_boxes is true and max_2d_position_embeddings %d, want 2 or more", t.Boxes)
	case (t.LinearBoxes || t.Patched.On()) && t.Boxes > PageSide+1:
		return bad("max_2d_position_embeddings is %d, want at most %d with linear_boxes or patch_config: the page's edge is the last coordinate", t.Boxes, PageSide+1)
	case t.Visual.On() && t.Patched.On():
		return bad("both visual_config and patch_config say what reads the page, want one")
	case t.Visual.On() && t.Visual.check() != nil:
		return t.Visual.check()
	case t.Patched.On() && t.Patched.check(t.Boxes) != nil:
		return t.Patched.check(t.Boxes)
	case !(c.LayerNormEps > 0 && c.LayerNormEps < 1):
		return bad("layer_norm_epsilon is %v, want within (0, 1)", c.LayerNormEps)
	}
	return c.checkActivation("feed_forward_proj")
}

// parseT5 reads Hugging Face's T5Config, or this package's Config.
func parseT5(_ string, keys map[string]json.RawMessage) (Config, error) {
	var c Config
	fail := func(err error) (Config, error) { return Config{}, fmt.Errorf("%w: config.json: %w", ErrConfig, err) }
	if _, own := keys["t5"]; own {
		data, err := json.Marshal(keys)
		if err == nil {
			err = json.Unmarshal(data, &c)
		}
		if err != nil {
			return fail(err)
		}
		return c, c.Validate()
	}
	delete(keys, "is_decoder") // of a stack in it
	if err := refuseConfig(keys); err != nil {
		return Config{}, err
	}
	theirs := struct {
		Width    int             `json:"d_model"`
		Layers   int             `json:"num_layers"`
		Heads    int             `json:"num_heads"`
		Wide     int             `json:"d_ff"`
		Vocab    int             `json:"vocab_size"`
		Decoder  *int            `json:"num_decoder_layers"`
		Eps      float64         `json:"layer_norm_epsilon"`
		Forward  string          `json:"feed_forward_proj"`
		Pad      *int            `json:"pad_token_id"`
		Tied     *bool           `json:"tie_word_embeddings"`
		Scaled   *bool           `json:"scale_decoder_outputs"`
		End      json.RawMessage `json:"eos_token_id"`
		Start    *int            `json:"decoder_start_token_id"`
		KeySize  int             `json:"d_kv"`
		Buckets  int             `json:"relative_attention_num_buckets"`
		Distance int             `json:"relative_attention_max_distance"`
		Boxes    int             `json:"max_2d_position_embeddings"`
		Linear   bool            `json:"linear_boxes"`
	}{512, 6, 8, 2048, 32128, nil, 1e-6, "relu", nil, nil, nil, nil, nil, 64, 32, 128, 0, false} // T5Config's defaults
	visual, err := parseVisual(keys)
	if err != nil {
		return Config{}, err
	}
	patched, err := parsePatched(keys["patch_config"])
	if err != nil {
		return fail(err)
	}
	data, err := json.Marshal(keys)
	if err == nil {
		err = json.Unmarshal(data, &theirs)
	}
	if err != nil {
		return fail(err)
	}
	or := func(p *int, otherwise int) int {
		if p == nil {
			return otherwise
		}
		return *p
	}
	c = Config{ModelType: "t5", VocabSize: theirs.Vocab, HiddenSize: theirs.Width, NumHiddenLayers: theirs.Layers,
		NumAttentionHeads: theirs.Heads, IntermediateSize: theirs.Wide, LayerNormEps: theirs.Eps, PadTokenID: or(theirs.Pad, 0),
		T5: T5{DecoderLayers: or(theirs.Decoder, theirs.Layers), KeySize: theirs.KeySize, Buckets: theirs.Buckets,
			MaxDistance: theirs.Distance, Boxes: theirs.Boxes, LinearBoxes: theirs.Linear, Visual: visual, Patched: patched, Scaled: true}}
	c.T5.Start = or(theirs.Start, c.PadTokenID)
	if c.T5.End, err = endToken(theirs.End); err != nil {
		return fail(err)
	}
	// An untied head is not scaled. Later versions of transformers say so apart, and
	// tie or not by what the folder holds (LoadBase).
	if theirs.Tied != nil && !*theirs.Tied {
		c.T5.OwnHead, c.T5.Scaled = true, false
	}
	if theirs.Scaled != nil {
		c.T5.Scaled = *theirs.Scaled
	}
	act, gated := strings.CutPrefix(theirs.Forward, "gated-")
	if gated && act == "gelu" {
		act = "gelu_new" // T5Config says so, of this spelling alone
	}
	c.HiddenAct, c.T5.Gated = knownActivation(act), gated
	return c, c.Validate()
}

func endToken(raw json.RawMessage) (int, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return 1, nil
	}
	var one int
	if json.Unmarshal(raw, &one) == nil {
		return one, nil
	}
	var list []int
	if err := json.Unmarshal(raw, &list); err != nil || len(list) != 1 {
		return 0, fmt.Errorf("eos_token_id is %.40s, want one token", raw)
	}
	return list[0], nil
}

// settleHead decides by the folder's tensors whether the head is the embeddings, as
// transformers does: one that equals them is tied to them.
func (c *Config) settleHead(files []*SafeTensors) error {
	tied := c.arch().tied
	st, head := find(*c, files, tied.head)
	in, shared := find(*c, files, tied.words)
	if st == nil || in == nil {
		return nil // whatever is missing is named later
	}
	x, err := st.Tensor(head)
	if err != nil {
		return err
	}
	y, err := in.Tensor(shared)
	if err != nil {
		return err
	}
	same := len(x.Data) == len(y.Data)
	for i := 0; same && i < len(x.Data); i++ {
		same = x.Data[i] == y.Data[i]
	}
	*tied.own(c) = !same
	return nil
}

// t5Config is config.json under Hugging Face's keys.
func (c Config) t5Config() map[string]any {
	t := c.T5
	forward := c.HiddenAct
	if t.Gated {
		switch forward {
		case "gelu_new":
			forward = "gelu"
		case "gelu":
			forward = "gelu_python"
		}
		forward = "gated-" + forward
	}
	out := map[string]any{
		"model_type": "t5", "is_encoder_decoder": true, "vocab_size": c.VocabSize, "d_model": c.HiddenSize, "d_kv": t.KeySize,
		"d_ff": c.IntermediateSize, "num_layers": c.NumHiddenLayers, "num_decoder_layers": t.DecoderLayers,
		"num_heads": c.NumAttentionHeads, "relative_attention_num_buckets": t.Buckets, "relative_attention_max_distance": t.MaxDistance,
		"layer_norm_epsilon": c.LayerNormEps, "feed_forward_proj": forward, "pad_token_id": c.PadTokenID, "eos_token_id": t.End,
		"decoder_start_token_id": t.Start, "scale_decoder_outputs": t.Scaled, "tie_word_embeddings": !t.OwnHead, "dropout_rate": 0.0,
	}
	if t.Boxes > 0 {
		out["max_2d_position_embeddings"] = t.Boxes
	}
	if t.LinearBoxes {
		out["linear_boxes"] = true
	}
	if t.Patched.On() {
		out["patch_config"] = t.Patched.keys()
	}
	if t.Visual.On() {
		out["visual_config"] = t.Visual.beitConfig()
	}
	return out
}
