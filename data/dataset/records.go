package dataset

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// scanner takes a file's records apart.
type scanner struct {
	columns Columns
	name    string // of the file, for errors
	want    bool   // a label
	each    func(line int, l labelled) error
	header  func(names []string) // is told those of a table's columns; may be nil
	above   int                  // lines above a table's header
	others  map[string]string    // of columns, once a record was read
}

// A ColumnError is a column, or a JSON key, that a record does not have.
type ColumnError struct {
	Column string   // that was looked for
	Label  bool     // it is the labels', not the texts'
	Null   bool     // it is there, and null
	Have   []string // the record's own, in order

	Separator rune // of a table's columns, as it was read; 0 of JSON
}

func (e *ColumnError) Error() string {
	const most = 12
	var have []string
	for _, name := range e.Have[:min(len(e.Have), most)] {
		have = append(have, fmt.Sprintf("%.40q", name))
	}
	if len(e.Have) > most {
		have = append(have, "...")
	}
	switch {
	case e.Null:
		return fmt.Sprintf("%q is null", e.Column)
	case len(have) == 0:
		return fmt.Sprintf("%q is missing", e.Column)
	}
	said := fmt.Sprintf("%q is missing; there are %s", e.Column, strings.Join(have, ", "))
	switch {
	case e.Separator == 0:
	case len(e.Have) == 1 && e.Separator == ',': // which nothing spoke for
		said += ": columns are separated by commas, semicolons or tabs"
	default:
		said += ", separated by " + separatorNames[e.Separator]
	}
	return said
}

// lines reads one record a line. Without parse the line is the text, and blank
// ones count.
func (s *scanner) lines(in *bufio.Reader, parse func([]byte) (labelled, error)) error {
	sc := bufio.NewScanner(in)
	sc.Buffer(make([]byte, 64<<10), MaxLine)
	line := 0
	for sc.Scan() {
		line++
		raw := bytes.TrimSuffix(sc.Bytes(), []byte("\r"))
		l := labelled{}
		var err error
		if parse == nil {
			l.Text = string(raw)
		} else if len(bytes.TrimSpace(raw)) == 0 {
			continue
		} else {
			l, err = parse(raw)
		}
		if err == nil {
			err = s.each(line, l)
		}
		if err != nil {
			return &LineError{s.name, line, err}
		}
	}
	if err := sc.Err(); errors.Is(err, bufio.ErrTooLong) {
		return &LineError{s.name, line + 1, fmt.Errorf("longer than %d bytes", MaxLine)}
	} else if err != nil {
		return fmt.Errorf("%s: after line %d: %w", s.name, line, err)
	}
	return nil
}

func (s *scanner) parseTabbed(line []byte) (labelled, error) {
	label, text, ok := strings.Cut(string(line), "\t")
	switch {
	case ok:
		return labelled{Text: text, Label: strings.TrimSpace(label)}, nil
	case s.want:
		return labelled{}, errors.New("no tab: want label<TAB>text")
	}
	return labelled{Text: label}, nil
}

