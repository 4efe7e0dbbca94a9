package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// globals are the functions that every template has.
var globals = map[string]function{
	"range":           rangeOf,
	"namespace":       namespaceOf,
	"dict":            dictOf,
	"raise_exception": raise,
	"strftime_now":    strftime,
}

func rangeOf(r *run, a given) (value, error) {
	var parts []int
	for _, v := range a.list {
		n, err := r.whole(v, "a range's part")
		if err != nil {
			return nil, err
		}
		parts = append(parts, n)
	}
	from, to, step := 0, 0, 1
	switch len(parts) {
	case 1:
		to = parts[0]
	case 2:
		from, to = parts[0], parts[1]
	case 3:
		from, to, step = parts[0], parts[1], parts[2]
	default:
		return nil, r.fail("range takes one to three numbers")
	}
	if step == 0 {
		return nil, r.fail("a range's step is 0")
	}
	n := 0
	if step > 0 && to > from {
		n = (to - from + step - 1) / step
	} else if step < 0 && to < from {
		n = (from - to - step - 1) / -step
	}
	if err := r.lists(n); err != nil {
		return nil, err
	}
	l := &list{}
	for i := range n {
		l.items = append(l.items, int64(from+i*step))
	}
	return l, nil
}

func namespaceOf(r *run, a given) (value, error) {
	if len(a.list) > 0 {
		return nil, r.fail("a namespace takes names with values")
	}
	s := &space{vars: map[string]value{}}
	for name, v := range a.named {
		s.vars[name] = v
	}
	return s, nil
}

func dictOf(r *run, a given) (value, error) {
	d := &Dict{}
	for _, v := range a.list {
		pairs := v
		if of, ok := v.(*Dict); ok {
			var err error
			if pairs, err = r.pairs(of); err != nil {
				return nil, err
			}
		}
		items, err := r.items(pairs)
		if err != nil {
			return nil, err
		}
		if len(a.list) > 1 {
			return nil, r.fail("dict takes one mapping or list of pairs, and names with values")
		}
		for _, item := range items {
			pair, ok := item.(*list)
			if !ok || len(pair.items) != 2 {
				return nil, r.fail("dict takes pairs, not %s", kindOf(item))
			}
			switch key := pair.items[0].(type) {
			case nil, bool, int64, float64, string:
				if err := r.touch(key); err != nil {
					return nil, err
				}
				d.set(key, pair.items[1])
			default:
				return nil, r.fail("%s is no key", kindOf(key))
			}
		}
	}
	if err := r.lists(4 * len(a.names)); err != nil {
		return nil, err
	}
	for _, name := range a.names {
		d.set(name, a.named[name])
	}
	return d, nil
}

func raise(r *run, a given) (value, error) {
	s, _ := a.at(0, "message", "").(string)
	return nil, r.fail("the template refuses: %.300s", s)
}

// formats are strftime's, in Go's.
var formats = map[byte]string{'d': "02", 'b': "Jan", 'B': "January", 'Y': "2006", 'm': "01", 'y': "06", 'H': "15", 'M': "04", 'S': "05",
	'a': "Mon", 'A': "Monday", 'I': "03", 'p': "PM", 'j': "002"}

func strftime(r *run, a given) (value, error) {
	format, ok := a.at(0, "format", nil).(string)
	if !ok {
		return nil, r.fail("strftime_now takes a format")
	}
	if err := r.charge(16 * len(format)); err != nil {
		return nil, err
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch f, known := formats[format[i]]; {
		case known:
			b.WriteString(r.now.Format(f))
		case format[i] == '%':
			b.WriteByte('%')
		default:
			return nil, r.fail("strftime's %%%c is not known here", format[i])
		}
	}
	return b.String(), nil
}

