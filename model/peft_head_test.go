package model_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/peft"
)

// A decoder's own head, trained whole, leaves as PEFT names it and comes back as it left. A head that is the
// embeddings, and embeddings that are the head, are refused: PEFT would part them.
func TestDecodersHeadGoesToPEFT(t *testing.T) {
	for kind, c := range model.TinyConfigs() {
		if !c.Causal() {
			continue
		}
		words := "embed_tokens"
		if kind == "gpt2" {
			words = "wte"
		}
		adapter := func(own bool, also string) (*model.Adapter, *model.Base, error) {
			c.Decoder.OwnHead = own
			base := model.ZeroBase(t, c)
			l, err := model.NewLayout(c, model.Method{RMax: 2, Alpha: 3, Also: also, Task: model.TaskCausal}, 0)
			if err != nil {
				return nil, nil, err
			}
			a := model.NewAdapter(l, 1)
			v := a.Slice(2)
			for i := range v {
				v[i] = float32(i%7) - 3
			}
			return a, base, a.SetSlice(2, v)
		}
		for _, also := range []string{"lm_head", words, "lm_head," + words} {
			a, base, err := adapter(true, also)
			if err != nil {
				t.Fatalf("%s, %s: %v", kind, also, err)
			}
			files, err := model.PEFTFiles(a, base, 2)
			if err != nil {
				t.Fatalf("%s, %s: %v", kind, also, err)
			}
			var config struct {
				Saved []string `json:"modules_to_save"`
			}
			if err := json.Unmarshal(files[model.AdapterConfigFile], &config); err != nil || strings.Contains(also, "lm_head") != slices.Contains(config.Saved, "lm_head") {
				t.Errorf("%s, %s: saves %q, %v", kind, also, config.Saved, err)
			}
			back, err := peft.Load(fstest.MapFS{model.AdapterConfigFile: {Data: files[model.AdapterConfigFile]}, model.AdapterFile: {Data: files[model.AdapterFile]}},
				base, model.TaskCausal, 0, nil)
			if err != nil {
				t.Fatalf("%s, %s: %v", kind, also, err)
			}
			want, err := a.Layout().Merge(base, a.Slice(2), 2)
			if err != nil {
				t.Fatal(err)
			}
			got, err := back.Layout().Merge(base, back.Slice(2), 2)
			if err != nil || !maps.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%s, %s: comes back otherwise, %v", kind, also, err)
			}
		}
		if a, base, err := adapter(false, words); err != nil {
			t.Fatalf("%s: %v", kind, err)
		} else if _, err := model.PEFTFiles(a, base, 2); err == nil || !strings.Contains(err.Error(), "tied") {
			t.Errorf("%s: embeddings that are the head go to PEFT: %v", kind, err)
		}
	}
}
