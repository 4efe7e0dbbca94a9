package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// goldenCase is what Hugging Face's tokenizers made of texts with one tokenizer.json.
type goldenCase struct {
	Name      string
	Tokenizer json.RawMessage
	Texts     []string
	IDs       [][]int32
	Framed    []int32 // "hello" with its special tokens; nil where it was not asked

	Marked []string // texts that spell special tokens out, and their ids
	Found  [][]int32
}

func goldenCases(t *testing.T, name string) []goldenCase {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Cases []goldenCase }
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	return golden.Cases
}
