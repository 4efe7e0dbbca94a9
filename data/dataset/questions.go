package dataset

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a record of questions beside MaxLine.
const (
	MaxQuestions = 256     // questions of one document
	MaxAnswers   = 64      // right answers of one question
	MaxQuestion  = 1 << 12 // bytes of a question
	MaxAnswer    = 1 << 14 // bytes of an answer
)

// PageSide is the side of a page in a box's units.
const PageSide = 1000

// Questions calls each with every question of a file of JSON Lines (.jsonl, .ndjson, plain or .gz;
// "" is plain) until it returns an error. Answers may be missing.
func Questions(r io.Reader, name string, each func(Example) error) error {
	if ext := filepath.Ext(strings.TrimSuffix(name, ".gz")); name != "" && ext != ".jsonl" && ext != ".ndjson" {
		return fmt.Errorf("%s: unknown format %q: want questions about documents in .jsonl, plain or .gz", name, ext)
	}
	in, done, err := opened(r, name)
	if err != nil {
		return err
	}
	defer done()
	s := scanner{name: cmp.Or(name, "input"), each: func(line int, l labelled) error {
		for _, e := range l.Questions {
			e.Line = line
			if err := each(e); err != nil {
				return err
			}
		}
		return nil
	}}
	return s.lines(in, func(line []byte) (labelled, error) {
		keys, value, err := object(line)
		if err != nil {
			return labelled{}, err
		}
		if !asks(value) {
			return labelled{}, &ColumnError{Column: "question", Have: keys}
		}
		return s.document(value)
	})
}

// object takes a JSON object apart: its keys, in order, and a look-up by name, whatever
// its case.
func object(line []byte) (keys []string, value func(string) json.RawMessage, err error) {
	if !utf8.Valid(line) { // which encoding/json would replace
		return nil, nil, errNotUTF8
	}
	var raw map[string]json.RawMessage
	var other *json.UnmarshalTypeError
	if err := json.Unmarshal(line, &raw); errors.As(err, &other) {
		return nil, nil, fmt.Errorf("not a JSON object: %s; want one on each line", other.Value)
	} else if err != nil {
		return nil, nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if raw == nil {
		return nil, nil, errors.New("not a JSON object: null")
	}
	keys = slices.Sorted(maps.Keys(raw))
	return keys, func(column string) json.RawMessage {
		if at := find(keys, column); at >= 0 {
			return raw[keys[at]]
		}
		return nil
	}, nil
}

// asks reports whether a record asks something.
func asks(value func(string) json.RawMessage) bool {
	return len(value("question")) > 0 || len(value("questions")) > 0 || len(value("fields")) > 0
}

// document reads a JSON object that holds a document and questions about it.
//
// The document is "words", a list of strings in reading order, with "boxes", a list of
// as many [left, top, right, bottom]; or "lines", a list of {"text", "box"}, whose words
// share their line's box by their lengths; or a "text" (or "context") without places.
// "image", the path of a PNG or JPEG in the file's folder or below it, is its page's picture;
// "pixels", a list of numbers 0..1, is that as a base's patches lie. Boxes are
// in thousandths of the page, or in the units of "width" and "height" where
// both are given.
//
// "key" is what a question asks for in a word, so that questions can be told by it; of
// "fields" their names are.
//
// "user" is whose it is, "provider" whom it is about, "source" the data set it is from.
//
// What is asked is "question" with "answers"; or "questions", a list of objects with
// both; or "fields", an object of names and values, each name being a question. Answers
// are a string, a list of strings (any is right, the first is learnt) or SQuAD's object
// with "text". A field that is empty is not asked. "answer" is taken for "answers".
func (s *scanner) document(value func(string) json.RawMessage) (l labelled, err error) {
	var e Example
	if e.User, err = scalar("user", value("user")); err != nil {
		return l, err
	}
	if e.Provider, err = scalar("provider", value("provider")); err != nil {
		return l, err
	}
	if e.Source, err = scalar("source", value("source")); err != nil {
		return l, err
	}
	if err = e.readPage(value); err != nil {
		return l, err
	}
	if e.Image, err = s.page(value("image")); err != nil {
		return l, err
	}
	if q := value("question"); len(q) > 0 {
		if e.Key, err = scalar("key", value("key")); err != nil {
			return l, err
		}
		l.Questions = []Example{e}
		answers := value("answers")
		if len(answers) == 0 {
			answers = value("answer")
		}
		err = l.Questions[0].ask(q, answers)
		return l, err
	}
	if raw := value("questions"); len(raw) > 0 {
		var list []struct{ Question, Answers, Answer, Key json.RawMessage }
		if err := json.Unmarshal(raw, &list); err != nil {
			return l, errors.New(`"questions" must be a list of objects with "question" and "answers"`)
		}
		if len(list) == 0 || len(list) > MaxQuestions {
			return l, fmt.Errorf("%d questions, want 1 to %d", len(list), MaxQuestions)
		}
		for i, q := range list {
			l.Questions = append(l.Questions, e)
			if len(q.Answers) == 0 {
				q.Answers = q.Answer
			}
			if err := l.Questions[i].ask(q.Question, q.Answers); err != nil {
				return l, fmt.Errorf("question %d: %w", i+1, err)
			}
			if l.Questions[i].Key, err = scalar("key", q.Key); err != nil {
				return l, fmt.Errorf("question %d: %w", i+1, err)
			}
		}
		return l, nil
	}
	if !asks(value) { // a document alone
		l.Questions = []Example{e}
		return l, nil
	}
	l.Questions, err = e.askFields(value("fields"))
	return l, err
}

// askFields asks for each of a document's fields.
func (e Example) askFields(raw json.RawMessage) ([]Example, error) {
	var fields map[string]string
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, errors.New(`"fields" must be an object of strings`)
	}
	if len(fields) > MaxQuestions {
		return nil, fmt.Errorf("%d fields, want at most %d", len(fields), MaxQuestions)
	}
	var all []Example
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if strings.TrimSpace(fields[name]) == "" {
			continue
		}
		one := e
		one.Question, one.Key, one.Answers = name, name, []string{fields[name]}
		if err := one.checkQuestion(); err != nil {
			return nil, fmt.Errorf("field %.40q: %w", name, err)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, errors.New(`"fields" are all empty`)
	}
	return all, nil
}

