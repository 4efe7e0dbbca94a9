package model

import (
	"strings"
	"testing"
)

// A base without a pooler serves the tasks of words; a classifier over it, or one whose
// head is not a classifier of one label, is refused by name.
func TestHeadsThatAreNotRead(t *testing.T) {
	fsys, _ := huggingFolder(t, huggingConfig("bert"), map[string]any{"architectures": []string{"BertModel"}})
	st, err := ParseSafeTensors(fsys[WeightsFile].Data)
	if err != nil {
		t.Fatal(err)
	}
	kept := &SafeTensors{}
	for _, raw := range st.Tensors {
		if !strings.Contains(raw.Name, "pooler") {
			kept.Tensors = append(kept.Tensors, raw)
		}
	}
	fsys[WeightsFile] = encoded(t, kept)
	b, err := LoadBase(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := HeadAdapter(b.Config, TaskTag, 3, nil); err != nil {
		t.Error(err)
	}
	if _, err := HeadAdapter(b.Config, TaskClassify, 3, nil); err == nil || !strings.Contains(err.Error(), `"pooling": "mean"`) {
		t.Errorf("a classifier without a pooler: %v", err)
	}
	for problem, bad := range map[string]bool{"single_label_classification": false, "multi_label_classification": true, "regression": true} {
		fsys, _ := huggingFolder(t, huggingConfig("bert"), map[string]any{"problem_type": problem})
		if _, err := LoadHead(fsys, huggingConfig("bert"), TaskClassify); (err != nil) != bad || bad && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", problem, err)
		}
		if _, err := LoadHead(fsys, huggingConfig("bert"), TaskTag); err != nil {
			t.Errorf("%s, for tags: %v", problem, err)
		}
	}
}
