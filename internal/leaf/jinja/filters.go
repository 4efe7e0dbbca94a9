package jinja

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// filter is what `x | name` does.
type filter func(r *run, x value, a given) (value, error)

// filters are those that a template has; a run holds them, as one of them asks for others.
var filters = map[string]filter{
	"tojson": toJSON, "length": length, "count": length, "join": join, "default": fallback, "d": fallback,
	"trim": onText("strip"), "upper": onText("upper"), "lower": onText("lower"), "title": onText("title"), "capitalize": onText("capitalize"),
	"replace": onText("replace"), "string": func(r *run, x value, _ given) (value, error) { return r.text(x) },
	"safe": func(r *run, x value, _ given) (value, error) {
		s, err := r.text(x)
		return markup(s), err
	},
	"escape": escape_, "e": escape_,
	"min": extreme(-1), "max": extreme(1), "sort": sortOf, "unique": unique, "groupby": groupBy, "sum": sumOf, "round": roundOf, "batch": batch,
	"format":    func(r *run, x value, a given) (value, error) { return formatOf(r, x, a) },
	"wordcount": func(r *run, x value, _ given) (value, error) { return words(r, x) },
	"attr": func(r *run, x value, a given) (value, error) {
		name, _ := a.at(0, "name", "").(string)
		if _, ok := x.(*Dict); ok { // whose items are no attributes
			return undefined{name}, r.charge(len(name))
		}
		return r.attribute(x, name)
	},
	"list": func(r *run, x value, _ given) (value, error) {
		items, err := r.items(x)
		return &list{items: items}, err
	},
	"first": end(func(items []value) value { return items[0] }), "last": end(func(items []value) value { return items[len(items)-1] }),
	"reverse": reverse, "items": itemsOf, "dictsort": dictsort, "int": toInt, "float": toFloat, "indent": indent,
	"map": mapped, "select": picked(true, false), "reject": picked(false, false), "selectattr": picked(true, true), "rejectattr": picked(false, true),
	"abs": func(r *run, x value, _ given) (value, error) {
		if f, _, _, ok := number(x); ok && f < 0 {
			return r.unary("-", x)
		}
		return x, nil
	},
}

// onText is a filter that is a text's method.
func onText(name string) func(r *run, x value, a given) (value, error) {
	return func(r *run, x value, a given) (value, error) {
		s, err := r.text(x)
		if err != nil {
			return nil, err
		}
		return textMethods[name](r, s, a)
	}
}

func length(r *run, x value, _ given) (value, error) {
	switch x := x.(type) {
	case string:
		return int64(utf8.RuneCountInString(x)), r.charge(len(x))
	case *list:
		return int64(len(x.items)), nil
	case *Dict:
		return int64(len(x.keys)), nil
	case undefined:
		return int64(0), nil
	}
	return nil, r.fail("%s has no length", kindOf(x))
}

func join(r *run, x value, a given) (value, error) {
	sep, ok := a.at(0, "d", "").(string)
	if !ok {
		return nil, r.fail("join takes a text")
	}
	items, err := r.items(x)
	if err != nil {
		return nil, err
	}
	if name, ok := a.at(1, "attribute", nil).(string); ok {
		if items, err = r.attributes(items, name); err != nil {
			return nil, err
		}
	}
	return r.joined(items, sep)
}

