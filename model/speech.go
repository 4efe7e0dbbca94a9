package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Speech is what an encoder of recordings has in addition to an encoder's Config: wav2vec 2.0
// (Baevski et al. 2020) and HuBERT (Hsu et al. 2021), as Hugging Face computes them. Samples go
// through strided convolutions, whose frames a transformer with convolutional positions reads.
// DistilHuBERT (Chang et al. 2022) is a hubert of two layers.
type Speech struct {
	Width  Convolutions `json:"conv_dim"`
	Kernel Convolutions `json:"conv_kernel"`
	Stride Convolutions `json:"conv_stride"`
	Bias   bool         `json:"conv_bias,omitempty"`
	Norm   string       `json:"feat_extract_norm"`       // "group": of the first convolution, by channel; "layer": of each, by frame
	Act    string       `json:"feat_extract_activation"` // as HiddenAct

	ProjectedNorm bool   `json:"feat_proj_layer_norm"` // frames are normalised before they are projected
	Positions     int    `json:"num_conv_pos_embeddings"`
	Groups        int    `json:"num_conv_pos_embedding_groups"`
	NormFirst     bool   `json:"do_stable_layer_norm,omitempty"` // layers normalise before they compute
	Projector     int    `json:"classifier_proj_size"`           // columns of a classifier's first map
	Reduction     string `json:"ctc_loss_reduction,omitempty"`   // "mean": a text's loss is by its characters; "": transformers' "sum"

	// Of preprocessor_config.json.
	Rate      int  `json:"sampling_rate"`                   // samples a second
	Normalize bool `json:"do_normalize,omitempty"`          // to mean 0 and variance 1
	Masked    bool `json:"return_attention_mask,omitempty"` // what fills a row up is left out, else it is read as silence
}

// Convolutions are numbers of the front end's convolutions, first to last; 0 behind the last.
type Convolutions [8]int

// Len is the number of convolutions.
func (v Convolutions) Len() int {
	if i := slices.Index(v[:], 0); i >= 0 {
		return i
	}
	return len(v)
}

// MarshalJSON writes those that there are.
func (v Convolutions) MarshalJSON() ([]byte, error) { return json.Marshal(v[:v.Len()]) }

// UnmarshalJSON reads as many numbers as fit.
func (v *Convolutions) UnmarshalJSON(data []byte) error {
	var list []int
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("%w: convolutions: %w", ErrConfig, err)
	}
	if len(list) > len(v) || slices.ContainsFunc(list, func(n int) bool { return n < 1 || n > 1<<12 }) {
		return fmt.Errorf("%w: %d convolutions of %v, want at most %d, each number within 1..%d", ErrConfig, len(list), list, len(v), 1<<12)
	}
	*v = Convolutions{}
	copy(v[:], list)
	return nil
}

// Names of an encoder of recordings' own tensors.
const (
	SpeechProjection     = "feature_projection.projection"
	SpeechProjectionNorm = "feature_projection.layer_norm"
	SpeechPositions      = "encoder.pos_conv_embed.conv"
	SpeechNorm           = "encoder.layer_norm"
	// A weight of direction [hidden, hidden/groups, kernel] and length [1, 1, kernel] at each tap.
	SpeechPositionsLength    = SpeechPositions + ".parametrizations.weight.original0"
	SpeechPositionsDirection = SpeechPositions + ".parametrizations.weight.original1"
)

// SpeechExtractor begins the names of the convolutions' tensors.
const SpeechExtractor = "feature_extractor."

// SpeechConvolution names the modules of convolution i of the front end.
func SpeechConvolution(i int) (conv, norm string) {
	p := fmt.Sprintf(SpeechExtractor+"conv_layers.%d.", i)
	return p + "conv", p + "layer_norm"
}

// Hears reports whether the base reads recordings.
func (c Config) Hears() bool { return c.ModelType == "hubert" || c.ModelType == "wav2vec2" }

// Samples returns the number of samples that make so many frames.
func (s Speech) Samples(frames int) int {
	for i := s.Stride.Len() - 1; i >= 0; i-- {
		frames = (frames-1)*s.Stride[i] + s.Kernel[i]
	}
	return frames
}

