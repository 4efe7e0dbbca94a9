package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
)

// ViT is what an encoder of images has in addition to an encoder's Config: Dosovitskiy et al. 2021,
// as Hugging Face's ViTForImageClassification computes it. An image is read as patches, left to
// right and top to bottom, behind a token of its own whose last state the head reads; layers
// normalise before they compute.
type ViT struct {
	ImageSize Extent `json:"image_size"`
	PatchSize Extent `json:"patch_size"`
	Channels  int    `json:"num_channels"`          // 1 or 3
	NoBias    bool   `json:"no_qkv_bias,omitempty"` // of queries, keys and values
	BEiT      BEiT   `json:"beit,omitzero"`

	// A pixel of 0..1 becomes (pixel - Mean) / Std, by channel.
	Mean [3]float64 `json:"image_mean"`
	Std  [3]float64 `json:"image_std"`
}

// preprocessorFile says how images become a model's pixels.
const preprocessorFile = "preprocessor_config.json"

// Names of a ViT's own tensors.
const (
	ViTClass     = "embeddings.cls_token"           // [1, 1, hidden]
	ViTPositions = "embeddings.position_embeddings" // [1, 1+patches, hidden]
	ViTPatch     = "embeddings.patch_embeddings.projection"
	ViTNorm      = "layernorm"
)

// Sees reports whether the base reads images.
func (c Config) Sees() bool { return c.ModelType == "vit" }

// Grid returns the number of patches from top to bottom and from left to right.
func (v ViT) Grid() (rows, columns int) {
	return v.ImageSize.Height / v.PatchSize.Height, v.ImageSize.Width / v.PatchSize.Width
}

// Patches is the number of patches of an image.
func (v ViT) Patches() int {
	rows, columns := v.Grid()
	return rows * columns
}

// PatchValues is the number of values of a patch.
func (v ViT) PatchValues() int { return v.Channels * v.PatchSize.Height * v.PatchSize.Width }

var vitArchitecture = architecture{
	class:    "ViT",
	prefix:   "vit.",
	targets:  []string{"query", "value"},
	layer:    func(l int) Layer { return ViTLayer("", l) },
	head:     []Dense{{Name: "classifier", Trained: true}},
	tensors:  vitTensors,
	validate: validateViT,
	modules:  vitModules,
	parse:    parseViT,
	textless: true,
	entrance: func(Config) Entrance { return Entrance{} },
}

// ViTLayer names the modules of layer l behind a prefix.
func ViTLayer(prefix string, l int) Layer {
	p := fmt.Sprintf("%sencoder.layer.%d.", prefix, l)
	return Layer{
		Query: p + "attention.attention.query", Key: p + "attention.attention.key", Value: p + "attention.attention.value",
		AttentionOutput: p + "attention.output.dense", AttentionNorm: p + "layernorm_before",
		Intermediate: p + "intermediate.dense", Output: p + "output.dense", OutputNorm: p + "layernorm_after",
	}
}

// vitModules is how transformers 5 names a layer's modules in memory, and so in
// adapters; its files have the names of earlier versions.
var vitModules = strings.NewReplacer(
	"encoder.layer.", "layers.",
	"attention.attention.query", "attention.q_proj", "attention.attention.key", "attention.k_proj",
	"attention.attention.value", "attention.v_proj", "attention.output.dense", "attention.o_proj",
	"intermediate.dense", "mlp.fc1", "output.dense", "mlp.fc2",
)

func vitTensors(c Config) []TensorSpec {
	h, v := c.HiddenSize, c.ViT
	specs := []TensorSpec{{ViTClass, []int{1, 1, h}}}
	if !v.BEiT.NoPositions {
		specs = append(specs, TensorSpec{ViTPositions, []int{1, 1 + v.Patches(), h}})
	}
	specs = append(specs, TensorSpec{ViTPatch + ".weight", []int{h, v.Channels, v.PatchSize.Height, v.PatchSize.Width}},
		TensorSpec{ViTPatch + ".bias", []int{h}})
	table := func(name string) { specs = append(specs, TensorSpec{name, []int{v.Distances(), c.NumAttentionHeads}}) }
	if v.BEiT.Relative == RelativeShared {
		table(BEiTShared)
	}
	pair := func(name string, bias bool, shape ...int) {
		specs = append(specs, TensorSpec{name + ".weight", shape})
		if bias {
			specs = append(specs, TensorSpec{name + ".bias", shape[:1]})
		}
	}
	for i := range c.NumHiddenLayers {
		l := ViTLayer("", i)
		pair(l.AttentionNorm, true, h)
		pair(l.Query, !v.NoBias, h, h)
		pair(l.Key, !v.NoBias && !v.BEiT.NoKeyBias, h, h)
		pair(l.Value, !v.NoBias, h, h)
		if v.BEiT.Relative == RelativeEach {
			table(l.Distances())
		}
		pair(l.AttentionOutput, true, h, h)
		pair(l.OutputNorm, true, h)
		pair(l.Intermediate, true, c.IntermediateSize, h)
		pair(l.Output, true, h, c.IntermediateSize)
		if v.BEiT.Scaled {
			specs = append(specs, TensorSpec{l.Scale(1), []int{h}}, TensorSpec{l.Scale(2), []int{h}})
		}
	}
	if !v.BEiT.NoNorm {
		pair(ViTNorm, true, h)
	}
	return specs
}

