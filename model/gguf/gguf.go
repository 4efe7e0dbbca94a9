// Package gguf writes models and adapters as llama.cpp and the programs over it read them.
//
//	data, err := gguf.Write(checkpoint, rank, gguf.Q8)
package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/starling-fl/starling/model"
)

// Kinds of files.
const (
	F32     = "f32"     // the whole model, adapter merged, in float32
	F16     = "f16"     // its maps in float16
	Q8      = "q8_0"    // the same in 8 bits and a float16 scale for each 32 values
	Adapter = "adapter" // the LoRA adapter alone, in float32
)

// Kinds are those that Write writes.
func Kinds() []string { return []string{F16, F32, Q8, Adapter} }

// ErrUnsupported is wrapped by every error about a model that is not written.
var ErrUnsupported = errors.New("gguf")

// families are model types by what llama.cpp calls them.
var families = map[string]string{"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}

// general.file_type of llama.cpp.
var fileTypes = map[string]uint32{F32: 0, F16: 1, Q8: 7}

// Write returns the bytes of one file: the model of a checkpoint with the adapter cut to a rank, or the adapter alone.
// Decoders of Llama's family are written whose tokenizer is a BPE over bytes that llama.cpp has a name for.
func Write(ck *model.Checkpoint, rank int, kind string) ([]byte, error) {
	c := ck.Base.Config
	family, known := families[c.ModelType]
	d := c.Decoder
	switch {
	case !known:
		return nil, fmt.Errorf("%w: a %s is not written: only %s", ErrUnsupported, c.ModelType, slices.Sorted(maps.Keys(families)))
	case d.Window > 0:
		return nil, fmt.Errorf("%w: sliding_window is %d: only models whose layers see all earlier tokens are written", ErrUnsupported, d.Window)
	case d.QueryScale != d.HeadSize:
		return nil, fmt.Errorf("%w: query_pre_attn_scalar %d is not head_dim %d", ErrUnsupported, d.QueryScale, d.HeadSize)
	case c.HiddenAct != "silu":
		return nil, fmt.Errorf("%w: hidden_act is %q, and llama.cpp computes silu there", ErrUnsupported, c.HiddenAct)
	case d.OutputBias && family != "llama" || d.ForwardBiases && family != "llama":
		return nil, fmt.Errorf("%w: a %s with biases behind attention or in the feed-forward is not written", ErrUnsupported, c.ModelType)
	}
	f := &file{}
	f.set("general.architecture", family)
	if kind == Adapter {
		if err := f.adapter(ck, rank); err != nil {
			return nil, err
		}
		return f.bytes(), nil
	}
	f.set("general.type", "model")
	f.set("general.name", cmp.Or(ck.Job, "Starling"))
	f.set("general.file_type", fileTypes[kind])
	f.set("general.quantization_version", uint32(2))
	f.parameters(family, c)
	if err := f.tokens(c, ck.Base.Tokenizer); err != nil {
		return nil, err
	}
	values, err := ck.Adapter.Layout().Merge(ck.Base, ck.Adapter.Slice(rank), rank)
	if err != nil {
		return nil, err
	}
	if err := f.weights(ck, values, kind); err != nil {
		return nil, err
	}
	return f.bytes(), nil
}

// parameters are the model's sizes.
func (f *file) parameters(family string, c model.Config) {
	d := c.Decoder
	for _, p := range []struct {
		key   string
		value any
	}{
		{"block_count", uint32(c.NumHiddenLayers)}, {"context_length", uint32(c.MaxPositions)}, {"embedding_length", uint32(c.HiddenSize)},
		{"feed_forward_length", uint32(c.IntermediateSize)}, {"attention.head_count", uint32(c.NumAttentionHeads)},
		{"attention.head_count_kv", uint32(d.KVHeads)}, {"attention.key_length", uint32(d.HeadSize)}, {"attention.value_length", uint32(d.HeadSize)},
		{"attention.layer_norm_rms_epsilon", float32(c.LayerNormEps)}, {"rope.freq_base", float32(d.Rope.Theta)},
		{"rope.dimension_count", uint32(d.HeadSize)}, {"vocab_size", uint32(c.VocabSize)},
	} {
		f.set(family+"."+p.key, p.value)
	}
}

// names are the tensors of a model by what llama.cpp calls them, in order.
func names(c model.Config) (ours, theirs []string) {
	put := func(our, their string) { ours, theirs = append(ours, our), append(theirs, their) }
	put(model.DecoderWords, "token_embd.weight")
	put(model.DecoderNorm, "output_norm.weight")
	put(model.DecoderHead, "output.weight")
	for i := range c.NumHiddenLayers {
		l, p := c.DecoderLayer(i), fmt.Sprintf("blk.%d.", i)
		for _, m := range [][2]string{{l.BeforeAttention, "attn_norm"}, {l.Query, "attn_q"}, {l.Key, "attn_k"}, {l.Value, "attn_v"},
			{l.AttentionOutput, "attn_output"}, {l.QueryNorm, "attn_q_norm"}, {l.KeyNorm, "attn_k_norm"}, {l.BeforeForward, "ffn_norm"},
			{l.Gate, "ffn_gate"}, {l.Up, "ffn_up"}, {l.Down, "ffn_down"}} {
			put(m[0]+".weight", p+m[1]+".weight")
			put(m[0]+".bias", p+m[1]+".bias")
		}
	}
	return ours, theirs
}

// weights writes all tensors, those that the adapter changes with its change.
func (f *file) weights(ck *model.Checkpoint, values map[string][]float32, kind string) error {
	c := ck.Base.Config
	shapes := map[string][]int{}
	for _, t := range c.BaseTensors() {
		shapes[t.Name] = t.Shape
	}
	left := len(shapes)
	ours, theirs := names(c)
	for i, name := range ours {
		shape, ok := shapes[name]
		if !ok {
			continue
		}
		left--
		v, changed := values[name]
		if !changed {
			var err error
			if v, err = ck.Base.Tensor(name); err != nil {
				return err
			}
		}
		delete(values, name)
		if heads := turned(c, name); heads > 0 {
			v = turn(v, heads, shape[0])
		}
		as := uint32(tensorF16)
		switch {
		case len(shape) == 1 || kind == F32:
			as = tensorF32
		case kind == Q8 && shape[1]%block == 0:
			as = tensorQ8
		}
		f.add(theirs[i], shape, v, as)
	}
	for name := range values {
		return fmt.Errorf("%w: the adapter has %s, which llama.cpp's model has not", ErrUnsupported, name)
	}
	if left > 0 {
		return fmt.Errorf("%w: %d tensors of the base have no place in llama.cpp's model", ErrUnsupported, left)
	}
	if c.Decoder.Rope.Factor > 0 {
		v := factors(c.Decoder.Rope, c.Decoder.HeadSize/2)
		f.add("rope_freqs.weight", []int{len(v)}, v, tensorF32)
	}
	return nil
}

// factors are by how much Llama 3's scaling slows each pair's turning down.
func factors(r model.Rope, pairs int) []float32 {
	plain := model.Rope{Theta: r.Theta}.Frequencies(pairs)
	v := make([]float32, pairs)
	for i, f := range r.Frequencies(pairs) {
		v[i] = float32(plain[i] / f)
	}
	return v
}

// turned is how many heads a tensor's rows are of, if llama.cpp has them in another order; 0: it has not. In its llama
// pairs that positions turn are neighbours, in transformers' they are half a head apart.
func turned(c model.Config, name string) int {
	if families[c.ModelType] != "llama" {
		return 0
	}
	for i := range c.NumHiddenLayers {
		switch l := c.DecoderLayer(i); name {
		case l.Query + ".weight", l.Query + ".bias":
			return c.NumAttentionHeads
		case l.Key + ".weight", l.Key + ".bias":
			return c.Decoder.KVHeads
		}
	}
	return 0
}

// turn makes the halves of each head's rows alternate.
func turn(v []float32, heads, rows int) []float32 {
	out := make([]float32, 0, len(v))
	width, half := len(v)/rows, rows/heads/2
	for h := range heads {
		for i := range half {
			for part := range 2 {
				at := (2*h+part)*half + i
				out = append(out, v[at*width:(at+1)*width]...)
			}
		}
	}
	return out
}
