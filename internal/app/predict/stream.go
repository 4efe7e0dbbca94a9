// Package predict writes what a released adapter says of the examples of a file: labels,
// answers to questions, words in place of masks.
package predict

import (
	"bufio"
	"encoding/json"
	"io"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// predictions writes what a model says of the examples of a file, chunk by chunk and in
// their order, and how far it is where that takes long.
type predictions struct {
	to    *terminal.Streams
	chunk int    // examples that are read before they are predicted
	what  string // they are
	// predict answers each of the examples; it keeps none of them.
	predict func(examples []dataset.Example) ([]said, error)
}

// said is what is written of an example: the value with --json, else the text, which ends
// its lines.
type said struct {
	value any
	text  string
}

// of predicts what read hands to take.
func (p predictions) of(read func(take func(dataset.Example) error) error) error {
	out := bufio.NewWriter(p.to.Stdout)
	enc := json.NewEncoder(out)
	told := terminal.NewPace(p.to.Stderr, p.what)
	var examples []dataset.Example
	flush := func() error {
		all, err := p.predict(examples)
		if err != nil {
			return err
		}
		for _, s := range all {
			if p.to.JSON {
				err = enc.Encode(s.value)
			} else {
				_, err = io.WriteString(out, s.text)
			}
			if err != nil {
				return err
			}
		}
		told.Add(len(examples))
		examples = examples[:0]
		return out.Flush()
	}
	err := read(func(e dataset.Example) error {
		if examples = append(examples, e); len(examples) < p.chunk {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}
