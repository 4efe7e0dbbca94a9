package model

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-fl/starling/internal/leaf/durable"
)

// WriteFiles writes each file so that a crash or a power cut leaves either the
// old or the new one whole, and the new ones once it has returned.
func WriteFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var errs []error
	for name, data := range files {
		errs = append(errs, durable.Replace(filepath.Join(dir, name), data, 0o644))
	}
	return errors.Join(errs...)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
