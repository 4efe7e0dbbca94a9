package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// decoderFamily says what config.json of one family of decoders leaves unsaid.
type decoderFamily struct {
	defaults   string // of its keys, where they differ from Llama's
	biases     bool   // queries, keys and values always have some
	headNorms  bool
	gemma      bool // norms behind sublayers, gains from one, scaled embeddings
	windows    bool // sliding_window counts by itself
	everySixth bool // layer_types that are not given: every sixth layer sees all
}

// ofLlama is a family in the shape of Llama.
func ofLlama(class string, f decoderFamily) *architecture {
	return &architecture{class: class, prefix: "model.", targets: []string{"q_proj", "v_proj"}, decoder: &f,
		tensors: decoderTensors, linears: decoderLinears, validate: validateDecoder,
		entrance: decoderEntrance, standard: func(Config) bool { return true },
		tied: &tied{DecoderWords, DecoderHead, func(c *Config) *bool { return &c.Decoder.OwnHead }},
		parse: func(kind string, keys map[string]json.RawMessage) (Config, error) {
			return parseDecoder(kind, &f, keys)
		}}
}

// llamaDefaults are LlamaConfig's.
const llamaDefaults = `{"vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,"num_attention_heads":32,
"hidden_act":"silu","max_position_embeddings":2048,"rms_norm_eps":1e-6,"bos_token_id":1,"eos_token_id":2,"tie_word_embeddings":false,"rope_theta":10000}`

// decoders are the families of decoders.
func decoders() map[string]*architecture {
	return map[string]*architecture{
		"gpt2":  gpt2Architecture(),
		"llama": ofLlama("Llama", decoderFamily{}),
		"mistral": ofLlama("Mistral", decoderFamily{windows: true,
			defaults: `{"intermediate_size":14336,"num_key_value_heads":8,"max_position_embeddings":131072,"sliding_window":4096}`}),
		"qwen2": ofLlama("Qwen2", decoderFamily{biases: true,
			defaults: `{"vocab_size":151936,"intermediate_size":22016,"max_position_embeddings":32768,"num_key_value_heads":32,"bos_token_id":null,"eos_token_id":null}`}),
		"qwen3": ofLlama("Qwen3", decoderFamily{headNorms: true,
			defaults: `{"vocab_size":151936,"intermediate_size":22016,"max_position_embeddings":32768,"num_key_value_heads":32,"head_dim":128,"bos_token_id":null,"eos_token_id":null}`}),
		"gemma3_text": ofLlama("Gemma3", decoderFamily{headNorms: true, gemma: true, windows: true, everySixth: true,
			defaults: `{"vocab_size":262208,"hidden_size":2304,"intermediate_size":9216,"num_hidden_layers":26,"num_attention_heads":8,"num_key_value_heads":4,
"head_dim":256,"hidden_act":"gelu_pytorch_tanh","max_position_embeddings":131072,"bos_token_id":2,"eos_token_id":1,"pad_token_id":0,
"tie_word_embeddings":true,"rope_theta":1000000,"rope_local_base_freq":10000,"query_pre_attn_scalar":256,"sliding_window":4096}`}),
	}
}

// theirRope is rope_parameters, or rope_scaling of earlier versions.
type theirRope struct {
	Type     string  `json:"rope_type"`
	Old      string  `json:"type"`
	Theta    float64 `json:"rope_theta"`
	Factor   float64 `json:"factor"`
	Low      float64 `json:"low_freq_factor"`
	High     float64 `json:"high_freq_factor"`
	Original int     `json:"original_max_position_embeddings"`
	Partial  float64 `json:"partial_rotary_factor"`
}

// rope reads one; theta is what stands beside it.
func (r theirRope) rope(theta float64) (Rope, error) {
	theta = cmp.Or(r.Theta, theta)
	if r.Partial != 0 && r.Partial != 1 {
		return Rope{}, fmt.Errorf("partial_rotary_factor is %v: partial rotation is not supported", r.Partial)
	}
	switch kind := cmp.Or(r.Type, r.Old, "default"); kind {
	case "default":
		return Rope{Theta: theta}, nil
	case "llama3":
		return Rope{Theta: theta, Factor: r.Factor, Low: r.Low, High: r.High, Original: r.Original}, nil
	default:
		return Rope{}, fmt.Errorf("rope_type is %.40q, want \"default\" or \"llama3\"", kind)
	}
}