// method is a function that belongs to a value; nil if there is none of that name.
func method(x value, name string) value {
	switch x := x.(type) {
	case string:
		if f, ok := textMethods[name]; ok {
			return function(func(r *run, a given) (value, error) { return f(r, x, a) })
		}
		if f, ok := moreTextMethods[name]; ok {
			return function(func(r *run, a given) (value, error) { return f(r, x, a) })
		}
	case *list:
		if name == "index" || name == "count" {
			return function(func(r *run, a given) (value, error) { return r.seek(x.items, name, a) })
		}
	case *Dict:
		if f, ok := dictMethods[name]; ok {
			return function(func(r *run, a given) (value, error) { return f(r, x, a) })
		}
	}
	return nil
}

var dictMethods = map[string]func(r *run, d *Dict, a given) (value, error){
	"keys": func(r *run, d *Dict, _ given) (value, error) { return &list{items: d.keys}, r.lists(len(d.keys)) },
	"values": func(r *run, d *Dict, _ given) (value, error) {
		v, err := r.pairs(d)
		if err != nil {
			return nil, err
		}
		l := v.(*list)
		for i, pair := range l.items {
			l.items[i] = pair.(*list).items[1]
		}
		return l, nil
	},
	"items": func(r *run, d *Dict, _ given) (value, error) { return r.pairs(d) },
	"get": func(r *run, d *Dict, a given) (value, error) {
		key := a.at(0, "key", nil)
		if err := r.touch(key); err != nil {
			return nil, err
		}
		if v, ok := d.get(key); ok {
			return v, nil
		}
		return a.at(1, "default", nil), nil
	},
}

func (r *run) pairs(d *Dict) (value, error) {
	if err := r.lists(3 * len(d.keys)); err != nil {
		return nil, err
	}
	l := &list{}
	for _, k := range d.keys {
		if err := r.touch(k); err != nil {
			return nil, err
		}
		l.items = append(l.items, &list{items: []value{k, d.values[k]}, tuple: true})
	}
	return l, nil
}

// made is a text that a method has made of another.
func made(f func(string) string) func(r *run, s string, a given) (value, error) {
	return func(r *run, s string, a given) (value, error) {
		if len(a.list)+len(a.named) > 0 {
			return nil, r.fail("a method of texts takes no argument")
		}
		if err := r.charge(lowerCost * len(s)); err != nil {
			return nil, err
		}
		return f(s), nil
	}
}

// stripped cuts letters off a text's ends, white space where none are named.
func stripped(cut func(string, func(rune) bool) string) func(r *run, s string, a given) (value, error) {
	return func(r *run, s string, a given) (value, error) {
		if err := r.charge(len(s)); err != nil {
			return nil, err
		}
		switch letters := a.at(0, "chars", nil).(type) {
		case nil:
			return cut(s, unicode.IsSpace), nil
		case string:
			if err := r.charge(8 * len(letters)); err != nil {
				return nil, err
			}
			set := make(map[rune]bool, len(letters))
			for _, c := range letters {
				set[c] = true
			}
			return cut(s, func(c rune) bool { return set[c] }), nil
		}
		return nil, r.fail("letters that are cut off are a text")
	}
}

// ends reports whether a text begins or ends with another, or with one of some.
func ends(has func(s, with string) bool) func(r *run, s string, a given) (value, error) {
	return func(r *run, s string, a given) (value, error) {
		if len(a.list) != 1 {
			return nil, r.fail("a text is asked for one beginning or end")
		}
		options := a.list[:1]
		if l, ok := options[0].(*list); ok && l.tuple {
			options = l.items
		}
		for _, o := range options {
			with, ok := o.(string)
			if !ok {
				return nil, r.fail("a text's beginning or end is %s, want a text", kindOf(o))
			}
			if err := r.charge(1 + min(len(s), len(with))); err != nil {
				return nil, err
			}
			if has(s, with) {
				return true, nil
			}
		}
		return false, nil
	}
}

