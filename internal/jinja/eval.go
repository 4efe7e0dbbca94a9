package jinja

import (
	"math"
	"strings"
	"unicode/utf8"
)

// given are the arguments that a function is called with.
type given struct {
	list  []value
	named map[string]value
}

// at is argument i, which may be named; def where there is none.
func (g given) at(i int, name string, def value) value {
	if i < len(g.list) {
		return g.list[i]
	}
	if v, ok := g.named[name]; ok {
		return v
	}
	return def
}

func (r *run) given(a *arguments) (g given, err error) {
	if a == nil {
		return g, nil
	}
	for i := range a.list {
		v, err := r.value(&a.list[i])
		if err != nil {
			return g, err
		}
		g.list = append(g.list, v)
	}
	for i, name := range a.named {
		v, err := r.value(&a.by[i])
		if err != nil {
			return g, err
		}
		if g.named == nil {
			g.named = map[string]value{}
		}
		g.named[name] = v
	}
	return g, nil
}

// value is what an expression comes to.
func (r *run) value(n *node) (value, error) {
	if err := r.step(); err != nil {
		return nil, err
	}
	if n.line > 0 {
		r.line = n.line
	}
	switch n.op {
	case opLiteral:
		return n.lit, nil
	case opName:
		return r.env.get(n.text), nil
	case opList:
		return r.list(n)
	case opDict:
		return r.dict(n)
	case opChoose:
		if v, err := r.value(&n.kids[1]); err != nil || truth(v) {
			if err != nil {
				return nil, err
			}
			return r.value(&n.kids[0])
		}
		return r.value(&n.kids[2])
	case opCompare:
		return r.compare(n)
	}
	x, err := r.value(&n.kids[0])
	if err != nil {
		return nil, err
	}
	switch n.op {
	case opUnary:
		return r.unary(n.text, x)
	case opBinary:
		return r.binary(n, x)
	case opAttr:
		return r.attribute(x, n.text)
	case opItem:
		key, err := r.value(&n.kids[1])
		if err != nil {
			return nil, err
		}
		return r.item(x, key)
	case opSlice:
		return r.slice(n, x)
	}
	args, err := r.given(n.args)
	if err != nil {
		return nil, err
	}
	r.line = n.line
	switch n.op {
	case opCall:
		f, ok := x.(function)
		if !ok {
			return nil, r.fail("%s is not called", kindOf(x))
		}
		return f(r, args)
	case opFilter:
		f, ok := r.filters[n.text]
		if !ok {
			return nil, r.fail("filter %.40q is not known here", n.text)
		}
		return f(r, x, args)
	case opTest:
		is, err := r.test(n.text, x, args)
		return is != n.flag, err
	}
	return nil, r.fail("an expression of kind %d", n.op)
}

func (r *run) list(n *node) (value, error) {
	if err := r.lists(len(n.kids)); err != nil {
		return nil, err
	}
	l := &list{items: make([]value, len(n.kids)), tuple: n.flag}
	for i := range n.kids {
		v, err := r.value(&n.kids[i])
		if err != nil {
			return nil, err
		}
		l.items[i] = v
	}
	return l, nil
}

func (r *run) dict(n *node) (value, error) {
	if err := r.lists(4 * len(n.kids)); err != nil {
		return nil, err
	}
	d := &Dict{}
	for i := 0; i < len(n.kids); i += 2 {
		key, err := r.value(&n.kids[i])
		if err != nil {
			return nil, err
		}
		v, err := r.value(&n.kids[i+1])
		if err != nil {
			return nil, err
		}
		switch key.(type) {
		case nil, bool, int64, float64, string:
			d.set(key, v)
		default:
			return nil, r.fail("%s is no key", kindOf(key))
		}
	}
	return d, nil
}

func (r *run) unary(sign string, x value) (value, error) {
	if sign == "not" {
		return !truth(x), nil
	}
	f, n, isWhole, ok := number(x)
	switch {
	case !ok:
		return nil, r.fail("%s has no sign", kindOf(x))
	case sign == "+" && isWhole:
		return n, nil
	case sign == "+":
		return f, nil
	case isWhole && n != math.MinInt64:
		return -n, nil
	}
	return -f, nil
}