// theirDecoder is config.json as transformers writes it.
type theirDecoder struct {
	Vocab      int             `json:"vocab_size"`
	Hidden     int             `json:"hidden_size"`
	Wide       int             `json:"intermediate_size"`
	Layers     int             `json:"num_hidden_layers"`
	Heads      int             `json:"num_attention_heads"`
	KVHeads    int             `json:"num_key_value_heads"`
	HeadSize   int             `json:"head_dim"`
	Act        string          `json:"hidden_act"`
	Activation string          `json:"hidden_activation"` // Gemma's
	Positions  int             `json:"max_position_embeddings"`
	Eps        float64         `json:"rms_norm_eps"`
	Pad        *int            `json:"pad_token_id"`
	Begin      *int            `json:"bos_token_id"`
	End        json.RawMessage `json:"eos_token_id"`
	Tied       bool            `json:"tie_word_embeddings"`
	Bias       bool            `json:"attention_bias"`
	MLPBias    bool            `json:"mlp_bias"`
	Theta      float64         `json:"rope_theta"`
	LocalTheta float64         `json:"rope_local_base_freq"`
	Rope       json.RawMessage `json:"rope_parameters"`
	OldRope    *theirRope      `json:"rope_scaling"`
	UseWindow  *bool           `json:"use_sliding_window"`
	Window     *int            `json:"sliding_window"`
	Types      []string        `json:"layer_types"`
	Every      int             `json:"sliding_window_pattern"`
	Query      float64         `json:"query_pre_attn_scalar"`
	FinalCap   *float64        `json:"final_logit_softcapping"`
	Cap        *float64        `json:"attn_logit_softcapping"`
	Both       bool            `json:"use_bidirectional_attention"`
}

func badConfig(err error) error { return fmt.Errorf("%w: config.json: %w", ErrConfig, err) }

// readDecoder reads transformers' keys into their, what is not said as the defaults have it; or keys of this package's
// own, with a decoder among them, as the Config that they are.
func readDecoder(keys map[string]json.RawMessage, their any, defaults ...string) (c Config, own bool, err error) {
	data, err := json.Marshal(keys)
	if err != nil {
		return Config{}, false, badConfig(err)
	}
	if _, own = keys["decoder"]; own {
		if err := json.Unmarshal(data, &c); err != nil {
			return Config{}, true, badConfig(err)
		}
		return c, true, c.Validate()
	}
	delete(keys, "is_decoder")
	if err := refuseConfig(keys); err != nil {
		return Config{}, false, err
	}
	for _, text := range append(defaults, string(data)) {
		if err := json.Unmarshal([]byte(text), their); err != nil {
			return Config{}, false, badConfig(err)
		}
	}
	return Config{}, false, nil
}

