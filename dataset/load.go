package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const (
	// MaxLine bounds one line of a data file, in bytes.
	MaxLine = 1 << 20
	// MaxLabel bounds a label's name, in bytes.
	MaxLabel = 256
	// MaxLabels bounds how many distinct labels a file may have.
	MaxLabels = 4096
)

// LineError says which line of a data file cannot be used and why.
type LineError struct {
	File string // as it was given
	Line int    // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// ErrEmpty is returned for a file without examples.
var ErrEmpty = errors.New("dataset: no examples")

// Load reads a data file: lines of label<TAB>text (.tsv, .txt), or JSON Lines
// with "text", "label" and optionally "user" and "provider" (.jsonl, .ndjson);
// either may be gzipped (.gz). A line that cannot be used is a *LineError: nothing is
// skipped silently, except blank lines.
func Load(path string) (*Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, path)
}

// Read is Load for an open file; name decides the format.
func Read(r io.Reader, name string) (*Set, error) {
	base, gz := strings.CutSuffix(name, ".gz")
	if gz {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defer z.Close()
		r = z
	}
	switch ext := filepath.Ext(base); ext {
	case ".tsv", ".txt":
		return readLines(r, name, parseTabbed)
	case ".jsonl", ".ndjson":
		return readLines(r, name, parseJSON)
	default:
		return nil, fmt.Errorf("%s: unknown format %q: want .tsv or .txt (label<TAB>text) or .jsonl (text, label, user, provider), plain or .gz", name, ext)
	}
}

type labelled struct {
	Text     string `json:"text"`
	Label    string `json:"label"`
	User     string `json:"user"`
	Provider string `json:"provider"`
}

func readLines(r io.Reader, name string, parse func([]byte) (labelled, error)) (*Set, error) {
	var examples []Example
	var names []string
	distinct := map[string]string{} // also makes equal labels share memory
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), MaxLine)
	line := 0
	for sc.Scan() {
		line++
		raw := bytes.TrimSuffix(sc.Bytes(), []byte("\r"))
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		l, err := parse(raw)
		if err == nil {
			err = l.check()
		}
		if err != nil {
			return nil, &LineError{name, line, err}
		}
		if _, known := distinct[l.Label]; !known {
			if len(distinct) == MaxLabels {
				return nil, &LineError{name, line, fmt.Errorf("more than %d distinct labels: is the first column the label?", MaxLabels)}
			}
			distinct[l.Label] = l.Label
		}
		examples = append(examples, Example{Text: l.Text, User: l.User, Provider: l.Provider, Line: line})
		names = append(names, distinct[l.Label])
	}
	if err := sc.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &LineError{name, line + 1, fmt.Errorf("longer than %d bytes", MaxLine)}
	} else if err != nil {
		return nil, fmt.Errorf("%s: after line %d: %w", name, line, err)
	}
	if len(examples) == 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrEmpty)
	}
	return byName(name, examples, names), nil
}

func (l labelled) check() error {
	switch {
	case l.Label == "":
		return errors.New("label is empty")
	case len(l.Label) > MaxLabel:
		return fmt.Errorf("label has %d bytes, the limit is %d", len(l.Label), MaxLabel)
	case strings.TrimSpace(l.Text) == "":
		return errors.New("text is empty")
	case !utf8.ValidString(l.Text) || !utf8.ValidString(l.Label) || !utf8.ValidString(l.User) || !utf8.ValidString(l.Provider):
		return errors.New("not valid UTF-8")
	}
	return nil
}

func parseTabbed(line []byte) (labelled, error) {
	label, text, ok := strings.Cut(string(line), "\t")
	if !ok {
		return labelled{}, errors.New("no tab: want label<TAB>text")
	}
	return labelled{Text: text, Label: strings.TrimSpace(label)}, nil
}

func parseJSON(line []byte) (labelled, error) {
	var raw struct {
		Text     *string         `json:"text"`
		Label    json.RawMessage `json:"label"`
		User     json.RawMessage `json:"user"`
		Provider json.RawMessage `json:"provider"`
	}
	if err := json.Unmarshal(line, &raw); err != nil {
		return labelled{}, fmt.Errorf("not a JSON object: %w", err)
	}
	if raw.Text == nil {
		return labelled{}, errors.New(`"text" is missing`)
	}
	l := labelled{Text: *raw.Text}
	var err error
	if l.Label, err = scalar("label", raw.Label); err != nil {
		return l, err
	}
	if l.Label == "" {
		return l, errors.New(`"label" is missing`)
	}
	if l.User, err = scalar("user", raw.User); err != nil {
		return l, err
	}
	l.Provider, err = scalar("provider", raw.Provider)
	return l, err
}

// scalar accepts a string or a number, since both are in use as class names
// and user ids.
func scalar(field string, raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String(), nil
	}
	return "", fmt.Errorf("%q must be a string or a number", field)
}
