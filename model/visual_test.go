package model

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// withPage is a small T5 with boxes and an encoder of pages, changed by f.
func withPage(f func(*Visual)) Config {
	return tinyT5(func(c *Config) {
		c.T5.Boxes = 11
		c.T5.Visual = Visual{8, 1, 2, 12, 1e-12, "gelu", ViT{ImageSize: Square(8), PatchSize: Square(4), Channels: 3,
			Mean: [3]float64{0.5, 0.5, 0.5}, Std: [3]float64{0.5, 0.5, 0.5}, BEiT: BEiT{NoKeyBias: true, Scaled: true, NoNorm: true}}}
		if f != nil {
			f(&c.T5.Visual)
		}
	})
}

// withPatches is a small T5 with linear boxes that reads a page's patches themselves, changed by f.
func withPatches(f func(*Patched)) Config {
	return tinyT5(func(c *Config) {
		c.T5.Boxes, c.T5.LinearBoxes = 11, true
		c.T5.Patched = Patched{ViT: withPage(nil).T5.Visual.ViT}
		c.T5.Patched.BEiT = BEiT{}
		if f != nil {
			f(&c.T5.Patched)
		}
	})
}

// The published VT5 says of its encoder only which it is: DiT-base, a BEiT of 85,806,336 values without its pooler. What is
// trained of it beside LoRA, and of the whole model, leaves the encoder out.
func TestPublishedVT5(t *testing.T) {
	c, err := ParseConfig([]byte(`{"model_type":"t5","d_model":768,"d_ff":3072,"num_layers":12,"num_heads":12,"max_2d_position_embeddings":1024,
		"layer_norm_eps":1e-12,"visual_module_config":{"finetune":false,"model":"dit","model_weights":"microsoft/dit-base-finetuned-rvlcdip"}}`))
	if err != nil {
		t.Fatal(err)
	}
	page, all := 0, 0
	for _, s := range c.BaseTensors() {
		if all += Elements(s.Shape); c.Frozen(s.Name) {
			page += Elements(s.Shape)
		}
	}
	const t5, spatial, matcher = 222_903_552, 2*1024*768 + 2*768 + 768*768 + 768, 768*768 + 768
	if page != 85_806_336 || all != page+t5+spatial+matcher {
		t.Errorf("the page's encoder has %d values of %d", page, all)
	}
	if states := c.T5.PageStates(); states != 197 {
		t.Errorf("%d states behind the tokens, want 196+1", states)
	}
	l, err := NewLayout(c, Method{RMax: 1, Alpha: 1, Kind: MethodFull, Task: TaskAnswer}, 0)
	if err != nil || l.Size(0) != all-page {
		t.Errorf("full trains %d values, want %d, %v", l.Size(0), all-page, err)
	}
	also := "x_position_embeddings,y_position_embeddings,spatial_embedding.LayerNorm,spatial_emb_matcher,visual_emb_matcher"
	if l, err = NewLayout(c, Method{RMax: 6, Alpha: 16, Also: also, Task: TaskAnswer}, 0); err != nil || l.Size(6) != 3_419_136 {
		t.Errorf("LoRA and the two embeddings have %d values, want 3,419,136, %v", l.Size(6), err)
	}
	lora := 0
	for _, e := range l.Entries() {
		if e.Kind == KindA {
			lora++
		}
	}
	if lora != 72 {
		t.Errorf("%d linear maps are adapted, want q and v of 36 attentions", lora)
	}
	for _, name := range []string{"image_model", "query", "layernorm_before", "cls_token"} {
		if _, err := NewLayout(c, Method{RMax: 1, Alpha: 1, Also: name, Task: TaskAnswer}, 0); !errors.Is(err, ErrConfig) {
			t.Errorf("also %s: %v", name, err)
		}
	}
}

