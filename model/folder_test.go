package model

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// huggingFolder is a folder as transformers writes it: a model with a head, its
// encoder under the family's prefix, token types of two.
func huggingFolder(t *testing.T, c Config, more map[string]any) (fstest.MapFS, map[string][]float32) {
	t.Helper()
	st := &SafeTensors{Metadata: map[string]string{"format": "pt"}}
	values := map[string][]float32{}
	for i, s := range c.BaseTensors() {
		v := make([]float32, Elements(s.Shape))
		for j := range v {
			v[j] = float32(i) + float32(j%7)/8
		}
		values[s.Name] = v
		shape, stored := s.Shape, v
		if turned := c.arch().turned; turned != nil && turned(s.Name) { // Conv1D's
			shape, stored = []int{s.Shape[1], s.Shape[0]}, turn(v, s.Shape[0], s.Shape[1])
		}
		if err := st.Add(c.arch().prefix+s.Name, "F32", shape, stored); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []TensorSpec{{"classifier.weight", []int{3, c.HiddenSize}}, {"classifier.bias", []int{3}}} {
		if err := st.Add(s.Name, "F32", s.Shape, make([]float32, Elements(s.Shape))); err != nil {
			t.Fatal(err)
		}
	}
	config := c.huggingFace()
	maps.Copy(config, more)
	js, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := st.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file := func(b []byte) *fstest.MapFile { return &fstest.MapFile{Data: b} }
	return fstest.MapFS{ConfigFile: file(js), WeightsFile: file(weights), TokenizerFile: file([]byte("{}"))}, values
}

func huggingConfig(kind string) Config {
	if kind == "t5" {
		return tinyT5(nil)
	}
	if kind == "vit" {
		return NewViT(8, 2, 4, 2, 3)
	}
	if (Config{ModelType: kind}).Hears() {
		c := NewHubert(4, 8, 2)
		c.ModelType, c.NumAttentionHeads, c.Speech.Groups, c.Speech.Positions = kind, 2, 2, 4
		return c
	}
	if f := architectures[kind].decoder; f != nil {
		return tinyDecoder(kind, f)
	}
	c := BERT(20, 8, 2, 2, 6)
	c.ModelType, c.Pooling = kind, PoolHF
	if architectures[kind].types {
		c.TypeVocabSize = 2
	}
	c.PadTokenID = architectures[kind].pad
	return c
}

func TestLoadBaseTakesHuggingFacesFolders(t *testing.T) {
	for kind := range architectures {
		c := huggingConfig(kind)
		fsys, values := huggingFolder(t, c, nil)
		b, err := LoadBase(fsys)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if b.Config != c {
			t.Errorf("%s: configuration %+v, want %+v", kind, b.Config, c)
		}
		for name, v := range values {
			if !slices.Equal(tensor(t, b, name), v) {
				t.Errorf("%s: %s differs", kind, name)
			}
		}
		blob, err := b.Blob()
		if err != nil {
			t.Fatal(err)
		}
		if p, err := ParseBlob(blob); err != nil || p.Config != c {
			t.Errorf("%s: the blob's configuration is %+v, %v", kind, p.Config, err)
		}
	}
}

// The same weights in shards, under LayerNorm's old names, or beside what the
// encoder does not use, are the same base: its blob is its address.
func TestLoadBaseIsTheSameHoweverTheFolderHoldsIt(t *testing.T) {
	fsys, _ := huggingFolder(t, huggingConfig("bert"), nil)
	want := blobOf(t, fsys)
	whole, err := ParseSafeTensors(fsys[WeightsFile].Data)
	if err != nil {
		t.Fatal(err)
	}

	old := &SafeTensors{}
	for _, x := range whole.Tensors {
		x.Name = strings.NewReplacer("LayerNorm.weight", "LayerNorm.gamma", "LayerNorm.bias", "LayerNorm.beta").Replace(x.Name)
		old.Tensors = append(old.Tensors, x)
	}
	old.Tensors = append(old.Tensors, RawTensor{Name: "bert.embeddings.position_ids", DType: "I64", Shape: []int{1}, Data: make([]byte, 8)})
	renamed := maps.Clone(fsys)
	renamed[WeightsFile] = encoded(t, old)
	if blobOf(t, renamed) != want {
		t.Error("LayerNorm's old names change the base")
	}

	shards := maps.Clone(fsys)
	delete(shards, WeightsFile)
	index := map[string]string{}
	for i, name := range []string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"} {
		part := &SafeTensors{}
		for j, x := range whole.Tensors {
			if j%2 == i {
				part.Tensors = append(part.Tensors, x)
				index[x.Name] = name
			}
		}
		shards[name] = encoded(t, part)
	}
	js, _ := json.Marshal(map[string]any{"weight_map": index})
	shards[IndexFile] = &fstest.MapFile{Data: js}
	if blobOf(t, shards) != want {
		t.Error("shards change the base")
	}
	delete(shards, "model-00002-of-00002.safetensors")
	if _, err := LoadBase(shards); err == nil || !strings.Contains(err.Error(), "model-00002-of-00002") {
		t.Errorf("a missing shard: %v", err)
	}
	shards[IndexFile] = &fstest.MapFile{Data: []byte(`{"weight_map":{"a":"../../etc/x.safetensors"}}`)}
	if _, err := LoadBase(shards); !errors.Is(err, ErrConfig) {
		t.Errorf("a shard outside of the folder: %v", err)
	}
}

