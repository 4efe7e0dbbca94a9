package command

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-fl/starling/internal/app/usage"
)

// Format returns the format that the ending of a file's name names.
func Format(name string) string {
	return strings.TrimPrefix(strings.ToLower(filepath.Ext(name)), ".")
}

// CheckFormat refuses a flag's file whose ending is not among two formats or more.
func CheckFormat(flag, name string, formats ...string) error {
	if slices.Contains(formats, Format(name)) {
		return nil
	}
	last := len(formats) - 1
	return usage.Errorf("--%s %q: want a name that ends in .%s or .%s", flag, name, strings.Join(formats[:last], ", ."), formats[last])
}