// parseDecoder reads a decoder's configuration in transformers' keys, or this package's Config.
func parseDecoder(kind string, f *decoderFamily, keys map[string]json.RawMessage) (Config, error) {
	fail := func(err error) (Config, error) { return Config{}, badConfig(err) }
	var t theirDecoder
	c, own, err := readDecoder(keys, &t, llamaDefaults, cmp.Or(f.defaults, "{}"))
	if own || err != nil {
		return c, err
	}
	switch {
	case t.FinalCap != nil || t.Cap != nil:
		return fail(fmt.Errorf("final_logit_softcapping or attn_logit_softcapping is set: capped logits and scores are not supported"))
	case t.Both:
		return fail(fmt.Errorf("use_bidirectional_attention is true: only causal attention is supported"))
	case t.Query != math.Trunc(t.Query):
		return fail(fmt.Errorf("query_pre_attn_scalar is %v, want a whole number", t.Query))
	}
	head := t.HeadSize
	if head == 0 && t.Heads > 0 {
		head = t.Hidden / t.Heads
	}
	d := Decoder{KVHeads: cmp.Or(t.KVHeads, t.Heads), HeadSize: head, Biases: f.biases || t.Bias, OutputBias: t.Bias && !f.biases,
		ForwardBiases: t.MLPBias, HeadNorms: f.headNorms, OuterNorms: f.gemma, GainsFromOne: f.gemma, ScaledWords: f.gemma,
		OwnHead: !t.Tied, QueryScale: cmp.Or(int(t.Query), head), Begin: -1}
	if t.Begin != nil {
		d.Begin = *t.Begin
	}
	if d.Ends, err = endTokens(t.End); err != nil {
		return fail(err)
	}
	if d.Rope, d.Local, err = t.ropes(); err != nil {
		return fail(err)
	}
	if err := t.windows(f, &d); err != nil {
		return fail(err)
	}
	if d.Window == 0 {
		d.Local = Rope{}
	}
	pad := d.Ends[0]
	if t.Pad != nil && *t.Pad >= 0 {
		pad = *t.Pad
	}
	c = Config{ModelType: kind, VocabSize: t.Vocab, HiddenSize: t.Hidden, NumHiddenLayers: t.Layers, NumAttentionHeads: t.Heads,
		IntermediateSize: t.Wide, MaxPositions: t.Positions, LayerNormEps: t.Eps, HiddenAct: knownActivation(cmp.Or(t.Activation, t.Act)),
		PadTokenID: pad, Decoder: d}
	return c, c.Validate()
}

// endTokens reads one token or a list.
func endTokens(raw json.RawMessage) (ends Ends, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return ends, fmt.Errorf("eos_token_id is missing: a decoder needs a token that ends a text")
	}
	var all []int
	if json.Unmarshal(raw, &all) != nil {
		all = make([]int, 1)
		err = json.Unmarshal(raw, &all[0])
	}
	if err != nil || len(all) == 0 || len(all) > len(ends) {
		return ends, fmt.Errorf("eos_token_id is %.80s, want 1 to %d tokens", raw, len(ends))
	}
	for i := range ends {
		ends[i] = all[0]
		if i < len(all) {
			ends[i] = all[i]
		}
	}
	return ends, nil
}

// theirs is one token, or a list of several.
func (e Ends) theirs() any {
	var ends []int
	for _, id := range e {
		if !slices.Contains(ends, id) {
			ends = append(ends, id)
		}
	}
	if len(ends) == 1 {
		return ends[0]
	}
	return ends
}

// ropes reads how positions turn layers that see all, and those with a window.
func (t theirDecoder) ropes() (whole, local Rope, err error) {
	if len(t.Rope) == 0 || string(t.Rope) == "null" {
		one := theirRope{}
		if t.OldRope != nil {
			one = *t.OldRope
		}
		if whole, err = one.rope(t.Theta); err == nil && t.LocalTheta > 0 {
			local = Rope{Theta: t.LocalTheta}
		}
		return whole, local, err
	}
	var by struct {
		Whole *theirRope `json:"full_attention"`
		Local *theirRope `json:"sliding_attention"`
	}
	if err := json.Unmarshal(t.Rope, &by); err != nil {
		return whole, local, fmt.Errorf("rope_parameters: %w", err)
	}
	if by.Whole != nil && by.Local != nil {
		if whole, err = by.Whole.rope(t.Theta); err == nil {
			local, err = by.Local.rope(t.LocalTheta)
		}
		return whole, local, err
	}
	var one theirRope
	if err := json.Unmarshal(t.Rope, &one); err != nil {
		return whole, local, fmt.Errorf("rope_parameters: %w", err)
	}
	whole, err = one.rope(t.Theta)
	return whole, Rope{}, err
}

