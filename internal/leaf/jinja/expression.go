package jinja

import (
	"slices"
	"strconv"
)

// tuple is an expression, or several with commas between.
func (p *parser) tuple() (node, error) {
	x, err := p.expression()
	if err != nil || !p.is(tokenSign, ",") {
		return x, err
	}
	t := node{op: opList, flag: true, kids: []node{x}, line: x.line}
	for p.take(",") {
		if k := p.now().kind; k == tokenClose || k == tokenUnblok {
			break
		}
		if x, err = p.expression(); err != nil {
			return t, err
		}
		t.kids = append(t.kids, x)
	}
	return t, nil
}

// expression is one with its choice: a if b else c.
func (p *parser) expression() (node, error) {
	back, err := p.deeper()
	if err != nil {
		return node{}, err
	}
	defer back()
	x, err := p.or()
	for err == nil && p.take("if") {
		n := node{op: opChoose, line: x.line, kids: []node{x}}
		condition, err := p.or()
		if err != nil {
			return n, err
		}
		other := node{op: opLiteral, lit: undefined{"the other of a choice"}}
		if p.take("else") {
			if other, err = p.expression(); err != nil {
				return n, err
			}
		}
		n.kids = append(n.kids, condition, other)
		x = n
	}
	return x, err
}

// binary reads operators of one strength, from left to right.
func (p *parser) binary(operand func() (node, error), signs ...string) (node, error) {
	x, err := operand()
	for links := 0; err == nil; links++ {
		if links > maxChain {
			return x, p.fail("more than %d of %q in a row", maxChain, signs)
		}
		t := p.now()
		if t.kind != tokenSign && t.kind != tokenName || !slices.Contains(signs, t.text) {
			break
		}
		p.at++
		var y node
		if y, err = operand(); err == nil {
			x = node{op: opBinary, text: t.text, kids: []node{x, y}, line: t.line}
		}
	}
	return x, err
}

func (p *parser) or() (node, error)  { return p.binary(p.and, "or") }
func (p *parser) and() (node, error) { return p.binary(p.not, "and") }

func (p *parser) not() (node, error) {
	if !p.is(tokenName, "not") {
		return p.compare()
	}
	back, err := p.deeper()
	if err != nil {
		return node{}, err
	}
	defer back()
	t := p.next()
	x, err := p.not()
	return node{op: opUnary, text: "not", kids: []node{x}, line: t.line}, err
}

func (p *parser) compare() (node, error) {
	x, err := p.sum()
	if err != nil {
		return x, err
	}
	n := node{op: opCompare, kids: []node{x}, line: x.line}
	for {
		sign := ""
		switch t := p.now(); {
		case t.kind == tokenSign && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text), p.is(tokenName, "in"):
			sign = t.text
			p.at++
		case p.is(tokenName, "not") && p.tokens[p.at+1].kind == tokenName && p.tokens[p.at+1].text == "in":
			sign = "not in"
			p.at += 2
		}
		if sign == "" {
			break
		}
		y, err := p.sum()
		if err != nil {
			return n, err
		}
		n.names, n.kids = append(n.names, sign), append(n.kids, y)
	}
	if len(n.names) == 0 {
		return x, nil
	}
	return n, nil
}

func (p *parser) sum() (node, error)     { return p.binary(p.joined, "+", "-") }
func (p *parser) joined() (node, error)  { return p.binary(p.product, "~") }
func (p *parser) product() (node, error) { return p.binary(p.power, "*", "/", "//", "%") }
func (p *parser) power() (node, error)   { return p.binary(p.unary, "**") }

func (p *parser) unary() (node, error) {
	t := p.now()
	if t.kind == tokenSign && (t.text == "-" || t.text == "+") {
		back, err := p.deeper()
		if err != nil {
			return node{}, err
		}
		defer back()
		p.at++
		x, err := p.operand()
		if err != nil {
			return x, err
		}
		return p.suffixes(node{op: opUnary, text: t.text, kids: []node{x}, line: t.line}, true)
	}
	x, err := p.primary()
	if err != nil {
		return x, err
	}
	return p.suffixes(x, true)
}

// operand is what a sign is before, and what a test is given: filters are not its own.
func (p *parser) operand() (node, error) {
	back, err := p.deeper()
	if err != nil {
		return node{}, err
	}
	defer back()
	if t := p.now(); t.kind == tokenSign && (t.text == "-" || t.text == "+") {
		p.at++
		x, err := p.operand()
		return node{op: opUnary, text: t.text, kids: []node{x}, line: t.line}, err
	}
	x, err := p.primary()
	if err != nil {
		return x, err
	}
	return p.suffixes(x, false)
}

// number is the value of one that the lexer has cut.
func (p *parser) number(t token) (value, error) {
	if t.kind == tokenInt {
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			return nil, p.fail("number %.30s", t.text)
		}
		return n, nil
	}
	f, err := strconv.ParseFloat(t.text, 64)
	if err != nil {
		return nil, p.fail("number %.30s", t.text)
	}
	return f, nil
}
