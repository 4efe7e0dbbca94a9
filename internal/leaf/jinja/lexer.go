package jinja

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenText             // outside of tags
	tokenOpen             // {{
	tokenClose            // }}
	tokenBlock            // {%
	tokenUnblok           // %}
	tokenName
	tokenString
	tokenInt
	tokenFloat
	tokenSign // operators and punctuation
)

type token struct {
	kind tokenKind
	text string
	line int
}

// signs are operators and punctuation, the longest first.
var signs = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "(", ")", "[", "]", "{", "}", ",", ".", ":", "|", "<", ">", "=", ";"}

// lexer cuts a template into tokens.
type lexer struct {
	src    string
	at     int
	tokens []token
}

func (l *lexer) fail(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrSyntax, 1+strings.Count(l.src[:min(l.at, len(l.src))], "\n"), fmt.Sprintf(format, args...))
}

func (l *lexer) add(kind tokenKind, text string, line int) {
	l.tokens = append(l.tokens, token{kind, text, line})
}

// lex is all tokens. As with trim_blocks the line's end behind a block goes, and as with
// lstrip_blocks the white space between a line's beginning and a block.
func lex(src string) ([]token, error) {
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	l := &lexer{src: strings.TrimSuffix(src, "\n")}
	line := 1
	starting := true // whether what is at l.at begins a line
	for l.at < len(l.src) {
		open := nextTag(l.src[l.at:])
		text := l.src[l.at:]
		if open >= 0 {
			text = l.before(open, starting)
		}
		if text != "" {
			l.add(tokenText, text, line)
		}
		if open < 0 {
			break
		}
		from := l.at
		l.at += open
		line += strings.Count(l.src[from:l.at], "\n")
		from = l.at
		all, end, err := l.raw(line)
		if err == nil && l.at == from {
			all, end, err = l.tag(line)
		}
		if err != nil {
			return nil, err
		}
		if rest := l.src[l.at:]; all {
			l.at += len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
		} else if end && strings.HasPrefix(rest, "\n") {
			l.at++
		}
		starting = l.src[l.at-1] == '\n'
		line += strings.Count(l.src[from:l.at], "\n")
	}
	l.add(tokenEnd, "", line)
	return l.tokens, nil
}

// before is the text from here up to a tag that begins open bytes on, without the white space that goes.
func (l *lexer) before(open int, starting bool) string {
	text := l.src[l.at:][:open]
	if sign := l.src[min(l.at+open+2, len(l.src)-1)]; sign == '-' {
		return strings.TrimRightFunc(text, unicode.IsSpace)
	} else if sign != '+' && l.src[l.at+open+1] != '{' {
		begin := strings.LastIndexByte(text, '\n') + 1
		if (begin > 0 || starting) && strings.TrimSpace(text[begin:]) == "" {
			return text[:begin]
		}
	}
	return text
}

// The ends of a text in which tags are none.
var (
	rawBegins = regexp.MustCompile(`^\{%[-+]?[ \t\n]*raw[ \t\n]*(-%\}[ \t\n]*|%\})`)
	rawEnds   = regexp.MustCompile(`\{%[-+]?[ \t\n]*endraw[ \t\n]*(-%\}|\+%\}|%\})`)
)

// raw reads such a text if one begins here, and says what goes of the text behind it, as tag does.
func (l *lexer) raw(line int) (all, end bool, err error) {
	if !strings.HasPrefix(l.src[l.at:], "{%") {
		return false, false, nil
	}
	begin := rawBegins.FindString(l.src[l.at:min(len(l.src), l.at+maxName)])
	if begin == "" {
		return false, false, nil
	}
	l.at += len(begin)
	stop := rawEnds.FindStringSubmatchIndex(l.src[l.at:])
	if stop == nil {
		return false, false, l.fail("a raw block does not end")
	}
	if text := l.before(stop[0], strings.HasSuffix(begin, "\n")); text != "" {
		l.add(tokenText, text, line)
	}
	shut := l.src[l.at+stop[2] : l.at+stop[3]]
	l.at += stop[1]
	return shut[0] == '-', shut[0] == '%', nil
}

// nextTag is where the next of {{, {% and {# stands; -1 if there is none.
func nextTag(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '{')
		if i < 0 || from+i+1 >= len(s) {
			return -1
		}
		if strings.IndexByte("{%#", s[from+i+1]) >= 0 {
			return from + i
		}
		from += i + 1
	}
}

