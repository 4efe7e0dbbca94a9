package model

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// tinyDecoder has all that its family may have.
func tinyDecoder(kind string, f *decoderFamily) Config {
	c := Llama(20, 8, 3, 4, 60)
	d := &c.Decoder
	if kind == "gpt2" {
		c.ModelType, c.HiddenAct, c.PadTokenID = kind, "gelu_new", 3
		*d = Decoder{Learned: true, KVHeads: 4, HeadSize: 2, QueryScale: 2, Biases: true, OutputBias: true, ForwardBiases: true, Begin: 1, Ends: Ends{2, 4, 2, 2}}
		return c
	}
	c.ModelType, c.PadTokenID = kind, 3
	d.Biases, d.HeadNorms, d.OuterNorms, d.GainsFromOne, d.ScaledWords = f.biases, f.headNorms, f.gemma, f.gemma, f.gemma
	d.HeadSize, d.QueryScale, d.Begin, d.Ends = 6, 6, 1, Ends{2, 4, 2, 2}
	switch kind {
	case "llama":
		d.Biases, d.OutputBias, d.ForwardBiases = true, true, true
		d.Rope = Rope{Theta: 5e5, Factor: 8, Low: 1, High: 4, Original: 32}
	case "mistral":
		d.Window = 7
	case "qwen2", "qwen3":
		d.Window, d.Whole = 9, 2
	case "gemma3_text":
		c.HiddenAct, d.Window, d.Whole, d.QueryScale, d.Local = "gelu_new", 5, 3, 4, Rope{Theta: 1e4}
		d.Rope = Rope{Theta: 1e6}
	}
	return c
}

