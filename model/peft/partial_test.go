package peft

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-fl/starling/internal/leaf/untrained"
	"github.com/starling-fl/starling/model"
)

// partOf is an adapter of PEFT's over a BERT that changes some modules alone: low-rank
// updates of rank 2 (B A is 2 x 0.5 everywhere) and tensors saved whole.
func partOf(t *testing.T, c model.Config, config map[string]any, low, whole []string) fstest.MapFS {
	t.Helper()
	all := map[string]any{"peft_type": "LORA", "r": 2, "lora_alpha": 6.0, "bias": "none"}
	maps.Copy(all, config)
	st := &model.SafeTensors{}
	add := func(name string, x float32, shape ...int) {
		v := make([]float32, model.Elements(shape))
		for i := range v {
			v[i] = x
		}
		if err := st.Add(wrapped+"bert."+name, "F32", shape, v); err != nil {
			t.Fatal(err)
		}
	}
	shapes := map[string][]int{}
	for _, s := range c.BaseTensors() {
		shapes[s.Name] = s.Shape
	}
	for _, m := range low {
		s := shapes[m+".weight"]
		add(m+suffixA, 1, 2, s[1])
		add(m+suffixB, 0.5, s[0], 2)
	}
	for _, name := range whole {
		add(name, 7, shapes[name]...)
	}
	js, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{model.AdapterConfigFile: {Data: js}, model.AdapterFile: encoded(t, st)}
}

