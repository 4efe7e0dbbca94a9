package nn

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/starling-fl/starling/model"
)

// TestFamiliesOfRoBERTa: XLM-R and CamemBERT compute what RoBERTa does of the same
// weights, whose logits are transformers', and go out under their own names.
func TestFamiliesOfRoBERTa(t *testing.T) {
	dir := filepath.Join("testdata", "roberta")
	data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Tokens [][]int32
		Logits [][]float64
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	for kind, class := range map[string]string{"xlm-roberta": "XLMRobertaModel", "camembert": "CamembertModel"} {
		fsys := fstest.MapFS{}
		for _, name := range []string{model.ConfigFile, model.WeightsFile, model.TokenizerFile} {
			file, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			fsys[name] = &fstest.MapFile{Data: file}
		}
		config := map[string]any{}
		if err := json.Unmarshal(fsys[model.ConfigFile].Data, &config); err != nil {
			t.Fatal(err)
		}
		config["model_type"] = kind
		delete(config, "pad_token_id") // is 1 where it is not said
		if fsys[model.ConfigFile].Data, err = json.Marshal(config); err != nil {
			t.Fatal(err)
		}
		base, err := model.LoadBase(fsys)
		if err != nil {
			t.Fatal(err)
		}
		head, err := model.LoadHead(fsys, base.Config, model.TaskClassify)
		if err != nil {
			t.Fatal(err)
		}
		a, err := model.HeadAdapter(base.Config, model.TaskClassify, 3, head)
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPredictor(a.Layout(), base, len(want.Tokens[0]), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Logits(t.Context(), a.Slice(0), 0, want.Tokens)
		if err != nil {
			t.Fatal(err)
		}
		sameLogits(t, kind, got, want.Logits)
		files, err := model.Release{Base: base}.Files()
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			Type    string   `json:"model_type"`
			Classes []string `json:"architectures"`
		}
		if err := json.Unmarshal(files[model.ConfigFile], &out); err != nil || out.Type != kind || out.Classes[0] != class {
			t.Errorf("%s goes out as %+v (%v)", kind, out, err)
		}
	}
}
