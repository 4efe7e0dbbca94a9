package jinja

import (
	"fmt"
	"slices"
)

// parser makes nodes of tokens.
type parser struct {
	tokens []token
	at     int
	depth  int
	loops  int

	generates bool // a generation block was seen
}

func (p *parser) now() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrSyntax, p.now().line, fmt.Sprintf(format, args...))
}

func (p *parser) is(kind tokenKind, text string) bool {
	t := p.now()
	return t.kind == kind && t.text == text
}

// take reads a sign or a name if it is here.
func (p *parser) take(text string) bool {
	if p.is(tokenSign, text) || p.is(tokenName, text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) want(text string) error {
	if !p.take(text) {
		return p.fail("%.20q, want %q", p.now().text, text)
	}
	return nil
}

func (p *parser) name() (string, error) {
	if p.now().kind != tokenName {
		return "", p.fail("%.20q, want a name", p.now().text)
	}
	return p.next().text, nil
}

// deeper refuses what nests too deep; the caller calls back when it is done.
func (p *parser) deeper() (back func(), err error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("%w: line %d: it nests deeper than %d", ErrLimit, p.now().line, maxDepth)
	}
	return func() { p.depth-- }, nil
}

// until reads statements up to a block that begins with one of names, which is read, too.
func (p *parser) until(names ...string) (body []node, end string, err error) {
	back, err := p.deeper()
	if err != nil {
		return nil, "", err
	}
	defer back()
	for {
		t := p.next()
		switch t.kind {
		case tokenEnd:
			if len(names) > 0 {
				return nil, "", p.fail("the template ends before %q", names[0])
			}
			return body, "", nil
		case tokenText:
			body = append(body, node{op: opText, text: t.text, line: t.line})
		case tokenOpen:
			x, err := p.tuple()
			if err != nil {
				return nil, "", err
			}
			if p.next().kind != tokenClose {
				p.at--
				return nil, "", p.fail("%.20q behind what is printed", p.now().text)
			}
			body = append(body, node{op: opPrint, kids: []node{x}, line: t.line})
		case tokenBlock:
			name, err := p.name()
			if err != nil {
				return nil, "", err
			}
			if slices.Contains(names, name) {
				return body, name, nil
			}
			s, err := p.statement(name, t.line)
			if err != nil {
				return nil, "", err
			}
			body = append(body, s)
		default:
			return nil, "", p.fail("%.20q", t.text)
		}
	}
}

// close reads the end of a block.
func (p *parser) close() error {
	if p.now().kind != tokenUnblok {
		return p.fail("%.20q, want the end of a block", p.now().text)
	}
	p.at++
	return nil
}

func (p *parser) statement(name string, line int) (n node, err error) {
	n.line = line
	switch name {
	case "if":
		return p.branch(line)
	case "for":
		return p.loop(line)
	case "set":
		return p.set(line)
	case "macro":
		return p.macro(line)
	case "generation": // marks what an assistant says; the text is the same
		if err := p.close(); err != nil {
			return n, err
		}
		n.op, p.generates = opGeneration, true
		if n.body, _, err = p.until("endgeneration"); err != nil {
			return n, err
		}
		return n, p.close()
	case "with":
		return p.with(line)
	case "filter":
		return p.filtered(line)
	case "call":
		return p.call(line)
	case "break", "continue":
		if p.loops == 0 {
			return n, p.fail("%s is outside of a loop", name)
		}
		if n.op = opBreak; name == "continue" {
			n.op = opContinue
		}
		return n, p.close()
	}
	return n, p.fail("block %.20q is not known here", name)
}

// branch is an if, from its condition on.
func (p *parser) branch(line int) (n node, err error) {
	n = node{op: opIf, line: line}
	condition, err := p.expression()
	if err != nil {
		return n, err
	}
	n.kids = []node{condition}
	if err := p.close(); err != nil {
		return n, err
	}
	body, end, err := p.until("elif", "else", "endif")
	if err != nil {
		return n, err
	}
	n.body = body
	switch end {
	case "elif":
		back, err := p.deeper()
		if err != nil {
			return n, err
		}
		defer back()
		other, err := p.branch(p.now().line)
		n.else_ = []node{other}
		return n, err
	case "else":
		if err := p.close(); err != nil {
			return n, err
		}
		if n.else_, _, err = p.until("endif"); err != nil {
			return n, err
		}
	}
	return n, p.close()
}

func (p *parser) loop(line int) (n node, err error) {
	n = node{op: opFor, line: line}
	for {
		name, err := p.name()
		if err != nil {
			return n, err
		}
		n.names = append(n.names, name)
		if !p.take(",") {
			break
		}
	}
	if err := p.want("in"); err != nil {
		return n, err
	}
	over, err := p.or() // a condition of its own may follow
	if err != nil {
		return n, err
	}
	n.kids = []node{over}
	if p.take("if") {
		condition, err := p.expression()
		if err != nil {
			return n, err
		}
		n.kids = append(n.kids, condition)
	}
	if err := p.close(); err != nil {
		return n, err
	}
	p.loops++
	body, end, err := p.until("else", "endfor")
	p.loops--
	if err != nil {
		return n, err
	}
	n.body = body
	if end == "else" {
		if err := p.close(); err != nil {
			return n, err
		}
		if n.else_, _, err = p.until("endfor"); err != nil {
			return n, err
		}
	}
	return n, p.close()
}

