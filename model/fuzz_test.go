package model

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/starling-fl/starling/internal/testkit/allocation"
)

// FuzzOpenBlob: a base as a device fetches it, read whole and in place.
func FuzzOpenBlob(f *testing.F) {
	base, err := NewBase(tinyConfig(), tinyTensors(), []byte(`{"type":"wordpiece"}`), NF4)
	if err != nil {
		f.Fatal(err)
	}
	good, err := base.Blob()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(file(`{"__metadata__":{"config.json":"{}"}}`, 0))
	f.Fuzz(func(t *testing.T, blob []byte) {
		var b, opened *Base
		var err, openErr error
		allocation.Bounded(t, len(blob), func() { b, err = ParseBlob(blob) })
		allocation.Bounded(t, len(blob), func() { opened, openErr = OpenBlob(bytes.NewReader(blob), int64(len(blob))) })
		if (err == nil) != (openErr == nil) {
			t.Fatalf("whole: %v; in place: %v", err, openErr)
		}
		if err != nil {
			return
		}
		again, err := opened.Blob()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := ParseBlob(again); err != nil || b.Config != opened.Config {
			t.Errorf("read again: %v; %+v and %+v", err, b.Config, opened.Config)
		}
	})
}

// FuzzParseConfig: a config.json that is accepted is one that can be written.
func FuzzParseConfig(f *testing.F) {
	for _, text := range []string{
		`{"model_type":"bert","vocab_size":20,"hidden_size":8,"num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":16,"max_position_embeddings":6}`,
		`{"model_type":"distilbert","dim":8,"n_layers":1,"n_heads":2,"hidden_dim":16,"vocab_size":9,"max_position_embeddings":4}`,
		`{"model_type":"t5","d_model":8,"d_kv":4,"d_ff":16,"num_layers":1,"num_heads":2,"vocab_size":9}`,
		`{"model_type":"t5","d_model":8,"d_kv":4,"d_ff":16,"num_layers":1,"num_heads":2,"vocab_size":9,"visual_config":{"image_size":32,"use_relative_position_bias":true}}`,
		`{"model_type":"t5","d_model":8,"d_kv":4,"d_ff":16,"num_layers":1,"num_heads":2,"vocab_size":9,"max_2d_position_embeddings":9,"linear_boxes":true,"patch_config":{"image_size":32,"overlap":true}}`,
		`{"model_type":"vit","hidden_size":8,"image_size":32,"patch_size":16,"num_channels":3,"num_hidden_layers":1,"num_attention_heads":2,"intermediate_size":8}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Config
		var err error
		allocation.Bounded(t, len(data), func() { c, err = ParseConfig(data) })
		if err != nil {
			return
		}
		if err := c.Validate(); err != nil {
			t.Errorf("accepted, and not valid: %v", err)
		}
		if _, err := json.Marshal(c); err != nil {
			t.Errorf("accepted, and cannot be written: %v", err)
		}
	})
}

// FuzzHead: the head in a base's folder, as anybody hands one on.
func FuzzHead(f *testing.F) {
	st := &SafeTensors{}
	if err := st.Add("classifier.weight", "F32", []int{3, 8}, make([]float32, 24)); err != nil {
		f.Fatal(err)
	}
	weights, err := st.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"problem_type":"regression"}`), weights)
	f.Add([]byte(`{}`), weights)
	f.Fuzz(func(t *testing.T, config, weights []byte) {
		files := fstest.MapFS{ConfigFile: {Data: config}, WeightsFile: {Data: weights}}
		allocation.Bounded(t, len(config)+len(weights), func() { _, _ = LoadHead(files, tinyConfig(), TaskClassify) })
	})
}

// FuzzCheckpointInfo: a starling.json, as anybody hands one on, is refused, or says what can be written
// and read again.
func FuzzCheckpointInfo(f *testing.F) {
	f.Add([]byte(`{"job":"a","version":3,"seq":16,"labels":["no","yes"],"lora":{"r_max":2,"alpha":4},"best_rank":1,"rank_accuracy":{"1":0.5}}`))
	f.Add([]byte(`{"round":7,"seq":-1,"labels":["a"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c CheckpointInfo
		var err error
		allocation.Bounded(t, len(data), func() { c, err = ParseCheckpointInfo(data) })
		if err != nil || c.validate() != nil {
			return
		}
		if c.Seq < 1 || c.BestRank < 0 || c.BestRank > c.Method.RMax || len(c.Labels) > maxClasses {
			t.Errorf("accepted: %+v", c)
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatalf("accepted, and cannot be written: %v", err)
		}
		again, err := ParseCheckpointInfo(text)
		if err != nil || again.validate() != nil {
			t.Fatalf("written as %s, which is refused: %v, %v", text, err, again.validate())
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(twice, text) {
			t.Errorf("%s, then %s", text, twice)
		}
	})
}