func TestVisualRefusesByName(t *testing.T) {
	for name, f := range map[string]func(*Visual){
		"image_size":             func(v *Visual) { v.ImageSize = Square(9) },
		"patch_size":             func(v *Visual) { v.PatchSize = Square(0) },
		"hidden_size":            func(v *Visual) { v.HiddenSize = 1 << 20 },
		"num_hidden_layers":      func(v *Visual) { v.NumHiddenLayers = 0 },
		"num_attention_heads":    func(v *Visual) { v.NumAttentionHeads = 3 },
		"biases":                 func(v *Visual) { v.NoBias = true },
		"relative_position_bias": func(v *Visual) { v.BEiT.Relative = "some" },
		"as many rows":           func(v *Visual) { v.BEiT.Relative, v.ImageSize = RelativeEach, Extent{8, 4} },
		"patches":                func(v *Visual) { v.ImageSize, v.PatchSize = Square(64), Square(1) },
		"hidden_act":             func(v *Visual) { v.HiddenAct = "mish" },
		"image_std":              func(v *Visual) { v.Std[1] = 0 },
	} {
		if err := withPage(f).Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "visual_config") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, f := range map[string]func(*Config){
		"both visual_config and": func(c *Config) { c.T5.Visual = withPage(nil).T5.Visual },
		"image_size":             func(c *Config) { c.T5.Patched.ImageSize = Square(9) },
		"patch_size":             func(c *Config) { c.T5.Patched.PatchSize = Square(0) },
		"patches":                func(c *Config) { c.T5.Patched.ImageSize, c.T5.Patched.PatchSize = Square(64), Square(1) },
		"num_channels":           func(c *Config) { c.T5.Patched.Channels = 2 },
		"image_std":              func(c *Config) { c.T5.Patched.Std[1] = 0 },
		"without attention":      func(c *Config) { c.T5.Patched.BEiT.Scaled = true },
		"at most 1001 with":      func(c *Config) { c.T5.Boxes = 1024 },
		"boxes say which patch":  func(c *Config) { c.T5.Boxes, c.T5.LinearBoxes = 0, false },
	} {
		c := withPatches(nil)
		f(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "patch_config") {
			t.Errorf("%s: %v", name, err)
		}
	}
	vit := NewViT(8, 1, 8, 4, 3)
	vit.ViT.BEiT.Scaled = true
	if err := vit.Validate(); !errors.Is(err, ErrConfig) {
		t.Errorf("a vit with a beit's scales: %v", err)
	}
	for name, js := range map[string]string{
		"model_type":           `{"model_type":"t5","visual_config":{"model_type":"swin"}}`,
		"visual_config":        `{"model_type":"t5","visual_config":{"hidden_size":"wide"}}`,
		"patch_config":         `{"model_type":"t5","patch_config":{"image_size":"wide"}}`,
		"both true":            `{"model_type":"t5","visual_config":{"use_relative_position_bias":true,"use_shared_relative_position_bias":true}}`,
		"visual_module_config": `{"model_type":"t5","visual_module_config":7}`,
		"dit-base":             `{"model_type":"t5","visual_module_config":{"model":"dit","model_weights":"microsoft/dit-large"}}`,
		"finetune":             `{"model_type":"t5","visual_module_config":{"model":"dit","model_weights":"microsoft/dit-base","finetune":true}}`,
	} {
		if _, err := ParseConfig([]byte(js)); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is written for others is read here again as the same base, with what its preprocessor does; an encoder with more
// layers than its configuration is refused.
func TestVT5FoldersComeBack(t *testing.T) {
	for name, f := range map[string]func(*Visual){
		"dit": nil,
		"each": func(v *Visual) {
			v.BEiT = BEiT{NoKeyBias: true, NoPositions: true, Relative: RelativeEach}
			v.Mean[1] = 0.25
		},
		"shared": func(v *Visual) { v.BEiT.Relative = RelativeShared; v.NumHiddenLayers = 2 },
	} {
		c := withPage(f)
		state := uint64(5)
		var ts []Tensor
		for _, s := range c.BaseTensors() {
			d := make([]float32, Elements(s.Shape))
			for i := range d {
				d[i] = float32(int64(splitMix64(&state)>>40)-1<<23) / (1 << 23)
			}
			ts = append(ts, Tensor{s.Name, s.Shape, d})
		}
		b, err := NewBase(c, ts, []byte("{}"), NF4)
		if err != nil {
			t.Fatal(name, err)
		}
		dir := t.TempDir()
		if err := b.WriteDir(dir); err != nil {
			t.Fatal(name, err)
		}
		back, err := LoadBaseDir(dir)
		if err != nil {
			t.Fatal(name, err)
		}
		x, err := b.Blob()
		if err != nil {
			t.Fatal(err)
		}
		if y, err := back.Blob(); err != nil || !bytes.Equal(x, y) {
			t.Errorf("%s: came back as another base: %+v", name, back.Config)
		}
		if c.T5.Visual.NumHiddenLayers--; c.T5.Visual.NumHiddenLayers > 0 {
			if _, err := canonical(c, []*SafeTensors{b.stored}, true); err == nil || !strings.Contains(err.Error(), "page's encoder") {
				t.Errorf("%s: an encoder with another layer: %v", name, err)
			}
		}
	}
}