// Frames returns the number of frames that so many samples make, 0 where they are too few for one.
func (s Speech) Frames(samples int) int {
	for i := range s.Stride.Len() {
		if samples < s.Kernel[i] {
			return 0
		}
		samples = (samples-s.Kernel[i])/s.Stride[i] + 1
	}
	return samples
}

// NormOf says what normalises the outputs of convolution i: "group", "layer" or nothing.
func (s Speech) NormOf(i int) string {
	if s.Norm == "group" && i > 0 {
		return ""
	}
	return s.Norm
}

// listeners are the encoders of recordings.
func listeners() map[string]*architecture {
	return map[string]*architecture{
		"hubert":   speechArchitecture("Hubert", "hubert."),
		"wav2vec2": speechArchitecture("Wav2Vec2", "wav2vec2."),
	}
}

func speechArchitecture(class, prefix string) *architecture {
	return &architecture{class: class, prefix: prefix, targets: []string{"q_proj", "v_proj"}, layer: speechLayer,
		tensors: speechTensors, validate: validateSpeech, head: []Dense{{Name: "classifier", Trained: true}},
		parse: parseSpeech, textless: true,
		entrance: func(Config) Entrance { return Entrance{} }}
}

func speechLayer(l int) Layer {
	p := fmt.Sprintf("encoder.layers.%d.", l)
	return Layer{
		Query: p + "attention.q_proj", Key: p + "attention.k_proj", Value: p + "attention.v_proj",
		AttentionOutput: p + "attention.out_proj", AttentionNorm: p + "layer_norm",
		Intermediate: p + "feed_forward.intermediate_dense", Output: p + "feed_forward.output_dense", OutputNorm: p + "final_layer_norm",
	}
}

func speechTensors(c Config) []TensorSpec {
	h, s := c.HiddenSize, c.Speech
	var specs []TensorSpec
	pair := func(name string, shape ...int) {
		specs = append(specs, TensorSpec{name + ".weight", shape}, TensorSpec{name + ".bias", shape[:1]})
	}
	in := 1
	for i := range s.Width.Len() {
		conv, norm := SpeechConvolution(i)
		specs = append(specs, TensorSpec{conv + ".weight", []int{s.Width[i], in, s.Kernel[i]}})
		if in = s.Width[i]; s.Bias {
			specs = append(specs, TensorSpec{conv + ".bias", []int{in}})
		}
		if s.NormOf(i) != "" {
			pair(norm, in)
		}
	}
	if s.ProjectedNorm {
		pair(SpeechProjectionNorm, in)
	}
	pair(SpeechProjection, h, in)
	specs = append(specs, TensorSpec{SpeechPositions + ".bias", []int{h}},
		TensorSpec{SpeechPositionsLength, []int{1, 1, s.Positions}},
		TensorSpec{SpeechPositionsDirection, []int{h, h / max(1, s.Groups), s.Positions}})
	pair(SpeechNorm, h)
	for i := range c.NumHiddenLayers {
		l := speechLayer(i)
		pair(l.Query, h, h)
		pair(l.Key, h, h)
		pair(l.Value, h, h)
		pair(l.AttentionOutput, h, h)
		pair(l.AttentionNorm, h)
		pair(l.Intermediate, c.IntermediateSize, h)
		pair(l.Output, h, c.IntermediateSize)
		pair(l.OutputNorm, h)
	}
	return specs
}