func (r *run) joined(items []value, sep string) (value, error) {
	var b strings.Builder
	for i, v := range items {
		s, err := r.text(v)
		if err != nil {
			return nil, err
		}
		if err := r.charge(8 + len(s) + len(sep)); err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func fallback(_ *run, x value, a given) (value, error) {
	if _, un := x.(undefined); un || truth(a.at(1, "boolean", false)) && !truth(x) {
		return a.at(0, "default_value", ""), nil
	}
	return x, nil
}

func end(of func([]value) value) func(r *run, x value, a given) (value, error) {
	return func(r *run, x value, _ given) (value, error) {
		items, err := r.items(x)
		if err != nil || len(items) == 0 {
			return undefined{"an end of nothing"}, err
		}
		return of(items), nil
	}
}

func reverse(r *run, x value, _ given) (value, error) {
	items, err := r.items(x)
	if err != nil {
		return nil, err
	}
	if err := r.lists(len(items)); err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	if _, isText := x.(string); isText {
		return r.joined(items, "")
	}
	return &list{items: items}, nil
}

func itemsOf(r *run, x value, _ given) (value, error) {
	switch x := x.(type) {
	case undefined:
		return &list{}, nil
	case *Dict:
		return r.pairs(x)
	}
	return nil, r.fail("%s has no items by key", kindOf(x))
}

func dictsort(r *run, x value, a given) (value, error) {
	d, ok := x.(*Dict)
	if !ok || len(a.list)+len(a.named) > 0 {
		return nil, r.fail("dictsort takes a mapping and no other argument here")
	}
	v, err := r.pairs(d)
	if err != nil {
		return nil, err
	}
	l := v.(*list)
	folded := make(map[value]string, len(d.keys))
	for _, k := range d.keys {
		s, _ := k.(string)
		if err := r.charge(lowerCost * len(s)); err != nil {
			return nil, err
		}
		folded[k] = strings.ToLower(s)
	}
	err = r.sorted(l.items, func(x, y value) (int, error) {
		return r.order(folded[x.(*list).items[0]], folded[y.(*list).items[0]])
	})
	return l, err
}

// lowerCost is what a byte of a text counts whose case is changed: it is decoded, looked up in
// Unicode's tables, and may become longer.
const lowerCost = 4

// sorted sorts items in place and stably. Each comparison is a step beside what order charges.
func (r *run) sorted(items []value, order func(x, y value) (int, error)) (err error) {
	slices.SortStableFunc(items, func(x, y value) int {
		if err == nil {
			err = r.step()
		}
		if err != nil {
			return 0
		}
		o, e := order(x, y)
		err = e
		return o
	})
	return err
}

func toInt(r *run, x value, a given) (value, error) {
	if f, n, isWhole, ok := number(x); ok {
		if isWhole {
			return n, nil
		}
		if f > -mostWhole && f < mostWhole {
			return int64(f), nil
		}
	}
	if s, ok := x.(string); ok {
		if err := r.charge(parseCost * len(s)); err != nil {
			return nil, err
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 54); err == nil {
			return n, nil
		}
	}
	return a.at(0, "default", int64(0)), nil
}

// parseCost is what a byte of a text counts that is read as a number: a text that is none is
// copied into an error.
const parseCost = 4

func toFloat(r *run, x value, a given) (value, error) {
	if f, _, _, ok := number(x); ok {
		return f, nil
	}
	if s, ok := x.(string); ok {
		if err := r.charge(parseCost * len(s)); err != nil {
			return nil, err
		}
		if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return f, nil
		}
	}
	return a.at(0, "default", 0.0), nil
}

// indent puts spaces before every line but the first.
func indent(r *run, x value, a given) (value, error) {
	s, err := r.text(x)
	if err != nil {
		return nil, err
	}
	n, err := r.whole(a.at(0, "width", int64(4)), "indent's width")
	if err != nil {
		return nil, err
	}
	if n < 0 || n > 1000 {
		return nil, r.fail("indent's width is %d, want 0..1000", n)
	}
	first, blank := truth(a.at(1, "first", false)), truth(a.at(2, "blank", false))
	if err := r.charge(len(s)); err != nil {
		return nil, err
	}
	count := 1 + strings.Count(s, "\n")
	if err := r.charge(len(s) + (n+16)*count); err != nil {
		return nil, err
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if (i > 0 || first) && (line != "" || blank) {
			lines[i] = strings.Repeat(" ", n) + line
		}
	}
	return strings.Join(lines, "\n"), nil
}

func (r *run) attributes(items []value, name string) ([]value, error) {
	if err := r.lists(len(items)); err != nil {
		return nil, err
	}
	out := make([]value, 0, len(items))
	for _, v := range items {
		for part := range strings.SplitSeq(name, ".") {
			err := r.step()
			if err != nil {
				return nil, err
			}
			if v, err = r.attribute(v, part); err != nil {
				return nil, err
			}
		}
		out = append(out, v)
	}
	return out, nil
}

func mapped(r *run, x value, a given) (value, error) {
	if !truth(x) {
		return &list{}, nil
	}
	all, err := r.items(x)
	if err != nil {
		return nil, err
	}
	if name, ok := a.named["attribute"].(string); ok {
		out, err := r.attributes(all, name)
		return &list{items: out}, err
	}
	name, _ := a.at(0, "", "").(string)
	f, ok := r.filters[name]
	if !ok {
		return nil, r.fail("map by %.40q is not known here", name)
	}
	if err := r.lists(len(all)); err != nil {
		return nil, err
	}
	if err := r.charge(len(name)); err != nil {
		return nil, err
	}
	out := &list{}
	for _, v := range all {
		if err := r.step(); err != nil {
			return nil, err
		}
		if v, err = f(r, v, given{list: a.list[1:], named: a.named}); err != nil {
			return nil, err
		}
		out.items = append(out.items, v)
	}
	return out, nil
}

// picked keeps the items that pass a test, or those that do not, by themselves or by an
// attribute.
func picked(want, byAttribute bool) func(r *run, x value, a given) (value, error) {
	return func(r *run, x value, a given) (value, error) {
		if !truth(x) {
			return &list{}, nil
		}
		all, err := r.items(x)
		if err != nil {
			return nil, err
		}
		asked, rest := all, a.list
		if byAttribute {
			name, ok := a.at(0, "", nil).(string)
			if !ok {
				return nil, r.fail("an attribute's name is missing")
			}
			if asked, err = r.attributes(all, name); err != nil {
				return nil, err
			}
			rest = rest[1:]
		}
		if err := r.lists(len(all)); err != nil {
			return nil, err
		}
		out := &list{}
		for i, v := range asked {
			if err := r.step(); err != nil {
				return nil, err
			}
			is := truth(v)
			if len(rest) > 0 {
				name, _ := rest[0].(string)
				if is, err = r.test(name, v, given{list: rest[1:]}); err != nil {
					return nil, err
				}
			}
			if is == want {
				out.items = append(out.items, all[i])
			}
		}
		return out, nil
	}
}