// windows reads which layers see the last tokens alone.
func (t theirDecoder) windows(f *decoderFamily, d *Decoder) error {
	const whole, sliding = "full_attention", "sliding_attention"
	window := 0
	if t.Window != nil {
		window = *t.Window
	}
	types := t.Types
	switch {
	case len(types) == 0 && f.everySixth:
		d.Window, d.Whole = window, cmp.Or(t.Every, 6)
		return nil
	case len(types) == 0:
		if t.UseWindow != nil && *t.UseWindow {
			return fmt.Errorf("use_sliding_window is true without layer_types: transformers 5 writes these")
		}
		if f.windows {
			d.Window = window
		}
		return nil
	case len(types) != t.Layers:
		return fmt.Errorf("layer_types has %d layers, num_hidden_layers is %d", len(types), t.Layers)
	case !slices.Contains(types, sliding):
		if slices.ContainsFunc(types, func(s string) bool { return s != whole }) {
			return fmt.Errorf("layer_types has %.40q, want %q or %q", types, whole, sliding)
		}
		return nil
	}
	d.Window = window
	if i := slices.Index(types, whole); i >= 0 {
		d.Whole = i + 1
	}
	for l, kind := range types {
		if want := map[bool]string{true: sliding, false: whole}[d.Windowed(l)]; kind != want {
			return fmt.Errorf("layer_types: layer %d is %.40q, want %q: every n-th layer, the first of them layer %d, may see all", l, kind, want, d.Whole-1)
		}
	}
	return nil
}

// decoderConfig is config.json under Hugging Face's keys.
func (c Config) decoderConfig() map[string]any {
	d, f := c.Decoder, c.arch().decoder
	out := map[string]any{
		"model_type": c.ModelType, "vocab_size": c.VocabSize, "hidden_size": c.HiddenSize, "intermediate_size": c.IntermediateSize,
		"num_hidden_layers": c.NumHiddenLayers, "num_attention_heads": c.NumAttentionHeads, "num_key_value_heads": d.KVHeads,
		"head_dim": d.HeadSize, "hidden_act": c.HiddenAct, "max_position_embeddings": c.MaxPositions, "rms_norm_eps": c.LayerNormEps,
		"pad_token_id": c.PadTokenID, "bos_token_id": nil, "eos_token_id": d.Ends.theirs(), "tie_word_embeddings": !d.OwnHead,
		"attention_dropout": 0.0,
	}
	if d.Begin >= 0 {
		out["bos_token_id"] = d.Begin
	}
	if !f.biases {
		out["attention_bias"] = d.Biases
	}
	if c.ModelType == "llama" {
		out["mlp_bias"] = d.ForwardBiases
	}
	types := make([]string, c.NumHiddenLayers)
	for l := range types {
		types[l] = "full_attention"
		if d.Windowed(l) {
			types[l] = "sliding_attention"
		}
	}
	switch {
	case f.gemma:
		delete(out, "hidden_act")
		out["hidden_activation"], out["query_pre_attn_scalar"], out["sliding_window"], out["layer_types"] = c.HiddenAct, d.QueryScale, max(d.Window, 1), types
		local := d.Local
		if local == (Rope{}) {
			local = d.Rope
		}
		// Both spellings: transformers 5 reads the one, earlier versions the other.
		out["rope_parameters"] = map[string]any{"full_attention": d.Rope.theirs(), "sliding_attention": local.theirs()}
		out["rope_theta"], out["rope_local_base_freq"] = d.Rope.Theta, local.Theta
		return out
	case c.ModelType == "mistral":
		out["sliding_window"] = nil
		if d.Window > 0 {
			out["sliding_window"] = d.Window
		}
	case c.ModelType == "qwen2" || c.ModelType == "qwen3":
		out["use_sliding_window"], out["layer_types"] = d.Window > 0, types
		if d.Window > 0 {
			out["sliding_window"] = d.Window
		}
	}
	out["rope_theta"], out["rope_parameters"] = d.Rope.Theta, d.Rope.theirs()
	if d.Rope.Factor > 0 {
		out["rope_scaling"] = d.Rope.theirs()
	}
	return out
}

func (r Rope) theirs() map[string]any {
	if r.Factor == 0 {
		return map[string]any{"rope_type": "default", "rope_theta": r.Theta}
	}
	return map[string]any{"rope_type": "llama3", "rope_theta": r.Theta, "factor": r.Factor, "low_freq_factor": r.Low, "high_freq_factor": r.High,
		"original_max_position_embeddings": r.Original}
}