func validateViT(c Config) error {
	if c.ViT.BEiT != (BEiT{}) {
		return fmt.Errorf("%w: a vit has fields of a beit", ErrConfig)
	}
	return checkViT(c)
}

// checkViT checks an encoder of images that may be a BEiT.
func checkViT(c Config) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	v := c.ViT
	for _, f := range []inRange{
		{"hidden_size", c.HiddenSize, 1, maxHidden},
		{"num_hidden_layers", c.NumHiddenLayers, 1, maxLayers},
		{"num_attention_heads", c.NumAttentionHeads, 1, maxHidden},
		{"intermediate_size", c.IntermediateSize, 1, 8 * maxHidden},
		{"vocab_size", c.VocabSize, 0, 0}, // of texts
		{"max_position_embeddings", c.MaxPositions, 0, 0},
		{"type_vocab_size", c.TypeVocabSize, 0, 0},
		{"pad_token_id", c.PadTokenID, 0, 0},
	} {
		if f.value < f.min || f.value > f.max {
			return bad("%s is %d, want %d..%d", f.name, f.value, f.min, f.max)
		}
	}
	switch {
	case c.HiddenSize%c.NumAttentionHeads != 0:
		return bad("hidden_size %d is not a multiple of num_attention_heads %d", c.HiddenSize, c.NumAttentionHeads)
	case c.Pooling != PoolHF:
		return bad("pooling is %q, but a vit's head reads its first state", c.Pooling)
	case !(c.LayerNormEps > 0 && c.LayerNormEps < 1):
		return bad("layer_norm_eps is %v, want within (0, 1)", c.LayerNormEps)
	}
	if err := v.check(maxPositions); err != nil {
		return err
	}
	return c.checkActivation("hidden_act")
}

// check checks what an image is cut into: fewer patches than a limit.
func (v ViT) check(limit int) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	for _, f := range []inRange{
		{"image_size", v.ImageSize.Height, 1, 1 << 12},
		{"image_size", v.ImageSize.Width, 1, 1 << 12},
		{"patch_size", v.PatchSize.Height, 1, v.ImageSize.Height},
		{"patch_size", v.PatchSize.Width, 1, v.ImageSize.Width},
	} {
		if f.value < f.min || f.value > f.max {
			return bad("%s is %d, want %d..%d", f.name, f.value, f.min, f.max)
		}
	}
	switch {
	case v.ImageSize.Height%v.PatchSize.Height != 0 || v.ImageSize.Width%v.PatchSize.Width != 0 || v.Patches() >= limit:
		return bad("image_size %v and patch_size %v: want whole patches, fewer than %d", v.ImageSize, v.PatchSize, limit)
	case v.Channels != 1 && v.Channels != 3:
		return bad("num_channels is %d, want 1 or 3", v.Channels)
	}
	for i := range 3 {
		if m, s := v.Mean[i], v.Std[i]; !(math.Abs(m) <= 1e3) || !(s >= 1e-6 && s <= 1e3) {
			return bad("image_mean and image_std are %v and %v, want numbers and positive ones", v.Mean, v.Std)
		}
	}
	return nil
}

// NewViT is a configuration as Starling makes it for images of one or three channels:
// a feed-forward four times as wide, heads of 32 columns.
func NewViT(hidden, layers, image, patch, channels int) Config {
	return Config{ModelType: "vit", HiddenSize: hidden, NumHiddenLayers: layers, NumAttentionHeads: max(1, hidden/32),
		IntermediateSize: 4 * hidden, LayerNormEps: 1e-12, HiddenAct: "gelu", Pooling: PoolHF, ViT: ViT{ImageSize: Square(image),
			PatchSize: Square(patch), Channels: channels, Mean: [3]float64{0.5, 0.5, 0.5}, Std: [3]float64{0.5, 0.5, 0.5}}}
}

// parseViT reads Hugging Face's ViTConfig, or this package's Config.
func parseViT(_ string, keys map[string]json.RawMessage) (Config, error) {
	c := NewViT(768, 12, 224, 16, 3) // ViTConfig's defaults
	c.NumAttentionHeads = 12
	data, err := json.Marshal(keys)
	if _, own := keys["vit"]; own && err == nil {
		c = Config{}
		err = json.Unmarshal(data, &c)
	} else if err == nil {
		if err := refuseConfig(keys); err != nil {
			return Config{}, err
		}
		theirs := struct {
			Bias *bool `json:"qkv_bias"`
		}{}
		if err = json.Unmarshal(data, &c.ViT); err == nil {
			err = json.Unmarshal(data, &theirs)
		}
		if err == nil {
			err = json.Unmarshal(data, &c)
		}
		c.ViT.NoBias = theirs.Bias != nil && !*theirs.Bias
		c.HiddenAct = knownActivation(c.HiddenAct)
	}
	if err != nil {
		return Config{}, fmt.Errorf("%w: config.json: %w", ErrConfig, err)
	}
	return c, c.Validate()
}

