package pattern

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type parser struct {
	src   string
	at    int
	depth int
	parts int  // of classes: ranges, with fold one for each other case, and tables
	fold  bool // (?i)
	dot   bool // (?m): a dot is a line's end, too
}

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("%w: %s, at byte %d of %.200q", ErrSyntax, fmt.Sprintf(format, args...), p.at, p.src)
}

// Parse reads an expression.
func Parse(src string) (*Pattern, error) {
	p := &parser{src: src}
	if len(src) > maxSource {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrSyntax, len(src), maxSource)
	}
	if !utf8.ValidString(src) {
		return nil, fmt.Errorf("%w: it is not UTF-8", ErrSyntax)
	}
	root, err := p.choice()
	if err != nil {
		return nil, err
	}
	if p.at < len(src) {
		return nil, p.fail("a parenthesis closes that none has opened")
	}
	return compile(root)
}

func (p *parser) more() bool { return p.at < len(p.src) }

func (p *parser) is(text string) bool { return strings.HasPrefix(p.src[p.at:], text) }

func (p *parser) take(text string) bool {
	if !p.is(text) {
		return false
	}
	p.at += len(text)
	return true
}

func (p *parser) rune() rune {
	r, n := utf8.DecodeRuneInString(p.src[p.at:])
	p.at += n
	return r
}

func (p *parser) choice() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("groups nest deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	n := &node{kind: kindChoice}
	for {
		kid, err := p.joined()
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, kid)
		if !p.take("|") {
			break
		}
	}
	if len(n.kids) == 1 {
		return n.kids[0], nil
	}
	return n, nil
}

func (p *parser) joined() (*node, error) {
	n := &node{kind: kindJoined}
	for p.more() && !p.is("|") && !p.is(")") {
		read := p.choice // of what an option holds for: to the end of its group, alternatives included
		switch {
		case p.take("(?i)"):
			p.fold = true
		case p.take("(?-i)"):
			p.fold = false
		case p.take("(?m)"):
			p.dot = true
		default:
			read = p.repeated
		}
		kid, err := read()
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, kid)
	}
	if len(n.kids) == 1 {
		return n.kids[0], nil
	}
	return n, nil
}

func (p *parser) repeated() (*node, error) {
	n, err := p.one()
	for err == nil && p.more() {
		least, most, interval := 0, -1, false
		switch {
		case p.take("*"):
		case p.take("+"):
			least = 1
		case p.take("?"):
			most = 1
		case p.is("{"):
			if least, most, interval = p.interval(); !interval {
				return n, nil // a brace is itself
			}
		default:
			return n, nil
		}
		if least > maxRepeat || most > maxRepeat || most >= 0 && most < least {
			return nil, p.fail("a repeat of %d to %d, want at most %d", least, most, maxRepeat)
		}
		if shortest, _ := n.length(); shortest == 0 && most != 1 {
			return nil, p.fail("a repeat of what may be empty")
		}
		n = &node{kind: kindRepeat, kids: []*node{n}, min: least, max: most}
		switch {
		case p.take("?"):
			n.lazy = true
		case interval && p.is("+"):
			return nil, p.fail("an interval that a plus follows")
		case !interval && p.take("+"):
			n = &node{kind: kindAtomic, kids: []*node{n}}
		}
	}
	return n, err
}

// interval reads {n}, {n,}, {,m} or {n,m}.
func (p *parser) interval() (least, most int, ok bool) {
	body, _, closed := strings.Cut(p.src[p.at+1:], "}")
	low, high, two := strings.Cut(body, ",")
	if !closed || body == "" || body == "," || len(body) > 12 {
		return 0, 0, false
	}
	number := func(s string, empty int) int {
		if s == "" {
			return empty
		}
		n, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			return -2
		}
		return int(n)
	}
	least, most = number(low, 0), number(high, -1)
	if !two {
		most = least
	}
	if least == -2 || most == -2 {
		return 0, 0, false
	}
	p.at += len(body) + 2
	return least, most, true
}

// groups are the kinds of groups that a parenthesis and a question mark open.
var groups = []struct {
	open   string
	kind   kind
	negate bool
}{{"(?:", kindEmpty, false}, {"(?=", kindAhead, false}, {"(?!", kindAhead, true}, {"(?<=", kindBehind, false}, {"(?<!", kindBehind, true},
	{"(?>", kindAtomic, false}, {"(?i:", kindEmpty, false}, {"(?-i:", kindEmpty, false}, {"(?m:", kindEmpty, false}}

func (p *parser) one() (*node, error) {
	if p.is("(") {
		return p.group()
	}
	if p.is("[") {
		s, err := p.class()
		return &node{kind: kindSet, set: s}, err
	}
	switch r := p.rune(); r {
	case '^', '$':
		return &node{kind: kindAssert, assert: byte(r)}, nil
	case '.':
		s := &set{negate: true}
		if !p.dot {
			s.add('\n', '\n', false)
		}
		return &node{kind: kindSet, set: s.close()}, nil
	case '*', '+', '?':
		p.at--
		return nil, p.fail("%q repeats nothing", r)
	case '\\':
		if p.more() && strings.IndexByte("AzZbB", p.src[p.at]) >= 0 {
			p.at++
			return &node{kind: kindAssert, assert: p.src[p.at-1]}, nil
		}
		s := &set{}
		if _, err := p.escape(s, isWord); err != nil {
			return nil, err
		}
		return &node{kind: kindSet, set: s.close()}, nil
	default:
		s := &set{}
		s.add(r, r, p.fold)
		return &node{kind: kindSet, set: s.close()}, nil
	}
}