var textMethods = map[string]func(r *run, s string, a given) (value, error){
	"strip":      stripped(strings.TrimFunc),
	"lstrip":     stripped(strings.TrimLeftFunc),
	"rstrip":     stripped(strings.TrimRightFunc),
	"startswith": ends(strings.HasPrefix),
	"endswith":   ends(strings.HasSuffix),
	"upper":      made(strings.ToUpper),
	"lower":      made(strings.ToLower),
	"title":      made(pythonTitle),
	"capitalize": made(capitalized),
	"split":      split,
	"replace":    replaced,
	"join": func(r *run, s string, a given) (value, error) {
		items, err := r.items(a.at(0, "iterable", nil))
		if err != nil {
			return nil, err
		}
		return r.joined(items, s)
	},
	"find": func(r *run, s string, a given) (value, error) {
		sub, ok := a.at(0, "sub", nil).(string)
		if !ok || len(a.list) != 1 {
			return nil, r.fail("find takes a text")
		}
		if err := r.charge(2*len(s) + len(sub)); err != nil {
			return nil, err
		}
		i := strings.Index(s, sub)
		if i > 0 {
			i = utf8.RuneCountInString(s[:i])
		}
		return int64(i), nil
	},
}

// pythonTitle is str.title: every word's first letter large, the others small.
func pythonTitle(s string) string {
	before := false
	return strings.Map(func(c rune) rune {
		was := before
		if before = unicode.IsLetter(c); was {
			return unicode.ToLower(c)
		}
		return unicode.ToTitle(c)
	}, s)
}

func capitalized(s string) string {
	for i, c := range s {
		if i > 0 {
			return strings.ToUpper(s[:i]) + strings.ToLower(s[i:])
		}
		_ = c
	}
	return strings.ToUpper(s)
}

// split is str.split, with a separator or at white space.
func split(r *run, s string, a given) (value, error) {
	if err := r.charge(len(s)); err != nil {
		return nil, err
	}
	most := -1
	if v := a.at(1, "maxsplit", nil); v != nil {
		n, err := r.whole(v, "maxsplit")
		if err != nil {
			return nil, err
		}
		most = n
	}
	l := &list{}
	switch sep := a.at(0, "sep", nil).(type) {
	case nil:
		if err := r.lists(len(s)/2 + 1); err != nil {
			return nil, err
		}
		for s = strings.TrimLeftFunc(s, unicode.IsSpace); s != ""; s = strings.TrimLeftFunc(s, unicode.IsSpace) {
			at := strings.IndexFunc(s, unicode.IsSpace)
			if at < 0 || most >= 0 && len(l.items) == most {
				at = len(s)
			}
			l.items = append(l.items, s[:at])
			s = s[at:]
		}
		return l, nil
	case string:
		if sep == "" {
			return nil, r.fail("an empty separator")
		}
		if err := r.charge(len(sep)); err != nil {
			return nil, err
		}
		n := 1 + strings.Count(s, sep)
		if most >= 0 {
			n = min(n, most+1)
		}
		if err := r.lists(2 * n); err != nil {
			return nil, err
		}
		for _, w := range strings.SplitN(s, sep, n) {
			l.items = append(l.items, w)
		}
		return l, nil
	}
	return nil, r.fail("a separator is a text")
}

// replaced is str.replace.
func replaced(r *run, s string, a given) (value, error) {
	old, isOld := a.at(0, "old", nil).(string)
	by, isBy := a.at(1, "new", nil).(string)
	if !isOld || !isBy {
		return nil, r.fail("replace takes two texts")
	}
	n := -1
	if v := a.at(2, "count", nil); v != nil {
		var err error
		if n, err = r.whole(v, "count"); err != nil {
			return nil, err
		}
	}
	if err := r.charge(len(s) + len(old)); err != nil {
		return nil, err
	}
	if grown := len(by) - len(old); grown > 0 || old == "" {
		if times := strings.Count(s, old); times > 0 && times > (r.room-len(s))/max(1, len(by)) {
			return nil, r.beyond("more than %d bytes", r.most.Bytes)
		}
	}
	out := strings.Replace(s, old, by, n)
	return out, r.charge(len(s) + len(out))
}
