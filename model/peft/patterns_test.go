package peft

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-fl/starling/model"
)

// peftFolder is an adapter on query and value of a tiny BERT's two layers whose ranks
// are given by module, with matrices of ones.
func peftFolder(t *testing.T, c model.Config, more map[string]any, rank func(module string) (a, b int)) fstest.MapFS {
	t.Helper()
	config := map[string]any{"peft_type": "LORA", "r": 4, "lora_alpha": 6.0, "bias": "none"}
	maps.Copy(config, more)
	st := &model.SafeTensors{}
	ones := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = 1
		}
		return v
	}
	for l := range c.NumHiddenLayers {
		for _, name := range []string{c.Layer(l).Query, c.Layer(l).Value} {
			a, b := rank(name)
			err := errors.Join(st.Add(wrapped+"bert."+name+suffixA, "F32", []int{a, c.HiddenSize}, ones(a*c.HiddenSize)),
				st.Add(wrapped+"bert."+name+suffixB, "F32", []int{c.HiddenSize, b}, ones(c.HiddenSize*b)))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	js, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{model.AdapterConfigFile: {Data: js}, model.AdapterFile: encoded(t, st)}
}

// Modules with ranks and scales of their own become matrices of the highest rank under
// one scale, with the same product: PEFT's rules for names.
func TestPEFTPatterns(t *testing.T) {
	c := bert()
	base := zeroBase(t, c)
	const first = "encoder.layer.0.attention.self.query"
	for name, tc := range map[string]struct {
		more  map[string]any
		ranks map[string]int     // of modules by their end; 4 otherwise
		want  map[string]float64 // an element of scale B A
	}{
		"plain":     {nil, nil, map[string]float64{"": 6}},
		"rsLoRA":    {map[string]any{"use_rslora": true}, nil, map[string]float64{"": 12}},
		"ranks":     {map[string]any{"rank_pattern": map[string]any{first: 2, "value": 5}}, map[string]int{first: 2, "value": 5}, map[string]float64{"": 6}},
		"one scale": {map[string]any{"alpha_pattern": map[string]any{"layer.0.attention.self.query": 9}}, nil, map[string]float64{first: 9, "": 6}},
		"an expression": {map[string]any{"alpha_pattern": map[string]any{`layer\.\d.*value`: 2}}, nil,
			map[string]float64{"value": 2, "": 6}},
		"both": {map[string]any{"use_rslora": true, "rank_pattern": map[string]any{first: 1}, "alpha_pattern": map[string]any{"^bert." + first: 5}},
			map[string]int{first: 1}, map[string]float64{first: 5, "": 12}},
	} {
		rank := func(module string) (int, int) {
			for end, r := range tc.ranks {
				if strings.HasSuffix(module, end) {
					return r, r
				}
			}
			return 4, 4
		}
		a, err := Load(peftFolder(t, c, tc.more, rank), base, model.TaskClassify, 3, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r, low := a.Layout().Method.RMax, map[string][]float32{}
		tensors := a.Tensors()
		for i, e := range a.Layout().Entries() {
			low[e.Name] = tensors[i].Data
		}
		for l := range c.NumHiddenLayers {
			for _, module := range []string{c.Layer(l).Query, c.Layer(l).Value} {
				got := 0.0
				for k := range r {
					got += float64(low[module+suffixB][k]) * float64(low[module+suffixA][k*c.HiddenSize])
				}
				got *= a.Layout().Method.Scale(r)
				want := tc.want[""]
				for end, w := range tc.want {
					if end != "" && strings.HasSuffix(module, end) {
						want = w
					}
				}
				if math.Abs(got-want) > 1e-5 {
					t.Errorf("%s: %s adds %v, want %v", name, module, got, want)
				}
			}
		}
	}
}

func TestPEFTRefusesByName(t *testing.T) {
	c := bert()
	base := zeroBase(t, c)
	equal := func(string) (int, int) { return 4, 4 }
	for want, tc := range map[string]struct {
		more map[string]any
		rank func(string) (int, int)
	}{
		"use_dora":                {map[string]any{"use_dora": true}, equal},
		"bias is":                 {map[string]any{"bias": "lora_only"}, equal},
		"lora_bias":               {map[string]any{"lora_bias": true}, equal},
		"init_lora_weights":       {map[string]any{"init_lora_weights": "pissa_niter_16"}, equal},
		"layer_replication":       {map[string]any{"layer_replication": [][]int{{0, 2}}}, equal},
		"alora_invocation_tokens": {map[string]any{"alora_invocation_tokens": []int{5}}, equal},
		"want a number":           {map[string]any{"alpha_pattern": map[string]any{"query": "9"}}, equal},
		`by "query" and by`:       {map[string]any{"alpha_pattern": map[string]any{"query": 9, "self.query": 8}}, equal},
		"alpha_pattern: error":    {map[string]any{"alpha_pattern": map[string]any{"(": 9}}, equal},
		"a pattern of":            {map[string]any{"alpha_pattern": map[string]any{strings.Repeat("a", 2000): 9}}, equal},
		"r is 4, the matrices":    {nil, func(string) (int, int) { return 3, 3 }},
		"has shape [3 8], want [4": {nil, func(m string) (int, int) {
			if strings.HasSuffix(m, "query") {
				return 3, 3
			}
			return 4, 4
		}},
		"has shape [8 2], want [8": {map[string]any{"rank_pattern": map[string]any{"query": 2}}, func(string) (int, int) { return 3, 2 }},
		"r_max":                    {map[string]any{"rank_pattern": map[string]any{"query": 99}}, func(string) (int, int) { return 99, 99 }},
	} {
		if _, err := Load(peftFolder(t, c, tc.more, tc.rank), base, model.TaskClassify, 3, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