func (p *parser) group() (*node, error) {
	fold, dot := p.fold, p.dot
	n := &node{kind: kindEmpty}
	found := false
	for _, g := range groups {
		if found = p.take(g.open); found {
			n.kind, n.negate = g.kind, g.negate
			p.fold = p.fold && g.open != "(?-i:" || g.open == "(?i:"
			p.dot = p.dot || g.open == "(?m:"
			break
		}
	}
	if !found {
		if p.is("(?") {
			return nil, p.fail("a group that begins with %.4q", p.src[p.at:])
		}
		p.at++
	}
	body, err := p.choice()
	if err != nil {
		return nil, err
	}
	if !p.take(")") {
		return nil, p.fail("unterminated group")
	}
	p.fold, p.dot = fold, dot
	if n.kind == kindEmpty {
		return body, nil
	}
	if n.kind == kindBehind {
		for _, kid := range alternatives(body) {
			if least, most := kid.length(); least != most {
				return nil, p.fail("a look-behind of %d to %d characters, want one length", least, most)
			}
		}
	}
	n.kids = []*node{body}
	return n, nil
}

func alternatives(n *node) []*node {
	if n.kind == kindChoice {
		return n.kids
	}
	return []*node{n}
}

// escape adds what a backslash stands before to a set; single is the character that it is, or -1. word is
// what \w is here.
func (p *parser) escape(s *set, word func(r rune) bool) (single rune, err error) {
	if !p.more() {
		return -1, p.fail("it ends with a backslash")
	}
	c := p.rune()
	property := func(is func(r rune) bool, negate bool) { s.tables = append(s.tables, table{is, negate}) }
	switch c {
	case 's', 'S':
		property(unicode.IsSpace, c == 'S')
	case 'd', 'D':
		property(with("Nd", unicode.Nd), c == 'D')
	case 'w', 'W':
		property(word, c == 'W')
	case 'h', 'H':
		property(func(r rune) bool { return unicode.Is(unicode.ASCII_Hex_Digit, r) }, c == 'H')
	case 'p', 'P':
		return -1, p.property(s, c == 'P')
	case 'x', 'u':
		if single, err = p.code(c); err != nil {
			return -1, err
		}
		s.add(single, single, p.fold)
		return single, nil
	default:
		if i := strings.IndexRune("nrtfvae0", c); i >= 0 {
			c = []rune("\n\r\t\f\v\a\x1b\x00")[i]
		} else if c < 128 && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
			return -1, p.fail("escape \\%c", c)
		}
		s.add(c, c, p.fold)
		return c, nil
	}
	return -1, nil
}

// code reads the digits of \xHH, \x{H...} or \uHHHH.
func (p *parser) code(c rune) (rune, error) {
	digits, end := "", 0
	if c == 'x' && p.take("{") {
		n := strings.IndexByte(p.src[p.at:], '}')
		if n < 0 {
			return 0, p.fail("unterminated brace")
		}
		digits, end = p.src[p.at:p.at+n], p.at+n+1
	} else {
		end = p.at + map[rune]int{'x': 2, 'u': 4}[c]
		if end > len(p.src) {
			return 0, p.fail("unterminated escape")
		}
		digits = p.src[p.at:end]
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return 0, p.fail("code point %.12q", digits)
	}
	p.at = end
	return rune(n), nil
}

// property reads what follows \p or \P.
func (p *parser) property(s *set, negate bool) error {
	if !p.take("{") {
		return p.fail("a property without braces")
	}
	n := strings.IndexByte(p.src[p.at:], '}')
	if n < 0 {
		return p.fail("unterminated brace")
	}
	name := p.src[p.at : p.at+n]
	if rest, ok := strings.CutPrefix(name, "^"); ok {
		name, negate = rest, !negate
	}
	is := property(name)
	if is == nil {
		return p.fail("property %.40q is not known here: want a general category or a script", name)
	}
	p.at += n + 1
	s.tables = append(s.tables, table{is, negate})
	return nil
}

// class reads [...], with classes within it and && between parts that all must hold.
func (p *parser) class() (*set, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("classes nest deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	p.at++ // [
	negate := p.take("^")
	parts := []*set{{}}
	for first := true; ; first = false {
		s := parts[len(parts)-1]
		switch {
		case !p.more():
			return nil, p.fail("unterminated class")
		case p.is("]") && !first:
			p.at++
			if len(parts) == 1 {
				s.negate = negate
				return s.close(), nil
			}
			for _, part := range parts {
				part.close()
			}
			return (&set{within: parts, negate: negate}).close(), nil
		case p.take("&&"):
			parts = append(parts, &set{})
		case p.is("[:"):
			return nil, p.fail("a POSIX class")
		case p.is("["):
			inner, err := p.class()
			if err != nil {
				return nil, err
			}
			s.tables = append(s.tables, table{inner.slow, false})
			s.tests += inner.tests
		default:
			before := len(s.ranges) + len(s.tables)
			if err := p.member(s); err != nil {
				return nil, err
			}
			if p.parts += len(s.ranges) + len(s.tables) - before; p.parts > maxParts {
				return nil, p.fail("classes of more than %d parts, other cases among them", maxParts)
			}
		}
	}
}

// member reads a character, a range or an escape of a class.
func (p *parser) member(s *set) error {
	one := func(into *set) (rune, error) {
		if r := p.rune(); r != '\\' {
			into.add(r, r, p.fold)
			return r, nil
		}
		return p.escape(into, inWord)
	}
	low, err := one(s)
	if err != nil || low < 0 || !p.is("-") || p.is("-]") || p.is("-[") {
		return err
	}
	p.at++
	if !p.more() {
		return p.fail("unterminated range")
	}
	high, err := one(&set{})
	if err != nil {
		return err
	}
	if high < low {
		return p.fail("a range from %q to %q", low, high)
	}
	s.add(low, high, p.fold)
	return nil
}