// readViTPreprocessor is readPreprocessor of a vit's folder.
func (c *Config) readViTPreprocessor(fsys fs.FS) error {
	if err := c.ViT.readPreprocessor(fsys); err != nil {
		return err
	}
	return c.Validate()
}

// readPreprocessor takes over what a folder says of pixels; without the file they are
// ViTImageProcessor's.
func (v *ViT) readPreprocessor(fsys fs.FS) error {
	data, err := ReadFile(fsys, preprocessorFile, maxJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var p struct {
		Normalize *bool     `json:"do_normalize"`
		Mean      []float64 `json:"image_mean"`
		Std       []float64 `json:"image_std"`

		Resample *int            `json:"resample"`
		Crop     bool            `json:"do_center_crop"`
		Rescale  *bool           `json:"do_rescale"`
		Factor   *float64        `json:"rescale_factor"`
		Size     json.RawMessage `json:"size"`
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrConfig, preprocessorFile, err)
	}
	// What would make other numbers of a picture than the model was trained with.
	const bilinear = 2
	switch bad := func(field string, value any, want string) error {
		return fmt.Errorf("%w: %s: %s is %v, want %s", ErrConfig, preprocessorFile, field, value, want)
	}; {
	case p.Resample != nil && *p.Resample != bilinear:
		return bad("resample", *p.Resample, "2, which is bilinear")
	case p.Crop:
		return bad("do_center_crop", true, "false: pictures are scaled as a whole")
	case p.Rescale != nil && !*p.Rescale:
		return bad("do_rescale", false, "true")
	case p.Factor != nil && math.Abs(*p.Factor*255-1) > 1e-6:
		return bad("rescale_factor", *p.Factor, "1/255")
	case len(p.Size) > 0 && !v.sized(p.Size):
		return bad("size", string(p.Size), fmt.Sprintf("image_size, %v", v.ImageSize))
	}
	if p.Normalize != nil && !*p.Normalize {
		v.Mean, v.Std = [3]float64{}, [3]float64{1, 1, 1}
		return nil
	}
	for _, f := range []struct {
		name string
		from []float64
		to   *[3]float64
	}{{"image_mean", p.Mean, &v.Mean}, {"image_std", p.Std, &v.Std}} {
		switch {
		case f.from == nil:
		case len(f.from) == 1:
			*f.to = [3]float64{f.from[0], f.from[0], f.from[0]}
		case len(f.from) == 3 && v.Channels == 3:
			*f.to = [3]float64(f.from)
		default:
			return fmt.Errorf("%w: %s: %s has %d values for %d channels", ErrConfig, preprocessorFile, f.name, len(f.from), v.Channels)
		}
	}
	return nil
}

// sized reports whether a preprocessor's size is the model's: a number, or a height and a
// width.
func (v ViT) sized(size json.RawMessage) bool {
	var side int
	if json.Unmarshal(size, &side) == nil {
		return Square(side) == v.ImageSize
	}
	var both struct{ Height, Width int }
	return json.Unmarshal(size, &both) == nil && Extent(both) == v.ImageSize
}

// vitConfig is config.json under Hugging Face's keys.
func (c Config) vitConfig() map[string]any {
	v := c.ViT
	return map[string]any{
		"model_type": "vit", "hidden_size": c.HiddenSize, "num_hidden_layers": c.NumHiddenLayers,
		"num_attention_heads": c.NumAttentionHeads, "intermediate_size": c.IntermediateSize, "hidden_act": c.HiddenAct,
		"layer_norm_eps": c.LayerNormEps, "image_size": v.ImageSize, "patch_size": v.PatchSize, "num_channels": v.Channels,
		"qkv_bias": !v.NoBias, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
	}
}

// preprocessor is preprocessor_config.json: what ViTImageProcessor does to an image.
func (c Config) preprocessor() map[string]any { return c.ViT.preprocessor() }

func (v ViT) preprocessor() map[string]any {
	return map[string]any{
		"image_processor_type": "ViTImageProcessor", "do_resize": true, "do_rescale": true, "do_normalize": true,
		"rescale_factor": 1.0 / 255, "resample": 2, "size": map[string]int{"height": v.ImageSize.Height, "width": v.ImageSize.Width},
		"image_mean": v.Mean[:v.Channels], "image_std": v.Std[:v.Channels],
	}
}