func (p *parser) set(line int) (n node, err error) {
	n = node{op: opSet, line: line}
	target, err := p.target(line)
	if err != nil {
		return n, err
	}
	n.kids = []node{target}
	if p.take("=") {
		x, err := p.tuple()
		if err != nil {
			return n, err
		}
		n.kids = append(n.kids, x)
		return n, p.close()
	}
	captured := node{op: opCaptured, line: line}
	filters, err := p.chain(node{op: opNone}, line)
	if err != nil {
		return n, err
	}
	if err := p.close(); err != nil {
		return n, err
	}
	if captured.body, _, err = p.until("endset"); err != nil {
		return n, err
	}
	n.kids = append(n.kids, over(filters, captured))
	return n, p.close()
}

// target is what a set gives a value to: a name, a namespace's attribute, or several names.
func (p *parser) target(line int) (target node, err error) {
	parenthesis := p.take("(")
	var names []node
	for {
		name, err := p.name()
		if err != nil {
			return target, err
		}
		names = append(names, node{op: opName, text: name, line: line})
		if !p.take(",") || parenthesis && p.is(tokenSign, ")") || p.is(tokenSign, "=") {
			break
		}
	}
	if parenthesis {
		if err := p.want(")"); err != nil {
			return target, err
		}
	}
	if p.tokens[p.at-1].text == "," || len(names) > 1 {
		return node{op: opList, kids: names, line: line}, nil
	}
	if target = names[0]; p.take(".") {
		attr, err := p.name()
		return node{op: opAttr, kids: []node{target}, text: attr, line: line}, err
	}
	return target, nil
}

// chain reads filters, the first of which is over a value.
func (p *parser) chain(of node, line int) (x node, err error) {
	x = of
	for links := 0; p.take("|"); links++ {
		if links > maxDepth {
			return x, p.fail("more than %d filters in a row", maxDepth)
		}
		if x, err = p.asked(node{op: opFilter, kids: []node{x}, line: line}); err != nil {
			return x, err
		}
	}
	return x, nil
}

// over puts a value below the last filter of a chain.
func over(chain, of node) node {
	if chain.op == opNone {
		return of
	}
	chain.kids = []node{over(chain.kids[0], of)}
	return chain
}

// filtered is a block whose text goes through filters.
func (p *parser) filtered(line int) (n node, err error) {
	first, err := p.asked(node{op: opFilter, kids: []node{{op: opNone}}, line: line})
	if err != nil {
		return n, err
	}
	filters, err := p.chain(first, line)
	if err != nil {
		return n, err
	}
	if err := p.close(); err != nil {
		return n, err
	}
	captured := node{op: opCaptured, line: line}
	if captured.body, _, err = p.until("endfilter"); err != nil {
		return n, err
	}
	return node{op: opPrint, kids: []node{over(filters, captured)}, line: line}, p.close()
}

// with is a block with names of its own.
func (p *parser) with(line int) (n node, err error) {
	n = node{op: opWith, line: line}
	for p.now().kind != tokenUnblok {
		if len(n.names) > 0 {
			if err := p.want(","); err != nil {
				return n, err
			}
		}
		name, err := p.name()
		if err != nil {
			return n, err
		}
		if err := p.want("="); err != nil {
			return n, err
		}
		x, err := p.expression()
		if err != nil {
			return n, err
		}
		n.names, n.kids = append(n.names, name), append(n.kids, x)
	}
	if err := p.close(); err != nil {
		return n, err
	}
	if n.body, _, err = p.until("endwith"); err != nil {
		return n, err
	}
	return n, p.close()
}

// call is a block that a macro is called with, which calls it as caller.
func (p *parser) call(line int) (n node, err error) {
	body := node{op: opMacro, text: "caller", line: line}
	if p.is(tokenSign, "(") {
		if err := p.parameters(&body); err != nil {
			return n, err
		}
	}
	called, err := p.expression()
	if err != nil {
		return n, err
	}
	if called.op != opCall {
		return n, p.fail("a call block calls nothing")
	}
	if err := p.macroBody(&body, "endcall"); err != nil {
		return n, err
	}
	called.body = []node{body}
	return node{op: opPrint, kids: []node{called}, line: line}, nil
}

func (p *parser) macro(line int) (n node, err error) {
	n = node{op: opMacro, line: line}
	if n.text, err = p.name(); err != nil {
		return n, err
	}
	if err := p.parameters(&n); err != nil {
		return n, err
	}
	return n, p.macroBody(&n, "endmacro")
}

// parameters reads a macro's, in parentheses.
func (p *parser) parameters(n *node) error {
	if err := p.want("("); err != nil {
		return err
	}
	for !p.take(")") {
		if len(n.names) > 0 {
			if err := p.want(","); err != nil {
				return err
			}
		}
		name, err := p.name()
		if err != nil {
			return err
		}
		given := node{op: opNone}
		if p.take("=") {
			if given, err = p.expression(); err != nil {
				return err
			}
		}
		n.names, n.kids = append(n.names, name), append(n.kids, given)
	}
	return nil
}

// macroBody reads what a macro writes, up to a block of a name.
func (p *parser) macroBody(n *node, end string) (err error) {
	if err := p.close(); err != nil {
		return err
	}
	loops := p.loops
	p.loops = 0
	n.body, _, err = p.until(end)
	if p.loops = loops; err != nil {
		return err
	}
	return p.close()
}
