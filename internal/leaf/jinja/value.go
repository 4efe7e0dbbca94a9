package jinja

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
)

// A value is nil (none), undefined, a bool, int64, float64, string, markup, *list, *Dict, *space, loop
// or function.
type value = any

// undefined is what a name stands for that nothing has been given to: nothing, where it is
// printed or asked for its truth, and an error where anything else is wanted of it.
type undefined struct{ name string }

// list is a list or a tuple. It is not changed once it is made.
type list struct {
	items  []value
	tuple  bool
	fields []string // names of a tuple's items; nil for none
}

// markup is a text that "safe" or "escape" made: what is added to it is escaped. Whatever else is done with it makes
// a plain text of it.
type markup string

// plain is a value without its markup.
func plain(v value) value {
	if m, ok := v.(markup); ok {
		return string(m)
	}
	return v
}

// Dict keeps its keys in the order in which they came.
type Dict struct {
	keys   []value
	values map[value]value
}

// Set puts a value under a key, which is a string, a number, a bool or nil.
func (d *Dict) Set(key string, v any) { d.set(key, v) }

func (d *Dict) set(key, v value) {
	if d.values == nil {
		d.values = map[value]value{}
	}
	if _, known := d.values[key]; !known {
		d.keys = append(d.keys, key)
	}
	d.values[key] = v
}

// get is the value under a key; a string never names a number's.
func (d *Dict) get(key value) (value, bool) {
	switch key.(type) {
	case nil, bool, int64, float64, string:
		v, ok := d.values[key]
		return v, ok
	}
	return nil, false
}

// space is a namespace: what may be changed within a loop.
type space struct{ vars map[string]value }

// loop is where a loop is.
type loop struct {
	items []value
	i     int
}

// function is what may be called.
type function func(r *run, a given) (value, error)

// List is a list of values, for a caller of Run.
func List(items ...any) any { return &list{items: items} }

// Items are a list's.
func Items(v any) ([]any, bool) {
	l, ok := v.(*list)
	if !ok {
		return nil, false
	}
	return l.items, true
}

// Text is the text under a key of a Dict.
func Text(v any, key string) (string, bool) {
	d, ok := v.(*Dict)
	if !ok {
		return "", false
	}
	s, ok := d.values[key].(string)
	return s, ok
}

// All goes over a Dict's keys that are texts, in order, with their values; over nothing of anything else.
func All(v any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		d, ok := v.(*Dict)
		if !ok {
			return
		}
		for _, k := range d.keys {
			if name, ok := k.(string); ok && !yield(name, d.values[k]) {
				return
			}
		}
	}
}

// Get is the value under a key of a Dict.
func (d *Dict) Get(key string) (v any, ok bool) { return d.get(key) }

// Empty reports whether a value is none, or an empty text, list or Dict.
func Empty(v any) bool {
	switch v.(type) {
	case nil, string, *list, *Dict:
		return !truth(v)
	}
	return false
}

func truth(v value) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case markup:
		return v != ""
	case *list:
		return len(v.items) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// number is what arithmetic makes of a value: a bool is 0 or 1.
func number(v value) (f float64, whole int64, isWhole, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, 1, true, true
		}
		return 0, 0, true, true
	case int64:
		return float64(v), v, true, true
	case float64:
		return v, 0, false, true
	}
	return 0, 0, false, false
}

// equal compares as Python does. The depth of values is bounded where they are made.
func (r *run) equal(a, b value) (bool, error) {
	if err := r.step(); err != nil {
		return false, err
	}
	if x, _, _, ok := number(a); ok {
		y, _, _, is := number(b)
		return is && x == y, nil
	}
	switch a := a.(type) {
	case nil:
		return b == nil, nil
	case undefined:
		_, is := b.(undefined)
		return is, nil
	case string:
		s, is := b.(string)
		if !is || len(a) != len(s) {
			return false, nil
		}
		return a == s, r.charge(len(a))
	case *list:
		l, is := b.(*list)
		if !is || len(a.items) != len(l.items) || a.tuple != l.tuple {
			return false, nil
		}
		for i := range a.items {
			if same, err := r.equal(a.items[i], l.items[i]); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case *Dict:
		d, is := b.(*Dict)
		if !is || len(a.keys) != len(d.keys) {
			return false, nil
		}
		for _, k := range a.keys {
			if err := r.touch(k); err != nil {
				return false, err
			}
			v, has := d.values[k]
			if !has {
				return false, nil
			}
			if same, err := r.equal(a.values[k], v); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case *space:
		s, is := b.(*space)
		return is && a == s, nil
	}
	return false, nil
}

// order compares numbers with numbers and texts with texts.
func (r *run) order(a, b value) (int, error) {
	if x, _, _, ok := number(a); ok {
		if y, _, _, ok := number(b); ok {
			return cmp.Compare(x, y), nil
		}
	}
	x, isX := a.(string)
	y, isY := b.(string)
	if isX && isY {
		return strings.Compare(x, y), r.charge(min(len(x), len(y)))
	}
	return 0, r.fail("%s and %s have no order", kindOf(a), kindOf(b))
}

// kindOf names a value's kind for people.
func kindOf(v value) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case undefined:
		return fmt.Sprintf("%.40q", v.name) + ", which is not defined,"
	case bool:
		return "a bool"
	case int64, float64:
		return "a number"
	case string:
		return "a text"
	case *list:
		return "a list"
	case *Dict:
		return "a mapping"
	case *space:
		return "a namespace"
	case loop:
		return "a loop"
	}
	return "a function"
}

// text is what Python's str gives.
func (r *run) text(v value) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case markup:
		return string(v), nil
	case undefined:
		return "", nil
	}
	var b strings.Builder
	err := r.show(&b, v, 0)
	return b.String(), err
}

// show writes what Python's repr gives.
func (r *run) show(b *strings.Builder, v value, depth int) error {
	if depth > maxDepth {
		return r.beyond("a value nests deeper than %d", maxDepth)
	}
	if err := r.step(); err != nil {
		return err
	}
	began := b.Len()
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case undefined:
		b.WriteString("Undefined")
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(floatText(v))
	case string:
		return r.quote(b, v)
	case *list:
		open, shut := "[", "]"
		if v.tuple {
			open, shut = "(", ")"
		}
		b.WriteString(open)
		for i, x := range v.items {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := r.show(b, x, depth+1); err != nil {
				return err
			}
		}
		if v.tuple && len(v.items) == 1 {
			b.WriteString(",")
		}
		b.WriteString(shut)
	case *Dict:
		b.WriteString("{")
		for i, k := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := r.show(b, k, depth+1); err != nil {
				return err
			}
			if err := r.touch(k); err != nil {
				return err
			}
			b.WriteString(": ")
			if err := r.show(b, v.values[k], depth+1); err != nil {
				return err
			}
		}
		b.WriteString("}")
	default:
		return r.fail("%s is not printed", kindOf(v))
	}
	return r.charge(b.Len() - began)
}

// quote is Python's repr of a text, but for letters that no terminal shows.
func (r *run) quote(b *strings.Builder, s string) error {
	if err := r.charge(2 * len(s)); err != nil {
		return err
	}
	mark, shown := "'", inSingle
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		mark, shown = `"`, inDouble
	}
	b.WriteString(mark + shown.Replace(s) + mark)
	return nil
}

// What a text's letters are in quotes of either kind.
var (
	inDouble = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`)
	inSingle = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "'", `\'`)
)

// floatText is Python's repr of a float.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return map[bool]string{true: "inf", false: "-inf"}[f > 0]
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		s := strconv.FormatFloat(f, 'e', -1, 64)
		return s
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
