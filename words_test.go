package starling

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-fl/starling/edge"
)

// A package that starts its errors with its name is known to edge.Explain.
func TestWordsKnowsEveryPackage(t *testing.T) {
	known := 0
	eachSource(t, func(path string) error {
		if strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		name := filepath.Base(filepath.Dir(path))
		if err == nil && strings.Contains(string(text), `"`+name+`: `) {
			known++
			if got := edge.Explain(errors.New(name + ": it failed")); got != "it failed" {
				t.Errorf("%q of %s is left: edge/explain.go does not know the package", got, path)
			}
		}
		return err
	})
	if known < 20 {
		t.Errorf("%d files seen", known)
	}
}
