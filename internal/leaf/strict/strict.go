// Package strict reads YAML files that people write: an unknown key is an error that names it and
// its line. It is the only reader of YAML here: a file comes from anywhere, so that its length, its
// depth and its expanded aliases are bounded before the library's parser sees it.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Pairs is a mapping whose keys keep their order.
type Pairs = yaml.MapSlice

// Words are a text, a number or a truth as it is written, or a list of them.
type Words []string

// UnmarshalYAML reads them.
func (w *Words) UnmarshalYAML(n ast.Node) error {
	all := []ast.Node{n}
	if list, is := n.(*ast.SequenceNode); is {
		all = list.Values
	}
	for _, n := range all {
		switch n := n.(type) {
		case *ast.LiteralNode:
			*w = append(*w, n.Value.Value)
		case *ast.StringNode:
			*w = append(*w, n.Value)
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			*w = append(*w, n.GetToken().Value)
		default:
			return said(n, "want a text, a number or a list of them")
		}
	}
	return nil
}

// Read decodes all of r, of which it reads at most the size of a file.
func Read(r io.Reader, v any) error {
	b, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	if len(b) > MaxBytes {
		return refuse(0, "more than %d bytes", MaxBytes)
	}
	return Decode(b, v)
}

// Decode reads b into v and changes only the fields that b names; an empty b names none. The parser
// gives up on some files by a panic (a tag before a mapping where a list is wanted): that, too, is
// an error.
func Decode(b []byte, v any) (err error) {
	if !named(b) { // the parser would clear v
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the YAML parser cannot read it: %v", r)
		}
	}()
	body, anchors, tokens, err := bounded(b)
	if err != nil {
		return err
	}
	if err := (fields{anchors, reflect.TypeOf(v)}).check(body, reflect.TypeOf(v), ""); err != nil {
		return fail(err, tokens)
	}
	if err := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict()).Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return fail(err, tokens)
	}
	return nil
}

// Encode writes v as YAML.
func Encode(v any) ([]byte, error) {
	b, err := yaml.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	return b, nil
}

// Explain is an error of Decode in the parser's words, with the lines around it where
// source is set.
func Explain(err error, source bool) string { return yaml.FormatError(err, false, source) }

// Unplaced strips the line from an error of Decode, for text that no user wrote.
func Unplaced(err error) error {
	var e yaml.Error
	if errors.As(err, &e) {
		return errors.New(e.GetMessage())
	}
	return err
}

// named reports whether b holds anything but comments.
func named(b []byte) bool {
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return true
		}
	}
	return false
}
