package sweep

import (
	_ "embed"
	"fmt"

	"github.com/starling-fl/starling/internal/leaf/strict"
)

//go:embed stated.yaml
var stated []byte

// Stated holds the base and data that a preset's header names, and which of its runs are impossible today.
type Stated struct {
	Preset  string    `yaml:"preset"`
	Base    string    `yaml:"base"` // "" is the embedded default, documents that for documents, else a model whose folder --base names
	Refused []Refusal `yaml:"refused"`
}

// Refusal is a row, or several, whose updates have more values than a round carries.
type Refusal struct {
	On     map[string]string `yaml:"on"`     // the rows, by axis; empty: all of them
	Values int               `yaml:"values"` // of one update
}

// StatedOf is what a preset states; one of which the list has nothing is over the embedded default base.
func StatedOf(preset string) (Stated, error) {
	var all []Stated
	if err := strict.Decode(stated, &all); err != nil {
		return Stated{}, fmt.Errorf("sweep: what presets state: %w", err)
	}
	for _, s := range all {
		if s.Preset == preset {
			return s, nil
		}
	}
	return Stated{Preset: preset}, nil
}

// Flag is what a command line over the preset is given for its base, with a space before it; ""
// for the embedded default.
func (s Stated) Flag() string {
	switch s.Base {
	case "":
		return ""
	case "documents":
		return " --base starling/documents"
	}
	return " --base FOLDER"
}
