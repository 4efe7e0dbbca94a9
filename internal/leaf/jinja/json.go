package jinja

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FromJSON makes values of JSON, with keys in their order and numbers as Python reads them.
func FromJSON(data []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	v, err := decode(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("jinja: data after the JSON")
	}
	return v, nil
}

func decode(d *json.Decoder, depth int) (value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: JSON nests deeper than %d", ErrLimit, maxDepth)
	}
	t, err := nextToken(d)
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return n, nil
		}
		f, err := t.Float64()
		if err != nil {
			return nil, fmt.Errorf("jinja: number %.40s in JSON: %w", t, err)
		}
		return f, nil
	case json.Delim:
		if t == '[' {
			l := &list{}
			for d.More() {
				v, err := decode(d, depth+1)
				if err != nil {
					return nil, err
				}
				l.items = append(l.items, v)
			}
			_, err := nextToken(d)
			return l, err
		}
		m := &Dict{}
		for d.More() {
			key, err := nextToken(d)
			if err != nil {
				return nil, err
			}
			v, err := decode(d, depth+1)
			if err != nil {
				return nil, err
			}
			m.set(key, v)
		}
		_, err := nextToken(d)
		return m, err
	}
	return t, nil // a string, a bool or nil
}

func nextToken(d *json.Decoder) (json.Token, error) {
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("jinja: JSON: %w", err)
	}
	return t, nil
}

// toJSON is json.dumps with letters as they are, as transformers' tojson.
func toJSON(r *run, x value, a given) (value, error) {
	w := jsonWriter{r: r, item: ", ", key: ": ", indent: -1, sorted: truth(a.named["sort_keys"]), ascii: truth(a.named["ensure_ascii"])}
	for name := range a.named {
		if !slices.Contains([]string{"indent", "separators", "sort_keys", "ensure_ascii"}, name) {
			return nil, r.fail("tojson's %.40q is not known here", name)
		}
	}
	if v := a.named["indent"]; v != nil {
		n, err := r.whole(v, "tojson's indent")
		if err != nil {
			return nil, err
		}
		if n < 0 || n > 100 {
			return nil, r.fail("tojson's indent is %d, want 0..100", n)
		}
		w.indent, w.item = n, ","
	}
	if v := a.named["separators"]; v != nil {
		l, ok := v.(*list)
		if !ok || len(l.items) != 2 {
			return nil, r.fail("tojson's separators are two texts")
		}
		item, isItem := l.items[0].(string)
		key, isKey := l.items[1].(string)
		if !isItem || !isKey {
			return nil, r.fail("tojson's separators are two texts")
		}
		w.item, w.key = item, key
	}
	if len(a.list) > 0 {
		return nil, r.fail("tojson takes arguments by their names")
	}
	err := w.write(x, 0)
	return w.b.String(), err
}

type jsonWriter struct {
	r             *run
	b             strings.Builder
	item, key     string
	indent        int // -1: all on one line
	sorted, ascii bool
}

func (w *jsonWriter) put(s string) error {
	if err := w.r.charge(len(s)); err != nil {
		return err
	}
	w.b.WriteString(s)
	return nil
}

// line begins one, where there are lines.
func (w *jsonWriter) line(depth int) error {
	if w.indent < 0 {
		return nil
	}
	return w.put("\n" + strings.Repeat(" ", w.indent*depth))
}

// inside writes n parts between two signs.
func (w *jsonWriter) inside(open, shut string, n, depth int, part func(i int) error) error {
	if err := w.put(open); err != nil || n == 0 {
		if err != nil {
			return err
		}
		return w.put(shut)
	}
	for i := range n {
		if i > 0 {
			if err := w.put(w.item); err != nil {
				return err
			}
		}
		if err := w.line(depth + 1); err != nil {
			return err
		}
		if err := part(i); err != nil {
			return err
		}
	}
	if err := w.line(depth); err != nil {
		return err
	}
	return w.put(shut)
}

func (w *jsonWriter) write(v value, depth int) error {
	if depth > maxDepth {
		return w.r.beyond("a value nests deeper than %d", maxDepth)
	}
	if err := w.r.step(); err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
		return w.put("null")
	case bool:
		return w.put(strconv.FormatBool(v))
	case int64:
		return w.put(strconv.FormatInt(v, 10))
	case float64:
		return w.put(floatText(v))
	case string:
		return w.quote(v)
	case *list:
		return w.inside("[", "]", len(v.items), depth, func(i int) error { return w.write(v.items[i], depth+1) })
	case *Dict:
		keys := v.keys
		if w.sorted {
			keys = slices.Clone(keys)
			if err := w.r.lists(len(keys)); err != nil {
				return err
			}
			if err := w.r.sorted(keys, func(a, b value) (int, error) {
				x, _ := a.(string)
				y, _ := b.(string)
				return w.r.order(x, y)
			}); err != nil {
				return err
			}
		}
		return w.inside("{", "}", len(keys), depth, func(i int) error {
			name, ok := keys[i].(string)
			if !ok {
				return w.r.fail("%s is a key of JSON", kindOf(keys[i]))
			}
			if err := w.quote(name); err != nil {
				return err
			}
			if err := w.put(w.key); err != nil {
				return err
			}
			return w.write(v.values[keys[i]], depth+1)
		})
	}
	return w.r.fail("%s is not JSON", kindOf(v))
}

func (w *jsonWriter) quote(s string) error {
	if err := w.r.charge(6*len(s) + 2); err != nil {
		return err
	}
	w.b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			w.b.WriteByte('\\')
			w.b.WriteRune(c)
		case strings.ContainsRune("\n\r\t\b\f", c):
			w.b.WriteString(map[rune]string{'\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}[c])
		case c < 0x20 || w.ascii && c > 0x7e:
			if c > 0xffff {
				c -= 0x10000
				fmt.Fprintf(&w.b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
				continue
			}
			fmt.Fprintf(&w.b, `\u%04x`, c)
		default:
			w.b.WriteRune(c)
		}
	}
	w.b.WriteByte('"')
	if !utf8.ValidString(s) {
		return w.r.fail("a text is not UTF-8")
	}
	return nil
}
