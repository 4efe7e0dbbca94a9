package jinja

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// in reports whether a value is within another.
func (r *run) in(x, of value) (bool, error) {
	switch of := of.(type) {
	case string:
		s, ok := x.(string)
		if !ok {
			return false, r.fail("%s is looked for in a text", kindOf(x))
		}
		if err := r.charge(len(of) + len(s)); err != nil {
			return false, err
		}
		return strings.Contains(of, s), nil
	case *Dict:
		if err := r.touch(x); err != nil {
			return false, err
		}
		_, has := of.get(x)
		return has, nil
	case undefined:
		return false, nil
	}
	items, err := r.items(of)
	if err != nil {
		return false, err
	}
	for _, v := range items {
		if same, err := r.equal(x, v); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// attribute is x.name: what Python's getattr gives, or else the item.
func (r *run) attribute(x value, name string) (value, error) {
	if err := r.charge(len(name)); err != nil {
		return nil, err
	}
	if m := method(x, name); m != nil {
		return m, nil
	}
	switch x := x.(type) {
	case *space:
		if v, ok := x.vars[name]; ok {
			return v, nil
		}
	case loop:
		return x.attribute(name), nil
	case *Dict:
		if v, ok := x.values[name]; ok {
			return v, nil
		}
	case *list:
		if i := slices.Index(x.fields, name); i >= 0 {
			return x.items[i], nil
		}
	case undefined:
		return nil, r.fail("%s has no %q", kindOf(x), name)
	}
	return undefined{name}, nil
}

// item is x[key].
func (r *run) item(x, key value) (value, error) {
	_, n, isWhole, ok := number(key)
	at := func(length int) (int, bool) {
		if n < 0 {
			n += int64(length)
		}
		return int(n), n >= 0 && n < int64(length)
	}
	if err := r.touch(key); err != nil {
		return nil, err
	}
	switch x := x.(type) {
	case *Dict:
		if v, has := x.get(key); has {
			return v, nil
		}
		if s, isText := key.(string); isText {
			if m := method(x, s); m != nil {
				return m, nil
			}
		}
	case *list:
		if ok && isWhole {
			if i, within := at(len(x.items)); within {
				return x.items[i], nil
			}
		}
	case string:
		if ok && isWhole {
			if err := r.charge(len(x)); err != nil {
				return nil, err
			}
			if i, within := at(utf8.RuneCountInString(x)); within {
				return letter(x, i), nil
			}
		}
	case undefined:
		return nil, r.fail("%s has no items", kindOf(x))
	case *space:
		if s, isText := key.(string); isText {
			return r.attribute(x, s)
		}
	}
	name, _ := key.(string)
	return undefined{name}, nil
}

// letter is the character of a text at a place that it has.
func letter(s string, at int) string {
	for _, c := range s {
		if at--; at < 0 {
			return string(c)
		}
	}
	return ""
}

// slice is x[from:to:step], as Python cuts.
func (r *run) slice(n *node, x value) (value, error) {
	var parts [3]*int
	for i := range parts {
		if n.kids[i+1].op == opNone {
			continue
		}
		v, err := r.value(&n.kids[i+1])
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		at, err := r.whole(v, "a slice's part")
		if err != nil {
			return nil, err
		}
		parts[i] = &at
	}
	pick := func(length int) (indices []int, err error) {
		step := 1
		if parts[2] != nil {
			step = *parts[2]
		}
		if step == 0 {
			return nil, r.fail("a slice's step is 0")
		}
		low, high, from, to := 0, length, 0, length
		if step < 0 {
			low, high, from, to = -1, length-1, length-1, -1
		}
		clip := func(p *int, def int) int {
			if p == nil {
				return def
			}
			i := *p
			if i < 0 {
				i += length
			}
			return max(low, min(high, i))
		}
		from, to = clip(parts[0], from), clip(parts[1], to)
		if err := r.lists(length); err != nil {
			return nil, err
		}
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			indices = append(indices, i)
		}
		return indices, nil
	}
	switch x := x.(type) {
	case *list:
		indices, err := pick(len(x.items))
		if err != nil {
			return nil, err
		}
		out := &list{tuple: x.tuple}
		for _, i := range indices {
			out.items = append(out.items, x.items[i])
		}
		return out, nil
	case string:
		if err := r.charge(len(x)); err != nil {
			return nil, err
		}
		indices, err := pick(utf8.RuneCountInString(x))
		if err != nil {
			return nil, err
		}
		letters := []rune(x)
		var b strings.Builder
		for _, i := range indices {
			b.WriteRune(letters[i])
		}
		return b.String(), nil
	}
	return nil, r.fail("%s is not sliced", kindOf(x))
}