func encoded(t *testing.T, st *SafeTensors) *fstest.MapFile {
	t.Helper()
	data, err := st.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: data}
}

func blobOf(t *testing.T, fsys fstest.MapFS) string {
	t.Helper()
	b, err := LoadBase(fsys)
	if err != nil {
		t.Fatal(err)
	}
	blob, err := b.Blob()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(blob))
}

func TestLoadBaseTakesThePoolingFromTheFolder(t *testing.T) {
	for file, want := range map[string]Pooling{
		"": PoolHF,
		`{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": false}`: PoolMean,
		`{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}`:                                   PoolFirst,
		`{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}`:                                    "",
		`{"pooling_mode_max_tokens": true}`:                                                                     "",
	} {
		fsys, _ := huggingFolder(t, huggingConfig("bert"), nil)
		if file != "" {
			fsys[poolingFile] = &fstest.MapFile{Data: []byte(file)}
		}
		b, err := LoadBase(fsys)
		switch {
		case want == "" && !errors.Is(err, ErrConfig):
			t.Errorf("%s: %v", file, err)
		case want != "" && (err != nil || b.Config.Pooling != want):
			t.Errorf("%s: %v", file, err)
		}
	}
	fsys, _ := huggingFolder(t, huggingConfig("bert"), map[string]any{"pooling": "mean"})
	if b, err := LoadBase(fsys); err != nil || b.Config.Pooling != PoolMean {
		t.Errorf("config.json's own pooling: %v", err)
	}
}

func TestLoadBaseRefuses(t *testing.T) {
	drop := func(name string) func(*SafeTensors) {
		return func(st *SafeTensors) {
			st.Tensors = slices.DeleteFunc(st.Tensors, func(x RawTensor) bool { return x.Name == name })
		}
	}
	for name, tc := range map[string]struct {
		config map[string]any
		edit   func(*SafeTensors)
		want   string
	}{
		"no pooler":        {nil, drop("bert.pooler.dense.weight"), `"pooling": "mean"`},
		"no token types":   {nil, drop("bert.embeddings.token_type_embeddings.weight"), "token_type_embeddings"},
		"bad token types":  {map[string]any{"type_vocab_size": 3}, nil, "token_type_embeddings"},
		"no bias":          {nil, drop("bert.encoder.layer.1.output.dense.bias"), "encoder.layer.1.output.dense.bias"},
		"a layer too many": {map[string]any{"num_hidden_layers": 1}, nil, "it has 1 layers, but the checkpoint has another: tensor bert.encoder.layer.1."},
		"activation":       {map[string]any{"hidden_act": "mish"}, nil, "hidden_act"},
		"relative":         {map[string]any{"position_embedding_type": "relative_key"}, nil, "position_embedding_type"},
		"decoder":          {map[string]any{"is_decoder": true}, nil, "is_decoder"},
		"architecture":     {map[string]any{"model_type": "mamba"}, nil, "model_type"},
		"quantized by gpt": {map[string]any{"quantization_config": map[string]any{"quant_method": "gptq"}}, nil, "quantization_config"},
	} {
		fsys, _ := huggingFolder(t, huggingConfig("bert"), tc.config)
		if tc.edit != nil {
			st, err := ParseSafeTensors(fsys[WeightsFile].Data)
			if err != nil {
				t.Fatal(err)
			}
			tc.edit(st)
			fsys[WeightsFile] = encoded(t, st)
		}
		if _, err := LoadBase(fsys); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want it to say %s", name, err, tc.want)
		}
	}
	fsys, _ := huggingFolder(t, huggingConfig("bert"), nil)
	delete(fsys, WeightsFile)
	fsys["pytorch_model.bin"] = &fstest.MapFile{}
	if _, err := LoadBase(fsys); err == nil || !strings.Contains(err.Error(), "save_pretrained") {
		t.Errorf("weights in pickle: %v", err)
	}
}

// Half of a head's module would be filled up with zeros, and compute something else.
func TestLoadHeadRefusesHalf(t *testing.T) {
	c := huggingConfig("bert")
	for _, half := range []string{"classifier.weight", "classifier.bias"} {
		fsys, _ := huggingFolder(t, c, nil)
		st, err := ParseSafeTensors(fsys[WeightsFile].Data)
		if err != nil {
			t.Fatal(err)
		}
		st.Tensors = slices.DeleteFunc(st.Tensors, func(x RawTensor) bool { return x.Name == half })
		fsys[WeightsFile] = encoded(t, st)
		if _, err := LoadHead(fsys, c, TaskClassify); err == nil || !strings.Contains(err.Error(), half) {
			t.Errorf("without %s: %v", half, err)
		}
	}
}