// ask sets question and answers.
func (e *Example) ask(question, answers json.RawMessage) error {
	if json.Unmarshal(question, &e.Question) != nil {
		return errors.New(`"question" must be a string`)
	}
	var one string
	var squad struct{ Text []string }
	switch {
	case len(answers) == 0 || string(answers) == "null":
	case json.Unmarshal(answers, &one) == nil:
		e.Answers = []string{one}
	case json.Unmarshal(answers, &e.Answers) == nil:
	case json.Unmarshal(answers, &squad) == nil && squad.Text != nil:
		e.Answers = squad.Text
	default:
		return errors.New(`"answers" must be a list of strings, or one string`)
	}
	return e.checkQuestion()
}

func (e *Example) checkQuestion() error {
	switch {
	case strings.TrimSpace(e.Question) == "":
		return errors.New("question is empty")
	case len(e.Question) > MaxQuestion || !utf8.ValidString(e.Question):
		return fmt.Errorf("question has %d bytes, want at most %d of text", len(e.Question), MaxQuestion)
	case len(e.Answers) > MaxAnswers:
		return fmt.Errorf("%d answers, want at most %d", len(e.Answers), MaxAnswers)
	}
	for i, a := range e.Answers {
		if strings.TrimSpace(a) == "" || len(a) > MaxAnswer || !utf8.ValidString(a) {
			return fmt.Errorf("answer %d is %.40q, want 1 to %d bytes of text", i+1, a, MaxAnswer)
		}
	}
	return nil
}