// Adapters on some layers or modules change those and leave the others as they are, and
// come back from an export for PEFT as they are.
func TestPEFTOnSomeModules(t *testing.T) {
	c := bert()
	base, err := model.NewBase(c, untrained.Tensors(c, 2, 1), nil, model.F32)
	if err != nil {
		t.Fatal(err)
	}
	q0, q1 := c.Layer(0).Query, c.Layer(1).Query
	for name, tc := range map[string]struct {
		config     map[string]any
		low, whole []string
		also       string
	}{
		"one layer":          {map[string]any{"target_modules": []string{"query"}, "layers_to_transform": []int{1}}, []string{q1}, nil, ""},
		"one layer, alone":   {map[string]any{"target_modules": []string{"query", "value"}, "layers_to_transform": 0}, []string{q0, c.Layer(0).Value}, nil, ""},
		"by a pattern":       {map[string]any{"target_modules": []string{"query"}, "layers_to_transform": []int{1}, "layers_pattern": "layer"}, []string{q1}, nil, ""},
		"by an expression":   {map[string]any{"target_modules": `.*layer\.\d+\.output\.dense`}, []string{c.Layer(0).Output, c.Layer(1).Output}, nil, ""},
		"Python's alone":     {map[string]any{"target_modules": `.*(?<!attention)\.output\.dense`}, []string{c.Layer(0).Output, c.Layer(1).Output}, nil, ""},
		"excluded":           {map[string]any{"target_modules": []string{"dense"}, "exclude_modules": []string{"intermediate.dense", "pooler.dense", "1.output.dense"}}, []string{c.Layer(0).AttentionOutput, c.Layer(1).AttentionOutput, c.Layer(0).Output}, nil, ""},
		"excluded by one":    {map[string]any{"target_modules": []string{"query"}, "exclude_modules": `.*\.1\..*`}, []string{q0}, nil, ""},
		"the pooler saved":   {map[string]any{"target_modules": []string{"query"}, "modules_to_save": []string{"classifier", "pooler"}}, []string{q0, q1}, []string{"pooler.dense.weight", "pooler.dense.bias"}, "pooler.dense"},
		"the pooler adapted": {map[string]any{"target_modules": []string{"query", "pooler.dense"}}, []string{q0, q1, "pooler.dense"}, nil, "pooler.dense.weight"},
		"norms saved": {map[string]any{"target_modules": []string{"query"}, "modules_to_save": []string{"LayerNorm"}, "layers_to_transform": []int{0}}, []string{q0},
			[]string{"embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias"}, "embeddings.LayerNorm"},
		"no targets said": {nil, []string{q1}, nil, ""},
	} {
		a, err := Load(partOf(t, c, tc.config, tc.low, tc.whole), base, model.TaskClassify, 3, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if a.Layout().Method.Also != tc.also {
			t.Errorf("%s: trains %q whole, want %q", name, a.Layout().Method.Also, tc.also)
		}
		check := func(when string, a *model.Adapter) {
			got, err := a.Layout().Merge(base, a.Slice(2), 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range c.BaseTensors() {
				want, err := base.Tensor(spec.Name)
				if err != nil {
					t.Fatal(err)
				}
				want = slices.Clone(want)
				for i := range want {
					if slices.Contains(tc.whole, spec.Name) {
						want[i] = 7
					}
					if slices.Contains(tc.low, moduleOf(spec.Name)) && strings.HasSuffix(spec.Name, ".weight") {
						want[i] += 3 // 6/2 of 2 x 0.5
					}
				}
				now, changed := got[spec.Name]
				if !changed {
					now, _ = base.Tensor(spec.Name)
				}
				for i := range want {
					if math.Abs(float64(now[i]-want[i])) > 1e-5 {
						t.Fatalf("%s, %s: %s[%d] is %v, want %v", name, when, spec.Name, i, now[i], want[i])
					}
				}
			}
		}
		check("read", a)
		files, err := model.PEFTFiles(a, base, 2)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		fsys := fstest.MapFS{model.AdapterFile: {Data: files[model.AdapterFile]}, model.AdapterConfigFile: {Data: files[model.AdapterConfigFile]}}
		back, err := Load(fsys, base, model.TaskClassify, 3, nil)
		if err != nil {
			t.Errorf("%s, exported: %v", name, err)
			continue
		}
		check("exported and read again", back)
		// Where its update is zero, training can begin: A is not.
		tensors := a.Tensors()
		for i, e := range a.Layout().Entries() {
			if e.Kind == model.KindA && !slices.ContainsFunc(tensors[i].Data, func(x float32) bool { return x != 0 }) {
				t.Errorf("%s: %s is all zeros beside a B of zeros", name, e.Name)
			}
		}
	}
}

// What stays refused says why in its own words.
func TestPEFTRefusesModulesByName(t *testing.T) {
	c := bert()
	base := zeroBase(t, c)
	q0, q1 := c.Layer(0).Query, c.Layer(1).Query
	query := []string{"query"}
	for want, tc := range map[string]struct {
		config map[string]any
		low    []string
	}{
		"has no tensor for encoder.layer.1":          {map[string]any{"target_modules": query}, []string{q0}},
		"which target_modules names":                 {map[string]any{"target_modules": `.*query`}, []string{q1}},
		"leaves out":                                 {map[string]any{"target_modules": query, "layers_to_transform": []int{1}}, []string{q0, q1}},
		"single rows of the embeddings":              {map[string]any{"trainable_token_indices": []int{3}}, []string{q0, q1}},
		"no linear map's weight":                     {map[string]any{"target_parameters": query}, []string{q0, q1}},
		"want one or a list of int":                  {map[string]any{"target_modules": query, "layers_to_transform": "one"}, []string{q0, q1}},
		"want one or a list of string":               {map[string]any{"target_modules": 7}, []string{q0, q1}},
		"target_modules is an expression of 1100":    {map[string]any{"target_modules": strings.Repeat("(a)*b.", 184)[:1100]}, []string{q0, q1}},
		"layers_pattern has 1 patterns, one of 2000": {map[string]any{"target_modules": query, "layers_to_transform": []int{1}, "layers_pattern": strings.Repeat("a", 2000)}, []string{q0, q1}},
		"exclude_modules has 5000 names, limit 4096": {map[string]any{"target_modules": query, "exclude_modules": strings.Split(strings.Repeat("a,", 4999)+"a", ",")}, []string{q0, q1}},
		"only linear maps have low-rank updates":     {map[string]any{"target_modules": []string{"layer.0.attention.self.query", "embeddings.LayerNorm"}}, []string{q0}},
	} {
		fsys := partOf(t, c, tc.config, tc.low, nil)
		if strings.HasPrefix(want, "only linear") {
			st, err := model.ParseSafeTensors(fsys[model.AdapterFile].Data)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []string{suffixA, suffixB} {
				if err := st.Add(wrapped+"bert.embeddings.LayerNorm"+s, "F32", []int{2, 2}, make([]float32, 4)); err != nil {
					t.Fatal(err)
				}
			}
			fsys[model.AdapterFile] = encoded(t, st)
		}
		if _, err := Load(fsys, base, model.TaskClassify, 3, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for want, extra := range map[string]string{
		"table of embeddings":      "bert.embeddings.word_embeddings.lora_embedding_A",
		"update of the head":       "classifier.lora_A.weight",
		"not a linear map of":      "bert.encoder.layer.7.attention.self.query.lora_A.weight",
		"another method":           "bert.encoder.layer.0.attention.self.query.lora_magnitude_vector.weight",
		"not a tensor of the base": "bert.encoder.layer.0.attention.self.rotary",
	} {
		fsys := partOf(t, c, map[string]any{"target_modules": query}, []string{q0, q1}, nil)
		st, err := model.ParseSafeTensors(fsys[model.AdapterFile].Data)
		if err == nil {
			err = st.Add(wrapped+extra, "F32", []int{2, 8}, make([]float32, 16))
		}
		if err != nil {
			t.Fatal(err)
		}
		fsys[model.AdapterFile] = encoded(t, st)
		if _, err := Load(fsys, base, model.TaskClassify, 3, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