func (s *scanner) parseJSON(line []byte) (labelled, error) {
	keys, value, err := object(line)
	if err != nil {
		return labelled{}, err
	}
	value = s.renamed(value)
	if s.want && !s.columns.named() && len(value(s.columns.label())) == 0 && asks(value) {
		return s.document(value)
	}
	var l labelled
	if !s.want && !s.columns.named() && (len(value("words")) > 0 || len(value("lines")) > 0) {
		return s.document(value)
	}
	if prompts(value, s.columns.text()) && len(value(s.columns.label())) == 0 {
		return parsePrompt(keys, value)
	}
	if talks(value, s.columns.text()) && len(value(s.columns.label())) == 0 {
		return parseTalk(keys, value)
	}
	if words := either(value, "words", "tokens"); listOf(words) && s.want {
		return s.parseTagged(words, either(value, "tags", "ner_tags"), value("user"), value("provider"))
	}
	text, sound := value(s.columns.text()), value("audio")
	switch {
	case len(sound) > 0 && s.want:
		var path string
		if json.Unmarshal(sound, &path) != nil {
			return l, errors.New(`"audio" must be a string, the path of a recording`)
		}
		if path, err = s.beside("audio", path); err == nil {
			if l.Recording, err = OpenRecording(path); err != nil {
				err = fmt.Errorf(`"audio": %w`, err)
			}
		}
		if err != nil {
			return l, err
		}
		if len(value(s.columns.label())) == 0 && len(value("labels")) == 0 && len(text) > 0 && string(text) != "null" {
			if json.Unmarshal(text, &l.Text) != nil {
				return l, fmt.Errorf("%q must be a string", s.columns.text())
			}
			l.Transcript = true
		}
	case len(text) == 0 || string(text) == "null":
		return l, &ColumnError{Column: s.columns.text(), Have: keys, Null: len(text) > 0}
	case json.Unmarshal(text, &l.Text) != nil:
		return l, fmt.Errorf("%q must be a string", s.columns.text())
	}
	label := value(s.columns.label())
	if s.want {
		if l.Labels, err = listed(label, value("labels")); err != nil {
			return l, err
		}
		if l.Labels != nil {
			label = nil
		}
	}
	if l.Label, err = scalar(s.columns.label(), label); err != nil {
		return l, err
	}
	for _, f := range []struct {
		column string
		to     *string
	}{{"user", &l.User}, {"provider", &l.Provider}} {
		if *f.to, err = scalar(f.column, value(f.column)); err != nil {
			return l, err
		}
	}
	if l.Label == "" && l.Labels == nil && s.want && !l.Transcript {
		if raw := value(s.columns.label()); len(raw) > 0 && string(raw) != "null" {
			return l, nil // "", which is told as what it is
		}
		return l, &ColumnError{Column: s.columns.label(), Label: true, Have: keys, Null: len(value(s.columns.label())) > 0}
	}
	return l, nil
}

// either is the value of the first of two keys that has one.
func either(value func(string) json.RawMessage, one, other string) json.RawMessage {
	if raw := value(one); len(raw) > 0 {
		return raw
	}
	return value(other)
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

// find returns the index of a column by its name, else by its name in another
// case, else -1.
func find(names []string, column string) int {
	if at := slices.Index(names, column); at >= 0 {
		return at
	}
	return slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, column) })
}

// errLong is a record beyond its bound: most often a quote that never closes.
var errLong = fmt.Errorf("longer than %d bytes: is a quote not closed?", MaxLine)

// bounded ends with an error, errLong if it names none, where more than left bytes are
// asked of it.
type bounded struct {
	r    io.Reader
	left int
	end  error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		if b.end != nil {
			return 0, b.end
		}
		return 0, errLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// table reads records under a header. lazy takes quotes as they come, as tab-
// separated files hold them.
func (s *scanner) table(in *bufio.Reader, sep rune, lazy bool) error {
	r := s.csv(in)
	r.Comma, r.LazyQuotes, r.ReuseRecord = sep, lazy, true
	next := func() ([]string, error) {
		row, err := r.next()
		if bad := new(LineError); errors.As(err, &bad) && errors.Is(bad.Err, csv.ErrFieldCount) {
			bad.Err = fmt.Errorf("%w: %d, the header has %d, separated by %s", bad.Err, len(row), r.FieldsPerRecord, separatorNames[sep])
		}
		return row, err
	}
	row, err := next()
	if errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	header := trimmed(row)
	if s.header != nil {
		s.header(header)
	}
	header = s.columns.rename(header)
	text, label := find(header, s.columns.text()), find(header, s.columns.label())
	written := s.columns.written(header)
	switch {
	case written:
	case text < 0:
		return &LineError{s.name, 1 + s.above, &ColumnError{Column: s.columns.text(), Have: header, Separator: sep}}
	case label < 0 && s.want:
		return &LineError{s.name, 1 + s.above, &ColumnError{Column: s.columns.label(), Label: true, Have: header, Separator: sep}}
	}
	user, provider := find(header, "user"), find(header, "provider")
	cell := func(at int) string {
		if at < 0 {
			return ""
		}
		return strings.Clone(row[at]) // a cell shares its record's memory
	}
	for {
		if row, err = next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		line, _ := r.FieldPos(0)
		line += s.above
		l := labelled{Text: cell(text), Label: strings.TrimSpace(cell(label)), User: cell(user), Provider: cell(provider)}
		if written {
			l, err = writtenRow(header, row)
		}
		if err != nil {
			return &LineError{s.name, line, err}
		}
		if err := s.each(line, l); err != nil {
			return &LineError{s.name, line, err}
		}
	}
}