func validateSpeech(c Config) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	s := c.Speech
	for _, f := range []inRange{
		{"hidden_size", c.HiddenSize, 1, maxHidden},
		{"num_hidden_layers", c.NumHiddenLayers, 1, maxLayers},
		{"num_attention_heads", c.NumAttentionHeads, 1, maxHidden},
		{"intermediate_size", c.IntermediateSize, 1, 8 * maxHidden},
		{"num_conv_pos_embeddings", s.Positions, 1, 1 << 10},
		{"num_conv_pos_embedding_groups", s.Groups, 1, maxHidden},
		{"classifier_proj_size", s.Projector, 1, maxHidden},
		{"sampling_rate", s.Rate, 4000, 192_000},
		{"max_position_embeddings", c.MaxPositions, 0, 0},
		{"type_vocab_size", c.TypeVocabSize, 0, 0},
		{"vocab_size", c.VocabSize, 0, maxSpeechOutput}, // of texts that are written; 0: none are
		{"pad_token_id", c.PadTokenID, 0, max(0, c.VocabSize-1)},
	} {
		if f.value < f.min || f.value > f.max {
			return bad("%s is %d, want %d..%d", f.name, f.value, f.min, f.max)
		}
	}
	n := s.Width.Len()
	// A window's values are at hand from so many samples: what a frame makes a device compute.
	const mostWindow = 1 << 16
	if n == 0 || s.Kernel.Len() != n || s.Stride.Len() != n {
		return bad("conv_dim, conv_kernel and conv_stride have %d, %d and %d numbers, want as many of each, 1..%d",
			n, s.Kernel.Len(), s.Stride.Len(), len(s.Width))
	}
	for i := range n {
		if s.Width[i] < 1 || s.Width[i] > 1<<12 || s.Kernel[i] < 1 || s.Kernel[i] > 64 || s.Stride[i] < 1 || s.Stride[i] > 64 {
			return bad("convolution %d has width %d, kernel %d and stride %d, want 1..4096, 1..64 and 1..64", i, s.Width[i], s.Kernel[i], s.Stride[i])
		}
	}
	switch {
	case s.Samples(1) > mostWindow:
		return bad("a frame is made of %d samples, the limit is %d", s.Samples(1), mostWindow)
	case s.Reduction != "" && s.Reduction != "mean":
		return bad("ctc_loss_reduction is %.40q, want sum or mean", s.Reduction)
	case s.Norm != "group" && s.Norm != "layer":
		return bad("feat_extract_norm is %.40q, want group or layer", s.Norm)
	case c.HiddenSize%c.NumAttentionHeads != 0:
		return bad("hidden_size %d is not a multiple of num_attention_heads %d", c.HiddenSize, c.NumAttentionHeads)
	case c.HiddenSize%s.Groups != 0:
		return bad("hidden_size %d is not a multiple of num_conv_pos_embedding_groups %d", c.HiddenSize, s.Groups)
	case c.Pooling != PoolHF:
		return bad("pooling is %q, but a %s's head reads the mean of its frames", c.Pooling, c.ModelType)
	case !(c.LayerNormEps > 0 && c.LayerNormEps < 1):
		return bad("layer_norm_eps is %v, want within (0, 1)", c.LayerNormEps)
	}
	if err := c.checkActivation("hidden_act"); err != nil {
		return err
	}
	c.HiddenAct = s.Act
	return c.checkActivation("feat_extract_activation")
}

// NewHubert is a configuration as Starling makes it: convolutions of the published models'
// kernels and strides, so wide, of which every frame is a fiftieth of a second.
func NewHubert(width, hidden, layers int) Config {
	c := Config{ModelType: "hubert", HiddenSize: hidden, NumHiddenLayers: layers, NumAttentionHeads: max(1, hidden/32),
		IntermediateSize: 4 * hidden, LayerNormEps: 1e-5, HiddenAct: "gelu", Pooling: PoolHF,
		Speech: Speech{Kernel: Convolutions{10, 3, 3, 3, 3, 2, 2}, Stride: Convolutions{5, 2, 2, 2, 2, 2, 2},
			Norm: "group", Act: "gelu", ProjectedNorm: true, Positions: 128, Groups: 16, Projector: 256, Rate: 16_000, Normalize: true}}
	for i := range c.Speech.Kernel.Len() {
		c.Speech.Width[i] = width
	}
	return c
}

// parseSpeech reads Hugging Face's HubertConfig or Wav2Vec2Config, or this package's Config.
func parseSpeech(kind string, keys map[string]json.RawMessage) (Config, error) {
	c := NewHubert(512, 768, 12) // both configurations' defaults
	c.ModelType, c.NumAttentionHeads = kind, 12
	data, err := json.Marshal(keys)
	if _, own := keys["speech"]; own && err == nil {
		c = Config{}
		err = json.Unmarshal(data, &c)
	} else if err == nil {
		if err := refuseConfig(keys); err != nil {
			return Config{}, err
		}
		for key, want := range map[string]string{"use_weighted_layer_sum": "false", "conv_pos_batch_norm": "false",
			"add_adapter": "false", "adapter_attn_dim": "null"} {
			if got, ok := keys[key]; ok && string(got) != want && string(got) != "null" {
				return Config{}, fmt.Errorf("%w: config.json: %s is %.40s, only %s is supported", ErrConfig, key, got, want)
			}
		}
		if err = json.Unmarshal(data, &c.Speech); err == nil {
			err = json.Unmarshal(data, &c)
		}
		if kind == "wav2vec2" {
			c.Speech.ProjectedNorm = true
		}
		c.VocabSize, c.PadTokenID = 0, 0 // of a head that writes texts: see readCharacters
		if c.Speech.Reduction == "sum" {
			c.Speech.Reduction = ""
		}
		c.HiddenAct, c.Speech.Act = knownActivation(c.HiddenAct), knownActivation(c.Speech.Act)
	}
	if err != nil {
		return Config{}, fmt.Errorf("%w: config.json: %w", ErrConfig, err)
	}
	return c, c.Validate()
}