// readPage sets words and boxes, or the text.
func (e *Example) readPage(value func(string) json.RawMessage) error {
	unit, err := readUnit(value)
	if err != nil {
		return err
	}
	switch words, lines := value("words"), value("lines"); {
	case len(words) > 0:
		if json.Unmarshal(words, &e.Words) != nil {
			return errors.New(`"words" must be a list of strings`)
		}
		var boxes [][]float64
		if raw := value("boxes"); len(raw) > 0 {
			if json.Unmarshal(raw, &boxes) != nil {
				return errors.New(`"boxes" must be a list of [left, top, right, bottom], one for each of "words"`)
			}
			if len(boxes) != len(e.Words) {
				return fmt.Errorf("%d boxes for %d words", len(boxes), len(e.Words))
			}
		}
		for i, b := range boxes {
			box, err := unit.box(b)
			if err != nil {
				return fmt.Errorf("box of word %d: %w", i+1, err)
			}
			e.Boxes = append(e.Boxes, box)
		}
	case len(lines) > 0:
		var list []struct {
			Text string
			Box  []float64
		}
		if json.Unmarshal(lines, &list) != nil {
			return errors.New(`"lines" must be a list of objects with "text" and "box"`)
		}
		for i, line := range list {
			box, err := unit.box(line.Box)
			if err != nil {
				return fmt.Errorf("box of line %d: %w", i+1, err)
			}
			e.AddLine(line.Text, box)
		}
	default:
		text := value("text")
		if len(text) == 0 {
			text = value("context")
		}
		if len(text) == 0 || json.Unmarshal(text, &e.Text) != nil || strings.TrimSpace(e.Text) == "" || !utf8.ValidString(e.Text) {
			return errors.New(`want the document's "words" with "boxes", its "lines", or its "text"`)
		}
		return nil
	}
	if len(e.Words) == 0 {
		return errors.New("a document without words")
	}
	for i, w := range e.Words {
		if strings.TrimSpace(w) == "" || !utf8.ValidString(w) {
			return fmt.Errorf("word %d is %.40q, want text", i+1, w)
		}
	}
	e.Text = strings.Join(e.Words, " ")
	return nil
}

// page opens the picture of a page that a line names; nil where it names none.
func (s *scanner) page(raw json.RawMessage) (*Image, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var name string
	if json.Unmarshal(raw, &name) != nil || !IsImage(name) {
		return nil, fmt.Errorf(`"image" is %.80s, want a string, the path of a .png, .jpg, .jpeg, .pgm or .ppm file`, raw)
	}
	if runtime.GOOS == "js" {
		return nil, errors.New(`"image" names a file beside this one, which a browser does not open: take part with starling join`)
	}
	path, err := s.beside("image", name)
	if err != nil {
		return nil, err
	}
	m, err := OpenImage(path)
	if err != nil {
		return nil, fmt.Errorf(`"image": %w`, err)
	}
	return m, nil
}

// AddLine adds a line's words, each with its share of the line's box.
func (e *Example) AddLine(text string, box [4]uint16) {
	runes := []rune(text)
	place := func(at int) uint16 { return box[0] + uint16(int(box[2]-box[0])*at/len(runes)) }
	from := -1
	for i := 0; i <= len(runes); i++ {
		space := i == len(runes) || unicode.IsSpace(runes[i])
		switch {
		case !space && from < 0:
			from = i
		case space && from >= 0:
			e.Words = append(e.Words, string(runes[from:i]))
			e.Boxes = append(e.Boxes, [4]uint16{place(from), box[1], place(i), box[3]})
			from = -1
		}
	}
}

// pageUnit is the page's width and height in the units of its boxes.
type pageUnit [2]float64

func readUnit(value func(string) json.RawMessage) (pageUnit, error) {
	u := pageUnit{PageSide, PageSide}
	w, h := value("width"), value("height")
	if len(w) == 0 && len(h) == 0 {
		return u, nil
	}
	if json.Unmarshal(w, &u[0]) != nil || json.Unmarshal(h, &u[1]) != nil || !(u[0] > 0) || !(u[1] > 0) {
		return u, errors.New(`"width" and "height" must both be numbers above 0, or neither be given`)
	}
	return u, nil
}

// box brings two opposite corners to thousandths of the page.
func (u pageUnit) box(corners []float64) (box [4]uint16, err error) {
	if len(corners) != 4 {
		return box, fmt.Errorf("%d numbers, want left, top, right, bottom", len(corners))
	}
	for i, x := range corners {
		side := u[i%2]
		if !(x >= 0 && x <= side) {
			return box, fmt.Errorf("%v reaches beyond the page, which is %v wide and %v high", corners, u[0], u[1])
		}
		box[i] = uint16(math.Round(x / side * PageSide))
	}
	return [4]uint16{min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])}, nil
}
