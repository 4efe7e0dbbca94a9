package dataset

import (
	"bufio"
	"encoding/json"
	"os"
)

// line is a line of a data file: a text with its label, or a document with a question.
type line struct {
	Text     string      `json:"text,omitempty"`
	Label    string      `json:"label,omitempty"`
	Words    []string    `json:"words,omitempty"`
	Boxes    [][4]uint16 `json:"boxes,omitempty"`
	Question string      `json:"question,omitempty"`
	Answers  []string    `json:"answers,omitempty"`
	Pixels   []float32   `json:"pixels,omitempty"`
	User     string      `json:"user,omitempty"`
	Provider string      `json:"provider,omitempty"`
}

// WriteJSONLines writes a set as a data file, an example a line: what Load reads.
func WriteJSONLines(path string, set *Set) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	for _, ex := range set.Examples {
		l := line{User: ex.User, Provider: ex.Provider}
		if ex.Question != "" {
			l.Words, l.Boxes, l.Question, l.Answers, l.Pixels = ex.Words, ex.Boxes, ex.Question, ex.Answers, ex.Pixels
		} else {
			l.Text, l.Label = ex.Text, set.Labels[ex.Label]
		}
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return w.Flush()
}
