package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/quant/nf4"
)

func tinyConfig() Config { return BERT(20, 8, 2, 2, 6) }

func tinyLayout(t testing.TB) *Layout {
	t.Helper()
	l, err := NewLayout(tinyConfig(), Method{RMax: 4, Alpha: 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func tinyTensors() []Tensor {
	var ts []Tensor
	state := uint64(1)
	for _, s := range tinyConfig().BaseTensors() {
		d := make([]float32, Elements(s.Shape))
		for i := range d {
			d[i] = float32(int64(splitMix64(&state)>>40)-1<<23) / (1 << 23)
		}
		ts = append(ts, Tensor{s.Name, s.Shape, d})
	}
	return ts
}

func TestLayoutSpansTileTheVector(t *testing.T) {
	l := tinyLayout(t)
	for b := 0; b <= 4; b++ {
		at := 0
		for _, s := range l.Spans(b) {
			if s.Offset != at || s.Len != Elements(s.Shape) {
				t.Fatalf("rank %d: %s at %d, want %d", b, s.Name, s.Offset, at)
			}
			at += s.Len
		}
		// 2 layers x (query, value) x (A and B of 8 columns) and a head of 3x8+3.
		if want := 2*2*2*8*b + 3*8 + 3; at != want || l.Size(b) != want {
			t.Errorf("rank %d: size %d, spans end at %d, want %d", b, l.Size(b), at, want)
		}
	}
}

func TestSliceTouchesOnlyItsRank(t *testing.T) {
	l := tinyLayout(t)
	for b := 0; b <= 4; b++ {
		a := NewAdapter(l, 7)
		before := a.Clone()
		v := a.Slice(b)
		for i := range v {
			v[i] += 1
		}
		if err := a.SetSlice(b, v); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.Slice(b), v) {
			t.Fatalf("rank %d: the slice does not come back", b)
		}
		for i, e := range l.Entries() {
			for j := range a.tensors[i] {
				inside := true
				switch e.Kind {
				case KindA:
					inside = j/e.Shape[1] < b
				case KindB:
					inside = j%e.Shape[1] < b
				}
				if changed := a.tensors[i][j] != before.tensors[i][j]; changed != inside {
					t.Fatalf("rank %d: %s[%d]: changed %v, within the slice %v", b, e.Name, j, changed, inside)
				}
			}
		}
	}
}

func TestSetSliceRefuses(t *testing.T) {
	l := tinyLayout(t)
	a := NewAdapter(l, 1)
	v := a.Slice(3)
	for i := range v {
		v[i] += 0.5 * float32(i)
	}
	if err := a.SetSlice(3, v); err != nil || !slices.Equal(a.Slice(3), v) {
		t.Fatalf("what was set is not what is there: %v", err)
	}
	if err := a.SetSlice(3, v[1:]); err == nil {
		t.Error("a vector of the wrong length was accepted")
	}
	if err := a.SetSlice(5, v); err == nil {
		t.Error("a rank above r_max was accepted")
	}
}

func TestNewAdapter(t *testing.T) {
	l := tinyLayout(t)
	a := NewAdapter(l, 3)
	if !slices.Equal(a.Slice(4), NewAdapter(l, 3).Slice(4)) || slices.Equal(a.Slice(4), NewAdapter(l, 4).Slice(4)) {
		t.Error("the adapter does not follow from its seed")
	}
	bound := float32(1 / math.Sqrt(8))
	for i, e := range l.Entries() {
		low, high := float32(0), float32(0)
		for _, x := range a.tensors[i] {
			low, high = min(low, x), max(high, x)
		}
		if e.Kind != KindA && (low != 0 || high != 0) {
			t.Errorf("%s is not zero", e.Name)
		}
		if e.Kind == KindA && (low < -bound || high > bound || low > -bound/2 || high < bound/2) {
			t.Errorf("%s spans %v..%v, want most of +-%v", e.Name, low, high, bound)
		}
	}
}

func TestLayoutRefuses(t *testing.T) {
	for name, f := range map[string]func(c *Config, l *Method, classes *int){
		"hidden_size":           func(c *Config, _ *Method, _ *int) { c.HiddenSize = 0 },
		"num_attention_heads":   func(c *Config, _ *Method, _ *int) { c.NumAttentionHeads = 3 },
		"vocab_size":            func(c *Config, _ *Method, _ *int) { c.VocabSize = 1 << 30 },
		"r_max":                 func(_ *Config, l *Method, _ *int) { l.RMax = 9 },
		"alpha":                 func(_ *Config, l *Method, _ *int) { l.Alpha = math.NaN() },
		"classes":               func(_ *Config, _ *Method, n *int) { *n = 1 },
		"pad_token_id":          func(c *Config, _ *Method, _ *int) { c.PadTokenID = 20 },
		"layer_norm_eps":        func(c *Config, _ *Method, _ *int) { c.LayerNormEps = 0 },
		"hidden_act":            func(c *Config, _ *Method, _ *int) { c.HiddenAct = "mish" },
		"model_type":            func(c *Config, _ *Method, _ *int) { c.ModelType = "mamba" },
		"pooling":               func(c *Config, _ *Method, _ *int) { c.Pooling = "max" },
		"max_position_embeddin": func(c *Config, _ *Method, _ *int) { c.MaxPositions = -1 },
	} {
		c, l, n := tinyConfig(), Method{RMax: 4, Alpha: 2}, 3
		f(&c, &l, &n)
		if _, err := NewLayout(c, l, n); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestBaseRoundTrips(t *testing.T) {
	for _, format := range []Format{F32, BF16, NF4} {
		b, err := NewBase(tinyConfig(), tinyTensors(), []byte(`{"version":"1.0"}`), format)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := b.WriteDir(dir); err != nil {
			t.Fatal(err)
		}
		d, err := LoadBaseDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		blob, err := b.Blob()
		if err != nil {
			t.Fatal(err)
		}
		again, err := d.Blob()
		if err != nil || !bytes.Equal(blob, again) {
			t.Errorf("%s: the folder's blob differs (%v)", format, err)
		}
		p, err := ParseBlob(blob)
		if err != nil {
			t.Fatal(err)
		}
		o, err := OpenBlob(bytes.NewReader(blob), int64(len(blob)))
		if err != nil || o.Tensors != nil {
			t.Fatalf("%s: opened with %d decoded tensors, %v", format, len(o.Tensors), err)
		}
		worst := 0.0
		for i, src := range tinyTensors() {
			if !slices.Equal(b.Tensors[i].Data, p.Tensors[i].Data) || !slices.Equal(b.Tensors[i].Data, tensor(t, d, src.Name)) {
				t.Errorf("%s: %s differs between memory, folder and blob", format, src.Name)
			}
			if !slices.Equal(tensor(t, o, src.Name), b.Tensors[i].Data) || o.Len(src.Name) != len(src.Data) {
				t.Errorf("%s: %s differs when decoded on demand", format, src.Name)
			}
			codes, absmax, ok, err := o.StoredNF4(src.Name)
			if want := format == NF4 && len(src.Shape) == 2 && !strings.HasPrefix(src.Name, "pooler."); ok != want || err != nil {
				t.Errorf("%s: %s is stored in NF4: %v, want %v (%v)", format, src.Name, ok, want, err)
			}
			for j, x := range b.Tensors[i].Data {
				if ok && nf4.Levels[codes[j/2]>>(4*(1-j%2))&15]*absmax[j/64] != x {
					t.Fatalf("%s: value %d differs from its code", src.Name, j)
				}
			}
			for j, x := range src.Data {
				worst = max(worst, math.Abs(float64(x-b.Tensors[i].Data[j])))
			}
		}
		// The widest gap of NF4's levels is 0.304, a bf16 has 8 bits.
		if limit := map[Format]float64{F32: 0, BF16: 1.0 / 256, NF4: 0.1521}[format]; worst > limit {
			t.Errorf("%s: error %v, limit %v", format, worst, limit)
		}
		if string(p.Tokenizer) != `{"version":"1.0"}` {
			t.Errorf("%s: tokenizer came back as %q", format, p.Tokenizer)
		}
	}
}

func TestBaseRefusesWithTheTensorsName(t *testing.T) {
	const victim = "encoder.layer.1.output.dense.weight"
	for name, f := range map[string]func([]Tensor) []Tensor{
		"missing": func(ts []Tensor) []Tensor {
			return slices.DeleteFunc(ts, func(x Tensor) bool { return x.Name == victim })
		},
		"shape": func(ts []Tensor) []Tensor {
			for i := range ts {
				if ts[i].Name == victim {
					ts[i].Shape = []int{ts[i].Shape[1], ts[i].Shape[0]}
				}
			}
			return ts
		},
	} {
		_, err := NewBase(tinyConfig(), f(tinyTensors()), nil, F32)
		var shape *ShapeError
		if !errors.As(err, &shape) || shape.Tensor != victim {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// The same through a folder whose config.json says otherwise.
	b, err := NewBase(tinyConfig(), tinyTensors(), nil, F32)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := b.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	c := tinyConfig()
	c.IntermediateSize, c.TypeVocabSize = 16, 1
	js, _ := json.Marshal(c)
	if err := os.WriteFile(filepath.Join(dir, ConfigFile), js, 0o644); err != nil {
		t.Fatal(err)
	}
	var shape *ShapeError
	if _, err := LoadBaseDir(dir); !errors.As(err, &shape) || shape.Tensor != "encoder.layer.0.intermediate.dense.weight" {
		t.Errorf("got %v", err)
	}
	ts := tinyTensors()
	ts[3].Data[0] = float32(math.NaN())
	if _, err := NewBase(tinyConfig(), ts, nil, F32); err == nil || !strings.Contains(err.Error(), ts[3].Name) {
		t.Errorf("a NaN: got %v", err)
	}
}

func tensor(t *testing.T, b *Base, name string) []float32 {
	t.Helper()
	v, err := b.Tensor(name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestNothingVanishes: a base with a segment embedding that cannot be read is
// refused, not loaded as another model, and a tensor that cannot be decoded is an
// error, not an empty tensor.
func TestNothingVanishes(t *testing.T) {
	stored := func(shape []int, data []float32) *SafeTensors {
		st := &SafeTensors{}
		for _, x := range tinyTensors() {
			if err := st.Add(x.Name, "F32", x.Shape, x.Data); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Add("embeddings.token_type_embeddings.weight", "F32", shape, data); err != nil {
			t.Fatal(err)
		}
		return st
	}
	nan := make([]float32, 16)
	nan[3] = float32(math.NaN())
	for what, st := range map[string]*SafeTensors{
		"too narrow": stored([]int{2, 7}, make([]float32, 14)), "no matrix": stored([]int{16}, make([]float32, 16)),
		"no segments": stored([]int{0, 8}, nil), "not finite": stored([]int{2, 8}, nan),
	} {
		c := tinyConfig()
		_, without := openBase(c, st, nil)
		c.TypeVocabSize = 2
		_, opened := openBase(c, st, nil)
		_, loaded := newBase(c, st, nil)
		for _, err := range []error{without, opened, loaded} {
			if err == nil || !strings.Contains(err.Error(), "token_type_embeddings") {
				t.Errorf("segment embeddings, %s: %v", what, err)
			}
		}
	}

	c := tinyConfig()
	c.TypeVocabSize = 2
	b, err := openBase(c, stored([]int{2, 8}, make([]float32, 16)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Tensor("no such tensor"); !errors.Is(err, ErrNoTensor) {
		t.Errorf("no such tensor: %v", err)
	}
	for i := range b.stored.Tensors { // damaged after it was checked
		b.stored.Tensors[i].DType = "U8"
	}
	for _, spec := range b.Config.BaseTensors() {
		if v, err := b.Tensor(spec.Name); err == nil {
			t.Errorf("%s decodes to %d values after its type was lost", spec.Name, len(v))
		}
	}
}

// zeroBase is a base of zeros.
func zeroBase(t testing.TB, c Config) *Base {
	t.Helper()
	var all []Tensor
	for _, s := range c.BaseTensors() {
		all = append(all, Tensor{s.Name, s.Shape, make([]float32, Elements(s.Shape))})
	}
	b, err := NewBase(c, all, nil, F32)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