func (r *run) binary(n *node, x value) (value, error) {
	switch {
	case n.text == "and" && !truth(x), n.text == "or" && truth(x):
		return x, nil
	}
	y, err := r.value(&n.kids[1])
	if err != nil {
		return nil, err
	}
	switch n.text {
	case "and", "or":
		return y, nil
	case "~":
		a, err := r.text(x)
		if err != nil {
			return nil, err
		}
		b, err := r.text(y)
		if err != nil {
			return nil, err
		}
		return r.join(a, b)
	case "+":
		if a, ok := x.(string); ok {
			if b, ok := y.(string); ok {
				return r.join(a, b)
			}
		}
		if a, ok := x.(*list); ok {
			if b, ok := y.(*list); ok && a.tuple == b.tuple {
				if err := r.lists(len(a.items) + len(b.items)); err != nil {
					return nil, err
				}
				return &list{items: append(append([]value{}, a.items...), b.items...), tuple: a.tuple}, nil
			}
		}
	case "*":
		for _, pair := range [][2]value{{x, y}, {y, x}} {
			s, isText := pair[0].(string)
			if _, times, isWhole, ok := number(pair[1]); isText && ok && isWhole {
				return r.repeat(s, times)
			}
		}
	case "%":
		if _, isText := x.(string); isText {
			return nil, r.fail("texts are not formatted with %% here")
		}
	}
	return r.arithmetic(n.text, x, y)
}

func (r *run) join(a, b string) (value, error) {
	if err := r.charge(len(a) + len(b)); err != nil {
		return nil, err
	}
	return a + b, nil
}

func (r *run) repeat(s string, times int64) (value, error) {
	if times <= 0 || s == "" {
		return "", nil
	}
	if times > int64(maxBytes/len(s)) {
		return nil, r.beyond("more than %d bytes", maxBytes)
	}
	if err := r.charge(len(s) * int(times)); err != nil {
		return nil, err
	}
	return strings.Repeat(s, int(times)), nil
}

// mostWhole bounds whole numbers, which Python has without bounds.
const mostWhole = 1 << 53

func (r *run) arithmetic(sign string, x, y value) (value, error) {
	a, i, isI, okX := number(x)
	b, j, isJ, okY := number(y)
	if !okX || !okY {
		return nil, r.fail("%s %s %s is nothing", kindOf(x), sign, kindOf(y))
	}
	if (sign == "/" || sign == "//" || sign == "%") && b == 0 {
		return nil, r.fail("a division by zero")
	}
	if isI && isJ && sign != "/" {
		switch sign {
		case "+":
			i += j
		case "-":
			i -= j
		case "*":
			if math.Abs(a*b) > mostWhole {
				return nil, r.fail("a number beyond %d", int64(mostWhole))
			}
			i *= j
		case "//":
			i = int64(math.Floor(a / b))
		case "%":
			if i %= j; i != 0 && (i < 0) != (j < 0) {
				i += j
			}
		}
		if i > mostWhole || i < -mostWhole {
			return nil, r.fail("a number beyond %d", int64(mostWhole))
		}
		return i, nil
	}
	switch sign {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "/":
		return a / b, nil
	case "//":
		return math.Floor(a / b), nil
	}
	m := math.Mod(a, b)
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return m, nil
}

func (r *run) compare(n *node) (value, error) {
	x, err := r.value(&n.kids[0])
	if err != nil {
		return nil, err
	}
	for i, sign := range n.names {
		y, err := r.value(&n.kids[i+1])
		if err != nil {
			return nil, err
		}
		if is, err := compares[sign](r, x, y); !is || err != nil {
			return false, err
		}
		x = y
	}
	return true, nil
}

// in says whether a value is within another.
func (r *run) in(x, of value) (bool, error) {
	switch of := of.(type) {
	case string:
		s, ok := x.(string)
		if !ok {
			return false, r.fail("%s is looked for in a text", kindOf(x))
		}
		return strings.Contains(of, s), r.charge(len(of) / 16)
	case *Dict:
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
			letters := []rune(x)
			if i, within := at(len(letters)); within {
				return string(letters[i]), nil
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
