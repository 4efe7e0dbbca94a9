package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Texts have the ids that tokenizers gives them, for published files: each JSON file in
// STARLING_TOKENIZERS names one (path), texts with their ids where special tokens are left alone, and
// with those that are found. lab/bench/interop/published.py writes them.
func TestPublishedFiles(t *testing.T) {
	dir := os.Getenv("STARLING_TOKENIZERS")
	if dir == "" {
		t.Skip("STARLING_TOKENIZERS names no folder: lab/bench/interop/published.py fills one")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s holds no file: %v", dir, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Name, Path string
			Texts      []string
			IDs        [][]int32
			Marked     [][]int32
		}
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(c.Path)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := Parse(file)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		marks, noMarks := NewMarks(file, tok)
		bad, badMarks := 0, 0
		for i, text := range c.Texts {
			if got := tok.Encode(text); !slices.Equal(got, c.IDs[i]) {
				if bad++; bad <= 5 {
					t.Errorf("%s: %q is %v, want %v", c.Name, text, got, c.IDs[i])
				}
			}
			if noMarks != nil || i >= len(c.Marked) {
				continue
			}
			if got := marks.Encode(text); !slices.Equal(got, c.Marked[i]) {
				if badMarks++; badMarks <= 5 {
					t.Errorf("%s: marked %q is %v, want %v", c.Name, text, got, c.Marked[i])
				}
			}
		}
		t.Logf("%s: %d of %d texts differ, %d of %d marked ones (%v)", c.Name, bad, len(c.Texts), badMarks, len(c.Marked), noMarks)
	}
}