// tag reads one and says what goes of the text behind it: all white space, or a line's end.
func (l *lexer) tag(line int) (all, end bool, err error) {
	kind := l.src[l.at+1]
	if kind == '#' {
		n := strings.Index(l.src[l.at+2:], "#}")
		if n < 0 {
			return false, false, l.fail("a comment does not end")
		}
		all = n > 0 && l.src[l.at+2+n-1] == '-'
		l.at += 2 + n + 2
		return all, true, nil
	}
	open, shut, shutKind := tokenOpen, "}}", tokenClose
	if kind == '%' {
		open, shut, shutKind = tokenBlock, "%}", tokenUnblok
	}
	l.add(open, "", line)
	l.at += 2
	if l.at < len(l.src) && (l.src[l.at] == '-' || l.src[l.at] == '+') {
		l.at++
	}
	depth := 0
	for {
		for l.at < len(l.src) && strings.IndexByte(" \t\n", l.src[l.at]) >= 0 {
			l.at++
		}
		rest := l.src[l.at:]
		switch {
		case rest == "":
			return false, false, l.fail("a tag does not end")
		case depth == 0 && strings.HasPrefix(rest, "-"+shut):
			l.at += 3
			l.add(shutKind, "", line)
			return true, false, nil
		case depth == 0 && (strings.HasPrefix(rest, "+"+shut) || strings.HasPrefix(rest, shut)):
			plus := rest[0] == '+'
			l.at += len(shut)
			if plus {
				l.at++
			}
			l.add(shutKind, "", line)
			return false, kind == '%' && !plus, nil
		}
		sign, err := l.word(line)
		if err != nil {
			return false, false, err
		}
		switch sign {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		}
	}
}

// word reads one token of a tag; sign is it where it is punctuation.
func (l *lexer) word(line int) (sign string, err error) {
	rest := l.src[l.at:]
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case r == '"' || r == '\'':
		return "", l.text(byte(r), line)
	case r >= '0' && r <= '9':
		n := 0
		for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '_') {
			n++
		}
		kind := tokenInt
		if n+1 < len(rest) && rest[n] == '.' && rest[n+1] >= '0' && rest[n+1] <= '9' {
			kind = tokenFloat
			for n++; n < len(rest) && rest[n] >= '0' && rest[n] <= '9'; n++ {
			}
		}
		if m := exponent(rest[n:]); m > 0 {
			kind = tokenFloat
			n += m
		}
		l.at += n
		l.add(kind, strings.ReplaceAll(rest[:n], "_", ""), line)
		return "", nil
	case r == '_' || unicode.IsLetter(r):
		n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if n < 0 {
			n = len(rest)
		}
		if n > maxName {
			return "", l.fail("a name of %d bytes, the limit is %d", n, maxName)
		}
		l.at += n
		l.add(tokenName, rest[:n], line)
		return "", nil
	}
	for _, s := range signs {
		if strings.HasPrefix(rest, s) {
			l.at += len(s)
			l.add(tokenSign, s, line)
			return s, nil
		}
	}
	return "", l.fail("%.20q", rest[:min(len(rest), 8)])
}

// exponent is how long that of a float is; 0 if there is none.
func exponent(s string) int {
	n := 1
	if len(s) > n && (s[n] == '+' || s[n] == '-') {
		n++
	}
	digits := n
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n == digits || s[0] != 'e' && s[0] != 'E' {
		return 0
	}
	return n
}

// text reads a string in quotes.
func (l *lexer) text(quote byte, line int) error {
	var b strings.Builder
	for i := l.at + 1; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == quote:
			l.at = i + 1
			l.add(tokenString, b.String(), line)
			return nil
		case c == '\\' && i+1 < len(l.src):
			i++
			n, err := escape(&b, l.src[i:])
			if err != nil {
				return l.fail("%v", err)
			}
			i += n - 1
		default:
			b.WriteByte(c)
		}
	}
	return l.fail("a string does not end")
}

// escape writes what is behind a backslash, of n bytes, as Python does.
func escape(b *strings.Builder, s string) (n int, err error) {
	if i := strings.IndexByte(`nrtabfv\'"0`, s[0]); i >= 0 {
		b.WriteByte("\n\r\t\a\b\f\v\\'\"\x00"[i])
		return 1, nil
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]
	if digits == 0 {
		b.WriteByte('\\')
		b.WriteByte(s[0])
		return 1, nil
	}
	if len(s) < 1+digits {
		return 0, fmt.Errorf("an escape does not end")
	}
	var r rune
	if _, err := fmt.Sscanf(s[1:1+digits], "%x", &r); err != nil || !utf8.ValidRune(r) {
		return 0, fmt.Errorf("escape \\%.9s", s)
	}
	b.WriteRune(r)
	return 1 + digits, nil
}