// readSpeechPreprocessor takes over what a folder says of samples; without the file they are
// Wav2Vec2FeatureExtractor's.
func (c *Config) readSpeechPreprocessor(fsys fs.FS) error {
	data, err := ReadFile(fsys, preprocessorFile, maxJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	p := struct {
		Rate      *int     `json:"sampling_rate"`
		Normalize *bool    `json:"do_normalize"`
		Masked    *bool    `json:"return_attention_mask"`
		Features  *int     `json:"feature_size"`
		Padding   *float64 `json:"padding_value"`
		Side      *string  `json:"padding_side"`
	}{}
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrConfig, preprocessorFile, err)
	}
	switch {
	case p.Features != nil && *p.Features != 1:
		return fmt.Errorf("%w: %s: feature_size is %d, want 1: samples, not features of them", ErrConfig, preprocessorFile, *p.Features)
	case p.Padding != nil && *p.Padding != 0:
		return fmt.Errorf("%w: %s: padding_value is %v, want 0", ErrConfig, preprocessorFile, *p.Padding)
	case p.Side != nil && *p.Side != "right":
		return fmt.Errorf("%w: %s: padding_side is %.40q, want right", ErrConfig, preprocessorFile, *p.Side)
	}
	if p.Rate != nil {
		c.Speech.Rate = *p.Rate
	}
	if p.Normalize != nil {
		c.Speech.Normalize = *p.Normalize
	}
	if p.Masked != nil {
		c.Speech.Masked = *p.Masked
	}
	return c.Validate()
}

// speechConfig is config.json under Hugging Face's keys.
func (c Config) speechConfig() map[string]any {
	s := c.Speech
	out := map[string]any{
		"model_type": c.ModelType, "hidden_size": c.HiddenSize, "num_hidden_layers": c.NumHiddenLayers,
		"num_attention_heads": c.NumAttentionHeads, "intermediate_size": c.IntermediateSize, "hidden_act": c.HiddenAct,
		"layer_norm_eps": c.LayerNormEps, "conv_dim": s.Width, "conv_kernel": s.Kernel, "conv_stride": s.Stride, "conv_bias": s.Bias,
		"num_feat_extract_layers": s.Width.Len(), "feat_extract_norm": s.Norm, "feat_extract_activation": s.Act,
		"feat_proj_layer_norm": s.ProjectedNorm, "num_conv_pos_embeddings": s.Positions, "num_conv_pos_embedding_groups": s.Groups,
		"do_stable_layer_norm": s.NormFirst, "classifier_proj_size": s.Projector, "apply_spec_augment": false, "mask_time_prob": 0.0, "mask_feature_prob": 0.0, "layerdrop": 0.0,
		"hidden_dropout": 0.0, "activation_dropout": 0.0, "attention_dropout": 0.0, "feat_proj_dropout": 0.0, "final_dropout": 0.0,
		"ctc_loss_reduction": cmp.Or(s.Reduction, "sum"), "ctc_zero_infinity": false,
	}
	if c.VocabSize > 0 {
		out["vocab_size"], out["pad_token_id"] = c.VocabSize, c.PadTokenID
	}
	return out
}

// speechPreprocessor is preprocessor_config.json: what Wav2Vec2FeatureExtractor does to a
// recording.
func (c Config) speechPreprocessor() map[string]any {
	s := c.Speech
	return map[string]any{
		"feature_extractor_type": "Wav2Vec2FeatureExtractor", "feature_size": 1, "sampling_rate": s.Rate, "padding_value": 0.0,
		"padding_side": "right", "do_normalize": s.Normalize, "return_attention_mask": s.Masked,
	}
}
