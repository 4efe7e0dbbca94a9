package model

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// tinyT5 is a small T5, changed by f.
func tinyT5(f func(*Config)) Config {
	c := Config{ModelType: "t5", VocabSize: 20, HiddenSize: 8, NumHiddenLayers: 2, NumAttentionHeads: 2, IntermediateSize: 12,
		LayerNormEps: 1e-6, HiddenAct: "relu", T5: T5{DecoderLayers: 1, KeySize: 6, Buckets: 8, MaxDistance: 16, End: 1, Scaled: true}}
	if f != nil {
		f(&c)
	}
	return c
}

// The order of the entries is part of the protocol.
func TestT5LayoutHasItsOrder(t *testing.T) {
	c := tinyT5(func(c *Config) { c.NumHiddenLayers, c.T5.Gated = 1, true })
	l, err := NewLayout(c, Method{RMax: 2, Alpha: 2, Targets: "q,EncDecAttention.o,wi_1,wo", Also: "layer.2.layer_norm", Task: TaskAnswer}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range l.Entries() {
		if name, ok := strings.CutSuffix(e.Name, ".lora_A.weight"); ok {
			got = append(got, name)
		}
	}
	want := []string{
		"encoder.block.0.layer.0.SelfAttention.q", "encoder.block.0.layer.1.DenseReluDense.wi_1",
		"encoder.block.0.layer.1.DenseReluDense.wo", "decoder.block.0.layer.0.SelfAttention.q",
		"decoder.block.0.layer.1.EncDecAttention.q", "decoder.block.0.layer.1.EncDecAttention.o",
		"decoder.block.0.layer.2.DenseReluDense.wi_1", "decoder.block.0.layer.2.DenseReluDense.wo",
	}
	if !slices.Equal(got, want) {
		t.Errorf("adapted are %q, want %q", got, want)
	}
	if last := l.Entries()[len(l.Entries())-1]; last.Name != "decoder.block.0.layer.2.layer_norm.weight.delta" {
		t.Errorf("the last entry is %s", last.Name)
	}
	if _, err := NewLayout(c, Method{RMax: 2, Alpha: 2, Task: TaskAnswer}, 3); err == nil || !strings.Contains(err.Error(), "classes") {
		t.Errorf("a T5 with classes: %v", err)
	}
}

func TestT5RefusesByName(t *testing.T) {
	for name, f := range map[string]func(c *Config){
		"num_decoder_layers":              func(c *Config) { c.T5.DecoderLayers = 0 },
		"d_kv":                            func(c *Config) { c.T5.KeySize = 1 << 20 },
		"relative_attention_num_buckets":  func(c *Config) { c.T5.Buckets = 6 },
		"relative_attention_max_distance": func(c *Config) { c.T5.MaxDistance = 4 },
		"eos_token_id":                    func(c *Config) { c.T5.End = 20 },
		"decoder_start_token_id":          func(c *Config) { c.T5.Start = -1 },
		"feed_forward_proj":               func(c *Config) { c.HiddenAct = "mish" },
		"max_2d_position_embeddings":      func(c *Config) { c.T5.Boxes = 1 << 20 },
		"linear_boxes":                    func(c *Config) { c.T5.LinearBoxes = true },
		"with linear_boxes":               func(c *Config) { c.T5.LinearBoxes, c.T5.Boxes = true, 1024 },
		"pooling":                         func(c *Config) { c.Pooling = PoolHF },
		"layer_norm_epsilon":              func(c *Config) { c.LayerNormEps = 0 },
	} {
		if err := tinyT5(f).Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, js := range map[string]string{
		"eos_token_id":      `{"model_type":"t5","eos_token_id":[1,2]}`,
		"feed_forward_proj": `{"model_type":"t5","feed_forward_proj":"gated-mish"}`,
		"d_model":           `{"model_type":"t5","d_model":"wide"}`,
		"quantization":      `{"model_type":"t5","quantization_config":{"quant_method":"gptq"}}`,
	} {
		if _, err := ParseConfig([]byte(js)); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A head that equals the embeddings is tied to them, whatever the configuration says
// of it, and one of its own is not, as transformers decides.
func TestT5HeadIsTiedByWhatTheFolderHolds(t *testing.T) {
	tied := tinyT5(nil)
	fsys, values := huggingFolder(t, tied, map[string]any{"tie_word_embeddings": false, "scale_decoder_outputs": nil})
	if _, err := LoadBase(fsys); err == nil || !strings.Contains(err.Error(), T5Head) {
		t.Errorf("an untied head that is not there: %v", err)
	}
	with := func(head []float32) fstest.MapFS {
		st, err := ParseSafeTensors(fsys[WeightsFile].Data)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Add(T5Head, "F32", []int{20, 8}, head); err != nil {
			t.Fatal(err)
		}
		out := maps.Clone(fsys)
		out[WeightsFile] = encoded(t, st)
		return out
	}
	b, err := LoadBase(with(values[T5Shared]))
	if err != nil || b.Config.T5.OwnHead || b.Config.T5.Scaled {
		t.Errorf("a head that equals the embeddings: %+v, %v", b, err)
	}
	own := slices.Clone(values[T5Shared])
	own[3]++
	b, err = LoadBase(with(own))
	if err != nil || !b.Config.T5.OwnHead || !slices.Equal(tensor(t, b, T5Head), own) {
		t.Errorf("a head of its own: %v", err)
	}
}

func TestT5SharedEmbeddingsUnderTheirOtherNames(t *testing.T) {
	fsys, _ := huggingFolder(t, tinyT5(nil), nil)
	want := blobOf(t, fsys)
	st, err := ParseSafeTensors(fsys[WeightsFile].Data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range st.Tensors {
		if st.Tensors[i].Name == T5Shared {
			st.Tensors[i].Name = "decoder.embed_tokens.weight"
		}
	}
	renamed := maps.Clone(fsys)
	renamed[WeightsFile] = encoded(t, st)
	if blobOf(t, renamed) != want {
		t.Error("embeddings under the decoder's name make another base")
	}
}

// What is written for others is read here again as the same base.
func TestT5FoldersComeBack(t *testing.T) {
	for name, f := range map[string]func(c *Config){
		"tied":     nil,
		"untied":   func(c *Config) { c.T5.OwnHead, c.T5.Scaled = true, false },
		"unscaled": func(c *Config) { c.T5.Scaled = false },
		"gated":    func(c *Config) { c.T5.Gated, c.HiddenAct = true, "gelu_new" },
		"boxes":    func(c *Config) { c.T5.Boxes = 11 },
		"patches":  func(c *Config) { *c = withPatches(nil) },
		"overlap": func(c *Config) {
			*c = withPatches(func(p *Patched) {
				p.Overlap, p.Unplaced, p.First, p.Channels, p.Mean = true, true, true, 1, [3]float64{0.25, 0.25, 0.25}
			})
		},
	} {
		c := tinyT5(f)
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
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := b.WriteDir(dir); err != nil {
			t.Fatal(err)
		}
		back, err := LoadBaseDir(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		x, err := b.Blob()
		if err != nil {
			t.Fatal(err)
		}
		y, err := back.Blob()
		if err != nil || !bytes.Equal(x, y) {
			t.Errorf("%s: came back as another base: %+v", name, back.Config)
		}
	}
}

// A base that writes has no head: what is named beside it is trained alone, and something has to be.
func TestT5TrainsWhatIsNamed(t *testing.T) {
	c := tinyT5(nil)
	l, err := NewLayout(c, Method{RMax: 1, Alpha: 1, Kind: MethodHead, Also: "wi,final_layer_norm", Task: TaskAnswer}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.Entries() {
		if !covers("wi", e.Name[:len(e.Name)-len(DeltaSuffix)]) && !covers("final_layer_norm", e.Name[:len(e.Name)-len(DeltaSuffix)]) {
			t.Errorf("%s is trained", e.Name)
		}
	}
	if _, err := NewLayout(c, Method{RMax: 1, Alpha: 1, Kind: MethodHead, Task: TaskAnswer}, 0); err == nil {
		t.Error("nothing to train, and no error")
	}
}
