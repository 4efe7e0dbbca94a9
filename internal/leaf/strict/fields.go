package strict

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/starling-fl/starling/internal/leaf/nearest"
)

// fields holds a file against the type that it is read into, where the library would read
// something else than what is there without a word: of 3.9 it makes the whole number 3,
// of 010 it makes 8, and of a text 007 that is not in quotes the text 7. A key that the type
// has not is refused here, too, with the nearest that it has.
type fields struct {
	anchors map[string]ast.Node // all that the file has
	root    reflect.Type        // of the whole file
}

func (c fields) check(n ast.Node, of reflect.Type, path string) error {
	switch at := n.(type) {
	case nil:
		return nil
	case *ast.AnchorNode:
		return c.check(at.Value, of, path)
	case *ast.AliasNode: // of what came before it: bounded has seen to that
		return c.check(c.anchors[nameOf(at.Value)], of, path)
	case *ast.TagNode:
		return c.check(at.Value, of, path)
	}
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of == reflect.TypeFor[Pairs]() || of == reflect.TypeFor[Words]() {
		return untyped(n, path)
	}
	switch kind := of.Kind(); kind { //nolint:exhaustive // of what else is written, nothing is lost
	case reflect.Interface:
		return untyped(n, path)
	case reflect.Struct:
		return c.entries(n, path, func(key string) (reflect.Type, []string) { return field(of, key) })
	case reflect.Map:
		return c.entries(n, path, func(string) (reflect.Type, []string) { return of.Elem(), nil })
	case reflect.Slice, reflect.Array:
		list, ok := n.(*ast.SequenceNode)
		if !ok {
			return nil
		}
		for _, v := range list.Values {
			if err := c.check(v, of.Elem(), path); err != nil {
				return err
			}
		}
	case reflect.String:
		return quoted(n, path)
	case reflect.Float32, reflect.Float64:
		return number(n, of, path)
	case reflect.Bool:
		if _, is := n.(*ast.StringNode); is {
			return said(n, "%s: %s", path, wanted(n.GetToken(), of))
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if of == reflect.TypeFor[time.Duration]() {
			return nil
		}
		if err := number(n, of, path); err != nil {
			return err
		}
		return whole(n, of, path)
	}
	return nil
}

// untyped refuses, where a type is not known yet, numbers that begin with a 0. Anchors stand where
// they are named.
func untyped(n ast.Node, path string) error {
	var err error
	ast.Walk(visit(func(n ast.Node) bool {
		if text := nameOf(n); err == nil && n.Type() == ast.IntegerType && octal(text) {
			err = said(n, "%s: %.40q begins with a 0: leave that out, or put it in quotes", path, text)
		}
		return err == nil
	}), n)
	return err
}

type visit func(ast.Node) bool

func (v visit) Visit(n ast.Node) ast.Visitor {
	if v(n) {
		return v
	}
	return nil
}

// entries checks each value of a mapping by the type that its key has; <<, by the mapping's.
func (c fields) entries(n ast.Node, path string, typed func(key string) (reflect.Type, []string)) error {
	var all []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		all = n.Values
	case *ast.MappingValueNode:
		all = []*ast.MappingValueNode{n}
	}
	for _, e := range all {
		if e.Key.IsMergeKey() {
			if err := c.merged(e.Value, path, typed); err != nil {
				return err
			}
			continue
		}
		key := keyOf(e.Key)
		of, known := typed(key)
		if of == nil {
			near := nearest.Question(key, "", known)
			if at := elsewhere(c.root, key); near == "" && at != "" {
				near = "; did you mean " + at + "?"
			}
			return said(e.Key, "unknown field %q%s", key, near)
		}
		if err := c.check(e.Value, of, strings.TrimPrefix(path+"."+key, ".")); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere is where a file has a key of that name, dotted: at its top or in a section. It is "" where it has none, or
// more than one.
func elsewhere(root reflect.Type, key string) string {
	for root.Kind() == reflect.Pointer {
		root = root.Elem()
	}
	if root.Kind() != reflect.Struct {
		return ""
	}
	var found []string
	if is, _ := field(root, key); is != nil {
		found = append(found, key)
	}
	_, sections := field(root, "")
	for _, name := range sections {
		in, _ := field(root, name)
		if in.Kind() != reflect.Struct {
			continue
		}
		if is, _ := field(in, key); is != nil {
			found = append(found, name+"."+key)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// keyOf is a key's text.
func keyOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MappingKeyNode:
		return keyOf(n.Value)
	case *ast.AnchorNode:
		return keyOf(n.Value)
	case *ast.TagNode:
		return keyOf(n.Value)
	}
	return nameOf(n)
}

// merged checks the mapping that << names, or each of a list of them.
func (c fields) merged(n ast.Node, path string, typed func(string) (reflect.Type, []string)) error {
	switch at := n.(type) {
	case *ast.AliasNode:
		return c.merged(c.anchors[nameOf(at.Value)], path, typed)
	case *ast.AnchorNode:
		return c.merged(at.Value, path, typed)
	case *ast.SequenceNode:
		for _, v := range at.Values {
			if err := c.merged(v, path, typed); err != nil {
				return err
			}
		}
		return nil
	}
	return c.entries(n, path, typed)
}

// field is the type of a struct's field of that key; nil, and the keys that there are, if
// there is none.
func field(of reflect.Type, key string) (reflect.Type, []string) {
	var known []string
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		if name == key {
			return f.Type, nil
		}
		known = append(known, name)
	}
	return nil, known
}

// exact bounds the whole numbers below which a float has every one.
const exact = 1 << 53

// number refuses what the library takes for one and is none, or another than was meant: what
// is infinite, and 010, which is 8 to some readers of YAML and 10 to others.
func number(n ast.Node, of reflect.Type, path string) error {
	text, infinite := n.GetToken().Value, false
	switch n.(type) {
	case *ast.IntegerNode:
		if octal(text) {
			return said(n, "%s: %.40q begins with a 0: leave that out", path, text)
		}
	case *ast.InfinityNode, *ast.NanNode:
		infinite = true
	case *ast.LiteralNode:
		return said(n, "%s: a block of text is not a number", path)
	case *ast.StringNode: // 1e400, or a word for it
		f, err := strconv.ParseFloat(text, 64)
		if infinite = math.IsInf(f, 0) || math.IsNaN(f); err != nil && !infinite {
			return said(n, "%s: %s", path, wanted(n.GetToken(), of))
		}
	}
	if infinite {
		return said(n, "%s: %.40q is not a number in range", path, text)
	}
	return nil
}

// whole refuses a number with a fraction, one that a float does not hold exactly, and one that
// the type does not. 64.0 and 1e3 are whole.
func whole(n ast.Node, of reflect.Type, path string) error {
	refuse := func(more string) error { return said(n, "%s: %s%s", path, wanted(n.GetToken(), of), more) }
	zero, f := reflect.Zero(of), 0.0
	switch n := n.(type) {
	case *ast.IntegerNode:
		low, _ := n.Value.(int64) // which is not negative otherwise
		high, _ := n.Value.(uint64)
		if zero.CanUint() && (low < 0 || zero.OverflowUint(high)) || zero.CanInt() && (zero.OverflowInt(low) || high > math.MaxInt64 || zero.OverflowInt(int64(high))) {
			return refuse(" in range")
		}
		return nil
	case *ast.FloatNode:
		f = n.Value
	case *ast.StringNode:
		f, _ = strconv.ParseFloat(n.Value, 64)
	default:
		return nil // nothing, or what the library refuses
	}
	switch {
	case f != math.Trunc(f):
		return refuse("")
	case math.Abs(f) >= exact || zero.CanUint() && f < 0 || zero.CanInt() && zero.OverflowInt(int64(f)) || zero.CanUint() && zero.OverflowUint(uint64(f)):
		return refuse(" in range")
	}
	return nil
}

func octal(text string) bool {
	text = strings.ReplaceAll(strings.TrimLeft(text, "+-"), "_", "")
	return len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9'
}

// quoted refuses a number in the place of a text that would not be written as it stands.
func quoted(n ast.Node, path string) error {
	var value any
	switch n := n.(type) {
	case *ast.IntegerNode:
		value = n.Value
	case *ast.FloatNode:
		value = n.Value
	default:
		return nil
	}
	if text := n.GetToken().Value; fmt.Sprint(value) != text {
		return said(n, "%s: %.40q is read as the number %v: put it in quotes", path, text, value)
	}
	return nil
}

// said is an error at a place of the file.
func said(n ast.Node, format string, a ...any) error {
	return &yaml.SyntaxError{Message: fmt.Sprintf(format, a...), Token: n.GetToken()}
}
