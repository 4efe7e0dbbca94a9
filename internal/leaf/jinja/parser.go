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
		n.op = opScope
		if n.body, _, err = p.until("endgeneration"); err != nil {
			return n, err
		}
		return n, p.close()
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
	name, err := p.name()
	if err != nil {
		return n, err
	}
	target := node{op: opName, text: name, line: line}
	if p.take(".") {
		attr, err := p.name()
		if err != nil {
			return n, err
		}
		target = node{op: opAttr, kids: []node{target}, text: attr, line: line}
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
	if err := p.close(); err != nil {
		return n, err
	}
	if n.body, _, err = p.until("endset"); err != nil {
		return n, err
	}
	return n, p.close()
}

func (p *parser) macro(line int) (n node, err error) {
	n = node{op: opMacro, line: line}
	if n.text, err = p.name(); err != nil {
		return n, err
	}
	if err := p.want("("); err != nil {
		return n, err
	}
	for !p.take(")") {
		if len(n.names) > 0 {
			if err := p.want(","); err != nil {
				return n, err
			}
		}
		name, err := p.name()
		if err != nil {
			return n, err
		}
		given := node{op: opNone}
		if p.take("=") {
			if given, err = p.expression(); err != nil {
				return n, err
			}
		}
		n.names, n.kids = append(n.names, name), append(n.kids, given)
	}
	if err := p.close(); err != nil {
		return n, err
	}
	loops := p.loops
	p.loops = 0
	n.body, _, err = p.until("endmacro")
	if p.loops = loops; err != nil {
		return n, err
	}
	return n, p.close()
}
