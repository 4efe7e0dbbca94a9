package model

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
)

// BEiT is how an encoder of images differs from a ViT (Bao et al. 2022; DiT, Li et al. 2022, is one that saw
// documents), as Hugging Face's BeitModel computes it; zero for a ViT.
type BEiT struct {
	NoKeyBias   bool     `json:"no_key_bias,omitempty"`
	NoPositions bool     `json:"no_position_embeddings,omitempty"`
	Relative    Relative `json:"relative_position_bias,omitempty"`
	Scaled      bool     `json:"layer_scale,omitempty"`  // what a layer adds is multiplied, by lambda_1 and lambda_2
	NoNorm      bool     `json:"no_layernorm,omitempty"` // over the last states: a classifier's pooler has one instead
}

// Relative says which attentions add a bias by the distance of patches.
type Relative string

const (
	RelativeNone   Relative = ""
	RelativeEach   Relative = "each"   // each layer's has a table
	RelativeShared Relative = "shared" // all have the same
)

// BEiTShared is the table of all layers.
const BEiTShared = "encoder.relative_position_bias." + distanceTable

const distanceTable = "relative_position_bias_table"

// Distances names a layer's table [ViT.Distances, heads].
func (l Layer) Distances() string {
	return strings.TrimSuffix(l.Query, "query") + "relative_position_bias." + distanceTable
}

// Scale names what multiplies what attention, 1, and feed-forward, 2, add.
func (l Layer) Scale(n int) string {
	return fmt.Sprintf("%slambda_%d", strings.TrimSuffix(l.AttentionNorm, "layernorm_before"), n)
}

// Distances is how many rows a table by distance has: those of patches from each other, and three to, from and
// of the first state.
func (v ViT) Distances() int {
	rows, columns := v.Grid()
	return (2*rows-1)*(2*columns-1) + 3
}

// Visual is a frozen encoder of a page's picture, a BEiT; zero is none. Its keys are BeitConfig's.
type Visual struct {
	HiddenSize        int     `json:"hidden_size"`
	NumHiddenLayers   int     `json:"num_hidden_layers"`
	NumAttentionHeads int     `json:"num_attention_heads"`
	IntermediateSize  int     `json:"intermediate_size"`
	LayerNormEps      float64 `json:"layer_norm_eps"`
	HiddenAct         string  `json:"hidden_act"`
	ViT
}

// On reports whether there is one.
func (v Visual) On() bool { return v != Visual{} }

// Config is the encoder's own.
func (v Visual) Config() Config {
	return Config{ModelType: "vit", HiddenSize: v.HiddenSize, NumHiddenLayers: v.NumHiddenLayers, NumAttentionHeads: v.NumAttentionHeads,
		IntermediateSize: v.IntermediateSize, LayerNormEps: v.LayerNormEps, HiddenAct: v.HiddenAct, Pooling: PoolHF, ViT: v.ViT}
}

// Page says how a page's picture becomes the patches that the base reads, if it reads any.
func (t T5) Page() (v ViT, looks bool) {
	if t.Visual.On() {
		return t.Visual.ViT, true
	}
	return t.Patched.ViT, t.Patched.On()
}

// PageStates is the number of a page's states that the base has in addition to its tokens'.
func (t T5) PageStates() int {
	if t.Visual.On() {
		return 1 + t.Visual.Patches()
	}
	if t.Patched.On() {
		return t.Patched.Patches()
	}
	return 0
}

// Frozen reports whether a tensor is of the page's encoder, which no method trains.
func (c Config) Frozen(tensor string) bool { return strings.HasPrefix(tensor, T5Visual) }

func (v Visual) check() error {
	b, err := v.BEiT, checkViT(v.Config())
	rows, columns := 1, 1
	if err == nil {
		rows, columns = v.Grid()
	}
	switch {
	case err != nil:
	case v.Patches() >= maxPatches:
		err = fmt.Errorf("%w: image_size %v has %d patches, want fewer than %d", ErrConfig, v.ImageSize, v.Patches(), maxPatches)
	case v.NoBias || !b.NoKeyBias:
		err = fmt.Errorf("%w: a beit has biases of queries and values and none of keys", ErrConfig)
	case b.Relative != RelativeNone && b.Relative != RelativeEach && b.Relative != RelativeShared:
		err = fmt.Errorf("%w: relative_position_bias is %.40q, want %q, %q or none", ErrConfig, b.Relative, RelativeEach, RelativeShared)
	case b.Relative != RelativeNone && rows != columns:
		err = fmt.Errorf("%w: relative positions of %d x %d patches: want as many rows as columns", ErrConfig, rows, columns)
	}
	if err != nil {
		return fmt.Errorf("visual_config: %w", err)
	}
	return nil
}

