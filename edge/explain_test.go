package edge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/internal/wire"
)

func TestWords(t *testing.T) {
	for in, want := range map[string]string{
		"edge: the coordinator refused: wire: kind is 3": "the coordinator refused: kind is 3",
		"coordinator: dp: nn: store: x":                  "x",
		"job: base: none is loaded":                      "job: base: none is loaded",
		"a.tsv:2: label \"x\" is not known":              "a.tsv:2: label \"x\" is not known",
		"one: edge: two\nsecagg: three":                  "one: two\nthree",
		"privacy.clip_norm is 0":                         "privacy.clip_norm is 0",
		"/home/dp: no such folder":                       "/home/dp: no such folder",
	} {
		if got := Explain(errors.New(in)); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
	if got := Explain(fmt.Errorf("%w: %w", ErrData, dataset.ErrEmpty)); got != "local data cannot be used: no examples" {
		t.Errorf("%q", got)
	}
	if _, err := wire.ParseToken("x"); strings.Contains(Explain(err), "wire:") {
		t.Errorf("%q", Explain(err))
	}
}

// A package that starts its errors with its name is known to Explain.
func TestWordsKnowsEveryPackage(t *testing.T) {
	known := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		name := filepath.Base(filepath.Dir(path))
		if err == nil && strings.Contains(string(text), `"`+name+`: `) {
			known++
			if got := Explain(errors.New(name + ": it failed")); got != "it failed" {
				t.Errorf("%q of %s is left: explain.go does not know the package", got, path)
			}
		}
		return err
	})
	if err != nil || known < 20 {
		t.Errorf("%d files seen: %v", known, err)
	}
}
