package gguf

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/model"
)

// checkpoint is a base with an adapter that says something.
func checkpoint(t *testing.T, base *model.Base, method model.Method) *model.Checkpoint {
	t.Helper()
	method.Alpha, method.Task = 16, model.TaskCausal
	l, err := model.NewLayout(base.Config, method, 0)
	if err != nil {
		t.Fatal(err)
	}
	a := model.NewAdapter(l, 1)
	v := a.Slice(method.RMax)
	for i := range v {
		v[i] = float32((i*37)%101-50) / 5000
	}
	if err := a.SetSlice(method.RMax, v); err != nil {
		t.Fatal(err)
	}
	return &model.Checkpoint{CheckpointInfo: model.CheckpointInfo{Job: "try", Version: 1, Seq: 64, Method: method}, Base: base, Adapter: a}
}

// A base of a folder goes to STARLING_GGUF, merged, in all kinds of GGUF and as PEFT's, for the readers of others:
// lab/bench/interop/gguf_check.py reads them.
func TestWritesForOthers(t *testing.T) {
	base, out := os.Getenv("STARLING_GGUF_BASE"), os.Getenv("STARLING_GGUF")
	if base == "" || out == "" {
		t.Skip("STARLING_GGUF_BASE and STARLING_GGUF name no folders")
	}
	b, err := model.LoadBaseDir(base)
	if err != nil {
		t.Fatal(err)
	}
	ck := checkpoint(t, b, model.Method{RMax: 4, Targets: "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"})
	for _, kind := range Kinds() {
		data, err := Write(ck, 4, kind)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(out, kind+".gguf"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, format := range []string{"merged", model.ExportPEFT} {
		folders, err := ck.Export(4, format, false)
		if err != nil {
			t.Fatal(err)
		}
		for sub, files := range folders {
			if err := model.WriteFiles(filepath.Join(out, format, sub), files); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// bytePair is a tokenizer.json of bytes, as SmolLM's splits.
func bytePair(vocab int) []byte {
	pieces := map[string]int{}
	for i := range vocab - 1 {
		pieces[fmt.Sprintf("%c", 'a'+i)] = i
	}
	model := map[string]any{"type": "BPE", "vocab": pieces, "merges": [][2]string{}}
	data, err := json.Marshal(map[string]any{"model": model, "added_tokens": []any{map[string]any{"id": vocab - 1, "content": "<end>", "special": true}},
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{map[string]any{"type": "Digits", "individual_digits": true},
			map[string]any{"type": "ByteLevel", "add_prefix_space": false}}}})
	if err != nil {
		panic(err)
	}
	return data
}

// tiny is a small Llama of zeros, edited.
func tiny(t *testing.T, edit func(c *model.Config)) *model.Base {
	t.Helper()
	c := model.Llama(20, 64, 2, 4, 32)
	if edit != nil {
		edit(&c)
	}
	var zeros []model.Tensor
	for _, spec := range c.BaseTensors() {
		zeros = append(zeros, model.Tensor{Name: spec.Name, Shape: spec.Shape, Data: make([]float32, model.Elements(spec.Shape))})
	}
	b, err := model.NewBase(c, zeros, bytePair(c.VocabSize), model.F32)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What llama.cpp would compute otherwise, or not at all, is refused by name.
func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		edit func(*model.Config)
		file [2]string // in the tokenizer, and in its place
		also string
		as   string
		want string
	}{
		{edit: func(c *model.Config) { c.ModelType, c.Decoder.Window = "mistral", 8 }, want: "sliding_window"},
		{edit: func(c *model.Config) { c.HiddenAct = "gelu" }, want: `hidden_act is "gelu"`},
		{file: [2]string{"Digits", "Split"}, as: Q8, want: "llama.cpp has no name for how"},
		{file: [2]string{`"type":"BPE"`, `"type":"Unigram"`}, want: "the tokenizer is a Unigram"},
		{file: [2]string{`"added_tokens"`, `"normalizer":{"type":"NFKC"},"added_tokens"`}, want: "normalizer is NFKC"},
		{also: "norm", as: Adapter, want: "whole, which a LoRA adapter does not hold"},
	} {
		b := tiny(t, c.edit)
		b.Tokenizer = bytes.ReplaceAll(b.Tokenizer, []byte(c.file[0]), []byte(c.file[1]))
		if c.file[0] == "" {
			b.Tokenizer = bytePair(b.Config.VocabSize)
		}
		_, err := Write(checkpoint(t, b, model.Method{RMax: 2, Also: c.also}), 2, cmp.Or(c.as, F16))
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	for _, kind := range []string{"gpt2", "gemma3_text", "bert"} {
		_, err := Write(&model.Checkpoint{Base: &model.Base{Config: model.Config{ModelType: kind}}}, 1, F16)
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "a "+kind+" is not written: only [llama mistral qwen2 qwen3]") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := Write(checkpoint(t, tiny(t, nil), model.Method{RMax: 2}), 0, Adapter); !errors.Is(err, ErrUnsupported) {
		t.Errorf("an adapter of rank 0: %v", err)
	}
}

// Values are rounded as gguf-py 0.19 does it (gguf.quants.quantize).
func TestBlocks(t *testing.T) {
	v := make([]float32, block)
	for i := range v {
		v[i] = float32((i*37)%101-50) / 64
	}
	want := []byte{0x4d, 0x1e}
	for i := range v {
		want = append(want, byte(int8(quantized[i])))
	}
	if got := appendBlock(nil, v); !bytes.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := appendBlock(nil, make([]float32, block)); !bytes.Equal(got, make([]byte, 2+block)) {
		t.Errorf("zeros are %v", got)
	}
}

// quantized are the numbers of TestBlocks.
var quantized = []int{-127, -33, 61, -102, -8, 86, -76, 18, 112, -51, 43, -119, -25, 69, -94, 0, 94, -69, 25, 119, -43, 51, -112, -18, 76, -86, 8, 102, -61, 33, 127, -36}