// parseVisual reads a T5's encoder of pages: "visual_config" is a BeitConfig; "visual_module_config" is VT5's own,
// which names a DiT.
func parseVisual(keys map[string]json.RawMessage) (Visual, error) {
	raw := keys["visual_config"]
	theirs := struct {
		Absolute bool    `json:"use_absolute_position_embeddings"`
		Relative bool    `json:"use_relative_position_bias"`
		Shared   bool    `json:"use_shared_relative_position_bias"`
		Mean     bool    `json:"use_mean_pooling"`
		Scale    float64 `json:"layer_scale_init_value"`
		Kind     string  `json:"model_type"`
	}{Mean: true, Scale: 0.1, Kind: "beit"} // BeitConfig's defaults
	bad := func(key string, format string, args ...any) error {
		return fmt.Errorf("%w: config.json: %s: %s", ErrConfig, key, fmt.Sprintf(format, args...))
	}
	if len(raw) == 0 || string(raw) == "null" {
		const key = "visual_module_config"
		if raw = keys[key]; len(raw) == 0 || string(raw) == "null" {
			return Visual{}, nil
		}
		var named struct {
			Model    string
			Weights  string `json:"model_weights"`
			Finetune bool
		}
		switch err := json.Unmarshal(raw, &named); {
		case err != nil:
			return Visual{}, bad(key, "%v", err)
		case !strings.EqualFold(named.Model, "dit") || !strings.Contains(named.Weights, "dit-base"):
			return Visual{}, bad(key, "it names %.80q of a %.40q, want dit and a dit-base: give the encoder's own config.json as visual_config",
				named.Weights, named.Model)
		case named.Finetune:
			return Visual{}, bad(key, "finetune is true, but the encoder of pages stays as it is")
		}
		raw, theirs.Absolute = json.RawMessage("{}"), true
	}
	v := Visual{768, 12, 12, 3072, 1e-12, "gelu", ViT{ImageSize: Square(224), PatchSize: Square(16), Channels: 3,
		Mean: [3]float64{0.5, 0.5, 0.5}, Std: [3]float64{0.5, 0.5, 0.5}}}
	err := json.Unmarshal(raw, &theirs)
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	switch {
	case err != nil:
		return Visual{}, bad("visual_config", "%v", err)
	case theirs.Kind != "beit":
		return Visual{}, bad("visual_config", "model_type is %.40q, want beit", theirs.Kind)
	case theirs.Relative && theirs.Shared:
		return Visual{}, bad("visual_config", "use_relative_position_bias and use_shared_relative_position_bias are both true, want one")
	}
	v.HiddenAct = knownActivation(v.HiddenAct)
	v.BEiT = BEiT{NoKeyBias: true, NoPositions: !theirs.Absolute, Scaled: theirs.Scale > 0, NoNorm: theirs.Mean}
	switch {
	case theirs.Relative:
		v.BEiT.Relative = RelativeEach
	case theirs.Shared:
		v.BEiT.Relative = RelativeShared
	}
	return v, nil
}

// beitConfig is the encoder under Hugging Face's keys.
func (v Visual) beitConfig() map[string]any {
	scale := json.Number("0.0") // BeitConfig takes no 0
	if v.BEiT.Scaled {
		scale = "0.1"
	}
	return map[string]any{
		"model_type": "beit", "hidden_size": v.HiddenSize, "num_hidden_layers": v.NumHiddenLayers, "num_attention_heads": v.NumAttentionHeads,
		"intermediate_size": v.IntermediateSize, "hidden_act": v.HiddenAct, "layer_norm_eps": v.LayerNormEps, "image_size": v.ImageSize,
		"patch_size": v.PatchSize, "num_channels": v.Channels, "use_absolute_position_embeddings": !v.BEiT.NoPositions,
		"use_relative_position_bias": v.BEiT.Relative == RelativeEach, "use_shared_relative_position_bias": v.BEiT.Relative == RelativeShared,
		"layer_scale_init_value": scale, "use_mean_pooling": v.BEiT.NoNorm, "drop_path_rate": 0.0,
		"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
	}
}

// readPagePreprocessor takes over what a folder says of a page's pixels.
func (c *Config) readPagePreprocessor(fsys fs.FS) error {
	v := &c.T5.Visual.ViT
	if c.T5.Patched.On() {
		v = &c.T5.Patched.ViT
	}
	if err := v.readPreprocessor(fsys); err != nil {
		return err
	}
	return c.Validate()
}
