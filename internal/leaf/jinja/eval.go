package jinja

import (
	"math"
	"strings"
)

// given are the arguments that a function is called with.
type given struct {
	list  []value
	named map[string]value
	names []string // of named, in order
}

func (g *given) add(name string, v value) {
	if g.named == nil {
		g.named = map[string]value{}
	}
	if _, known := g.named[name]; !known {
		g.names = append(g.names, name)
	}
	g.named[name] = v
}

// at is argument i, which may be named; def if there is none.
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
		g.list = append(g.list, plain(v))
	}
	for i, name := range a.named {
		v, err := r.value(&a.by[i])
		if err != nil {
			return g, err
		}
		g.add(name, plain(v))
	}
	return g, r.spread(a, &g)
}

// spread adds the arguments that lists and mappings hold.
func (r *run) spread(a *arguments, g *given) error {
	for i := range a.lists {
		v, err := r.value(&a.lists[i])
		if err != nil {
			return err
		}
		items, err := r.items(v)
		if err == nil {
			err = r.lists(len(items))
		}
		if err != nil {
			return err
		}
		g.list = append(g.list, items...)
	}
	for i := range a.dicts {
		v, err := r.value(&a.dicts[i])
		if err != nil {
			return err
		}
		d, ok := v.(*Dict)
		if !ok {
			return r.fail("%s is no mapping of arguments", kindOf(v))
		}
		if err := r.lists(4 * len(d.keys)); err != nil {
			return err
		}
		for _, k := range d.keys {
			name, ok := k.(string)
			if !ok {
				return r.fail("%s is no argument's name", kindOf(k))
			}
			if err := r.touch(k); err != nil {
				return err
			}
			g.add(name, d.values[k])
		}
	}
	return nil
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
		return r.name(n.text)
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
	case opCaptured:
		var text string
		e := &env{vars: map[string]value{}, up: r.env}
		err := r.within(e, func() (err error) { text, err = r.captured(n.body); return err })
		return text, err
	}
	x, err := r.value(&n.kids[0])
	if err != nil {
		return nil, err
	}
	if n.op != opBinary && (n.op != opFilter || n.text != "safe" && n.text != "escape" && n.text != "e") {
		x = plain(x)
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
		if len(n.body) > 0 {
			args.add("caller", r.macro(&n.body[0]))
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
		l.items[i] = plain(v)
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
		key = plain(key)
		v, err := r.value(&n.kids[i+1])
		if err != nil {
			return nil, err
		}
		switch key.(type) {
		case nil, bool, int64, float64, string:
			if err := r.touch(key); err != nil {
				return nil, err
			}
			d.set(key, plain(v))
		default:
			return nil, r.fail("%s is not a key", kindOf(key))
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
	if n.text == "+" {
		if v, err := r.marked(x, y); v != nil || err != nil {
			return v, err
		}
	}
	x, y = plain(x), plain(y)
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
			_, times, isWhole, ok := number(pair[1])
			if isText && ok && isWhole {
				return r.repeat(s, times)
			}
			if l, isList := pair[0].(*list); isList && ok && isWhole {
				return r.repeated(l, times)
			}
		}
	case "%":
		if s, isText := x.(string); isText {
			args := []value{y}
			if l, ok := y.(*list); ok && l.tuple {
				args = l.items
			}
			return r.printf(s, args)
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

// marked is x + y where either is markup: what is none is escaped. It is nil where neither is.
func (r *run) marked(x, y value) (value, error) {
	a, isA := x.(markup)
	b, isB := y.(markup)
	if !isA && !isB {
		return nil, nil
	}
	for _, side := range []struct {
		is bool
		v  value
		to *markup
	}{{isA, x, &a}, {isB, y, &b}} {
		if side.is {
			continue
		}
		s, ok := side.v.(string)
		if !ok {
			return nil, r.fail("%s + %s is nothing", kindOf(x), kindOf(y))
		}
		m, err := r.escaped(s)
		if err != nil {
			return nil, err
		}
		*side.to = m
	}
	return a + b, r.charge(len(a) + len(b))
}

// letters of HTML, as MarkupSafe escapes them.
var htmlLetters = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

func (r *run) escaped(s string) (markup, error) {
	if err := r.charge(6 * len(s)); err != nil {
		return "", err
	}
	return markup(htmlLetters.Replace(s)), nil
}

func (r *run) repeated(l *list, times int64) (value, error) {
	out := &list{tuple: l.tuple}
	if times <= 0 || len(l.items) == 0 {
		return out, nil
	}
	if times > int64(maxBytes/len(l.items)) {
		return nil, r.beyond("more than %d bytes", r.most.Bytes)
	}
	if err := r.lists(len(l.items) * int(times)); err != nil {
		return nil, err
	}
	for range times {
		out.items = append(out.items, l.items...)
	}
	return out, nil
}

func (r *run) repeat(s string, times int64) (value, error) {
	if times <= 0 || s == "" {
		return "", nil
	}
	if times > int64(maxBytes/len(s)) {
		return nil, r.beyond("more than %d bytes", r.most.Bytes)
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
	if sign == "**" {
		p := math.Pow(a, b)
		switch {
		case !isI || !isJ || j < 0:
			return p, nil
		case math.Abs(p) > mostWhole:
			return nil, r.fail("a number beyond %d", int64(mostWhole))
		}
		return int64(p), nil
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
		x, y = plain(x), plain(y)
		if is, err := compares[sign](r, x, y); !is || err != nil {
			return false, err
		}
		x = y
	}
	return true, nil
}