// What transformers does not write, or says otherwise, of published models.
func TestDecoderConfigs(t *testing.T) {
	for name, c := range map[string]struct {
		json string
		ok   func(c Config) bool
	}{
		"Llama 3.2, as it was published": {`{"model_type":"llama","vocab_size":128256,"hidden_size":2048,"num_hidden_layers":16,"num_attention_heads":32,
			"num_key_value_heads":8,"intermediate_size":8192,"head_dim":64,"max_position_embeddings":131072,"rope_theta":500000.0,"rms_norm_eps":1e-05,
			"rope_scaling":{"factor":32.0,"high_freq_factor":4.0,"low_freq_factor":1.0,"original_max_position_embeddings":8192,"rope_type":"llama3"},
			"bos_token_id":128000,"eos_token_id":[128001,128008,128009],"tie_word_embeddings":true,"hidden_act":"silu"}`,
			func(c Config) bool {
				d := c.Decoder
				return d.Rope == Rope{5e5, 32, 1, 4, 8192} && d.Ends == Ends{128001, 128008, 128009, 128001} && c.PadTokenID == 128001 && !d.OwnHead &&
					d.KVHeads == 8 && c.MaxTokens() == maxPositions && d.Ends.Has(128009) && !d.Ends.Has(0)
			}},
		"SmolLM2": {`{"model_type":"llama","vocab_size":49152,"hidden_size":576,"num_hidden_layers":30,"num_attention_heads":9,"num_key_value_heads":3,
			"intermediate_size":1536,"max_position_embeddings":8192,"rope_theta":100000,"rope_scaling":null,"rms_norm_eps":1e-05,"bos_token_id":0,
			"eos_token_id":0,"tie_word_embeddings":true,"hidden_act":"silu","pretraining_tp":1,"attention_bias":false}`,
			func(c Config) bool { return c.Decoder.HeadSize == 64 && Elements32(c) == 134515008 }},
		"Qwen2.5": {`{"model_type":"qwen2","vocab_size":151936,"hidden_size":896,"num_hidden_layers":24,"num_attention_heads":14,"num_key_value_heads":2,
			"intermediate_size":4864,"max_position_embeddings":32768,"max_window_layers":21,"sliding_window":32768,"use_sliding_window":false,
			"rope_theta":1000000.0,"rms_norm_eps":1e-06,"bos_token_id":151643,"eos_token_id":151645,"tie_word_embeddings":true}`,
			func(c Config) bool {
				return c.Decoder.Window == 0 && c.Decoder.Biases && !c.Decoder.OutputBias && Elements32(c) == 494032768
			}},
		"Gemma 3, earlier": {`{"model_type":"gemma3_text","vocab_size":262144,"hidden_size":640,"num_hidden_layers":18,"num_attention_heads":4,
			"num_key_value_heads":1,"head_dim":256,"intermediate_size":2048,"max_position_embeddings":32768,"sliding_window":512,"sliding_window_pattern":6,
			"rope_theta":1000000.0,"rope_local_base_freq":10000.0,"query_pre_attn_scalar":256,"eos_token_id":1,"pad_token_id":0,"bos_token_id":2}`,
			func(c Config) bool {
				d := c.Decoder
				return !d.Windowed(5) && d.Windowed(4) && d.RopeOf(5).Theta == 1e6 && d.RopeOf(4).Theta == 1e4 && !d.OwnHead && Elements32(c) == 268098176
			}},
		"a Mistral without a window": {`{"model_type":"mistral","sliding_window":null,"num_hidden_layers":2}`,
			func(c Config) bool { return c.Decoder.Window == 0 && c.Decoder.OwnHead && c.Decoder.KVHeads == 8 }},
	} {
		got, err := ParseConfig([]byte(c.json))
		if err != nil || !c.ok(got) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for want, bad := range map[string]string{
		"rope_type":                  `"rope_scaling":{"rope_type":"yarn","factor":4.0}`,
		"partial_rotary_factor":      `"rope_parameters":{"rope_theta":1e4,"partial_rotary_factor":0.5}`,
		"capped":                     `"final_logit_softcapping":30.0`,
		"bidirectional":              `"use_bidirectional_attention":true`,
		"eos_token_id":               `"eos_token_id":null`,
		"eos_token_id is 32000":      `"eos_token_id":[2,32000]`,
		"num_key_value_heads 5":      `"num_key_value_heads":5`,
		"head_dim":                   `"head_dim":7`,
		"layer_types":                `"layer_types":["full_attention"]`,
		"low_freq_factor":            `"rope_scaling":{"rope_type":"llama3","factor":4.0}`,
		"hidden_act":                 `"hidden_act":"xielu"`,
		"add_cross_attention":        `"add_cross_attention":true`,
		"whole number":               `"query_pre_attn_scalar":10.5`,
		"want \"sliding_attention\"": `"num_hidden_layers":4,"sliding_window":4,"layer_types":["sliding_attention","full_attention","full_attention","sliding_attention"]`,
	} {
		if _, err := ParseConfig([]byte(`{"model_type":"llama",` + bad + `}`)); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Elements32 is how many values a base has.
func Elements32(c Config) (n int) {
	for _, s := range c.BaseTensors() {
		n += Elements(s.Shape)
	}
	return n
}

// A head that is the embeddings is tied to them, whatever config.json says; one of its own
// is its own.
func TestDecoderHeads(t *testing.T) {
	c := tinyDecoder("qwen2", architectures["qwen2"].decoder)
	fsys, values := huggingFolder(t, c, map[string]any{"tie_word_embeddings": true})
	for _, own := range []bool{false, true} {
		weights, err := ParseSafeTensors(fsys[WeightsFile].Data)
		if err != nil {
			t.Fatal(err)
		}
		head := slices.Clone(values[DecoderWords])
		if own {
			head[3]++
		}
		if err := weights.Add(DecoderHead, "F32", []int{c.VocabSize, c.HiddenSize}, head); err != nil {
			t.Fatal(err)
		}
		there := fstest.MapFS{ConfigFile: fsys[ConfigFile], TokenizerFile: fsys[TokenizerFile], WeightsFile: encoded(t, weights)}
		b, err := LoadBase(there)
		if err != nil || b.Config.Decoder.OwnHead != own {
			t.Fatalf("own head %v: %+v, %v", own, b, err)
		}
		files, err := Release{Base: b, Task: TaskCausal}.Files()
		if err != nil {
			t.Fatal(err)
		}
		var config struct {
			Tied    bool     `json:"tie_word_embeddings"`
			Classes []string `json:"architectures"`
		}
		if err := json.Unmarshal(files[ConfigFile], &config); err != nil || config.Tied == own || config.Classes[0] != "Qwen2ForCausalLM" {
			t.Errorf("%+v, %v", config, err)
		}
		out, err := ParseSafeTensors(files[WeightsFile])
		if err != nil || hasTensor(out, DecoderHead) != own || !hasTensor(out, "model."+DecoderWords) {
			t.Errorf("own head %v is written otherwise: %v", own, err)
		}
	}
}

// Long waves of Llama 3.1 grow by the factor, short ones stay: its frequencies as
// transformers 5.23 computes them (_compute_llama3_parameters) for heads of 8 columns.
func TestRopeFrequencies(t *testing.T) {
	r := Rope{Theta: 100, Factor: 4, Low: 1, High: 4, Original: 16}
	want := []float64{0.63661975, 0.079056941, 0.025, 0.0079056947}
	for i, f := range r.Frequencies(4) {
		if math.Abs(f-want[i]) > 1e-8 {
			t.Errorf("pair %d turns by %v, want %v", i, f, want[i])
		}
	}
}
