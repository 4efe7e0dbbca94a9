package peft

import (
	"testing"
	"testing/fstest"

	"github.com/starling-fl/starling/internal/leaf/untrained"
	"github.com/starling-fl/starling/internal/testkit/allocation"
	"github.com/starling-fl/starling/model"
)

// FuzzAdapterFiles: a PEFT folder, as anybody hands one on.
func FuzzAdapterFiles(f *testing.F) {
	st := &model.SafeTensors{Metadata: map[string]string{"format": "pt"}}
	if err := st.Add("base_model.model.bert.encoder.layer.0.attention.self.query.lora_A.weight", "F32", []int{2, 8}, make([]float32, 16)); err != nil {
		f.Fatal(err)
	}
	weights, err := st.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"peft_type":"LORA","r":2,"lora_alpha":4,"target_modules":["query","value"],"task_type":"SEQ_CLS"}`), weights)
	f.Add([]byte(`{"peft_type":"LORA","r":2147483647,"target_modules":["query"]}`), []byte{})
	f.Add([]byte(`{"peft_type":"LORA","r":2,"lora_alpha":4,"target_modules":".*0.*query","exclude_modules":["x"],"modules_to_save":["pooler"]}`), weights)
	f.Add([]byte(`{"peft_type":"LORA","r":2,"lora_alpha":4,"target_modules":["query"],"layers_to_transform":0,"layers_pattern":["(layer|x)"]}`), weights)
	base := zeroBase(f, bert())
	f.Fuzz(func(t *testing.T, config, weights []byte) {
		files := fstest.MapFS{model.AdapterConfigFile: {Data: config}, model.AdapterFile: {Data: weights}}
		allocation.Bounded(t, len(config)+len(weights), func() {
			_, _ = Load(files, base, model.TaskClassify, 2, nil)
		})
	})
}

// bert is a small BERT of transformers'.
func bert() model.Config {
	c := model.BERT(20, 8, 2, 2, 6)
	c.Pooling, c.TypeVocabSize = model.PoolHF, 2
	return c
}

func zeroBase(t testing.TB, c model.Config) *model.Base {
	t.Helper()
	b, err := model.NewBase(c, untrained.Tensors(c, 1, 0), nil, model.F32)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func encoded(t *testing.T, st *model.SafeTensors) *fstest.MapFile {
	t.Helper()
	data, err := st.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: data}
}
