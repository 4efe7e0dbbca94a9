package jinja

import "strings"

// primary is what expressions are made of.
func (p *parser) primary() (n node, err error) {
	t := p.next()
	n.line = t.line
	switch t.kind {
	case tokenString:
		var text strings.Builder
		text.WriteString(t.text)
		for p.now().kind == tokenString { // one behind the other are one
			text.WriteString(p.next().text)
		}
		return node{op: opLiteral, lit: text.String(), line: t.line}, nil
	case tokenInt, tokenFloat:
		n.op = opLiteral
		n.lit, err = p.number(t)
		return n, err
	case tokenName:
		switch t.text {
		case "true", "True":
			return node{op: opLiteral, lit: true, line: t.line}, nil
		case "false", "False":
			return node{op: opLiteral, lit: false, line: t.line}, nil
		case "none", "None":
			return node{op: opLiteral, line: t.line}, nil
		}
		return node{op: opName, text: t.text, line: t.line}, nil
	case tokenSign:
		switch t.text {
		case "(":
			return p.parenthesis()
		case "[":
			n.op = opList
			n.kids, _, err = p.items("]")
			return n, err
		case "{":
			return p.dict(t.line)
		}
	}
	p.at = max(0, p.at-1)
	return n, p.fail("%.20q, want a value", t.text)
}

// items are expressions with commas between, up to a sign; comma says whether one was last.
func (p *parser) items(end string) (list []node, comma bool, err error) {
	for !p.take(end) {
		if len(list) > 0 && !comma {
			return nil, false, p.fail("%.20q, want %q", p.now().text, end)
		}
		x, err := p.expression()
		if err != nil {
			return nil, false, err
		}
		list = append(list, x)
		comma = p.take(",")
	}
	return list, comma, nil
}

func (p *parser) parenthesis() (node, error) {
	line := p.now().line
	list, comma, err := p.items(")")
	if err == nil && len(list) == 1 && !comma {
		return list[0], nil
	}
	return node{op: opList, flag: true, kids: list, line: line}, err
}

func (p *parser) dict(line int) (n node, err error) {
	n = node{op: opDict, line: line}
	for !p.take("}") {
		if len(n.kids) > 0 {
			if err := p.want(","); err != nil {
				return n, err
			}
			if p.take("}") {
				break
			}
		}
		for _, sign := range []string{":", ""} {
			x, err := p.expression()
			if err != nil {
				return n, err
			}
			if n.kids = append(n.kids, x); sign != "" {
				if err := p.want(sign); err != nil {
					return n, err
				}
			}
		}
	}
	return n, nil
}

// suffixes read what is asked of a value: attributes, items, calls, and filters and tests where
// they are its own.
func (p *parser) suffixes(x node, filters bool) (node, error) {
	back, err := p.deeper()
	if err != nil {
		return node{}, err
	}
	defer back()
	for links := 0; err == nil; links++ {
		if links > maxDepth {
			return x, p.fail("more than %d calls, items and filters in a row", maxDepth)
		}
		line := p.now().line
		switch {
		case p.take("."):
			t := p.next()
			if t.kind == tokenInt {
				n, err := p.number(t)
				if err != nil {
					return x, err
				}
				x = node{op: opItem, kids: []node{x, {op: opLiteral, lit: n}}, line: line}
				continue
			}
			if t.kind != tokenName {
				return x, p.fail("%.20q, want an attribute's name", t.text)
			}
			x = node{op: opAttr, text: t.text, kids: []node{x}, line: line}
		case p.take("["):
			x, err = p.subscript(x, line)
		case p.is(tokenSign, "("):
			var args *arguments
			if args, err = p.arguments(); err == nil {
				x = node{op: opCall, kids: []node{x}, args: args, line: line}
			}
		case filters && p.take("|"):
			x, err = p.asked(node{op: opFilter, kids: []node{x}, line: line})
		case filters && p.take("is"):
			n := node{op: opTest, kids: []node{x}, line: line, flag: p.take("not")}
			if x, err = p.asked(n); err == nil && x.args == nil && compares[x.text] != nil { // is divisibleby 3
				arg, e := p.operand()
				x.args, err = &arguments{list: []node{arg}}, e
			}
		default:
			return x, nil
		}
	}
	return x, err
}

// asked reads the name and the arguments of a filter or a test.
func (p *parser) asked(n node) (node, error) {
	name, err := p.name()
	if n.text = name; err != nil || !p.is(tokenSign, "(") {
		return n, err
	}
	n.args, err = p.arguments()
	return n, err
}

func (p *parser) arguments() (*arguments, error) {
	p.at++ // (
	a := &arguments{}
	for first := true; !p.take(")"); first = false {
		if !first {
			if err := p.want(","); err != nil {
				return nil, err
			}
			if p.take(")") {
				break
			}
		}
		name, star := "", ""
		if t := p.now(); t.kind == tokenSign && (t.text == "*" || t.text == "**") {
			star = p.next().text
		}
		if star == "" && p.now().kind == tokenName && p.tokens[p.at+1].kind == tokenSign && p.tokens[p.at+1].text == "=" {
			name = p.next().text
			p.at++
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		switch {
		case star == "*":
			a.lists = append(a.lists, x)
			continue
		case star == "**":
			a.dicts = append(a.dicts, x)
			continue
		}
		if name != "" {
			a.named, a.by = append(a.named, name), append(a.by, x)
		} else {
			a.list = append(a.list, x)
		}
	}
	return a, nil
}

// subscript is an item or a slice, from behind its bracket on.
func (p *parser) subscript(of node, line int) (node, error) {
	parts := []node{of}
	slice := false
	for {
		if p.is(tokenSign, ":") || p.is(tokenSign, "]") {
			parts = append(parts, node{op: opNone})
		} else {
			x, err := p.expression()
			if err != nil {
				return of, err
			}
			parts = append(parts, x)
		}
		if p.take("]") {
			break
		}
		if err := p.want(":"); err != nil {
			return of, err
		}
		if slice = true; len(parts) > 3 {
			return of, p.fail("a slice of more than three parts")
		}
	}
	if !slice {
		if parts[1].op == opNone {
			return of, p.fail("an item without an index")
		}
		return node{op: opItem, kids: parts, line: line}, nil
	}
	for len(parts) < 4 {
		parts = append(parts, node{op: opNone})
	}
	return node{op: opSlice, kids: parts, line: line}, nil
}
