package jinja

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func escape_(r *run, x value, _ given) (value, error) {
	if m, ok := x.(markup); ok {
		return m, nil
	}
	s, err := r.text(x)
	if err != nil {
		return nil, err
	}
	return r.escaped(s)
}

func words(r *run, x value) (value, error) {
	s, err := r.text(x)
	if err != nil {
		return nil, err
	}
	n := len(strings.FieldsFunc(s, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }))
	return int64(n), r.charge(2 * len(s))
}

// formatOf is the filter, which formats as % does.
func formatOf(r *run, x value, a given) (value, error) {
	s, err := r.text(x)
	if err != nil {
		return nil, err
	}
	if len(a.named) > 0 {
		return nil, r.fail("format takes no names here")
	}
	return r.printf(s, a.list)
}

// mostWidth bounds what a format pads to.
const mostWidth = 1 << 10

// printf is Python's formatting with %: of its letters s, r, d, i, f, x and %.
func (r *run) printf(format string, args []value) (value, error) {
	if err := r.charge(len(format)); err != nil {
		return nil, err
	}
	var b strings.Builder
	used := 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		end := i + 1
		for end < len(format) && strings.IndexByte("-+ 0123456789.", format[end]) >= 0 {
			end++
		}
		if end == len(format) {
			return nil, r.fail("a format does not end")
		}
		if format[end] == '%' {
			b.WriteByte('%')
			i = end
			continue
		}
		if used == len(args) {
			return nil, r.fail("fewer values than the format has places")
		}
		s, err := r.shaped(format[i+1:end], format[end], args[used])
		if err != nil {
			return nil, err
		}
		used++
		b.WriteString(s)
		i = end
	}
	if used != len(args) {
		return nil, r.fail("more values than the format has places")
	}
	return b.String(), nil
}

// shaped is a value as a letter of a format has it.
func (r *run) shaped(flags string, letter byte, v value) (string, error) {
	for _, part := range strings.FieldsFunc(flags, func(c rune) bool { return c < '0' || c > '9' }) {
		if n, err := strconv.Atoi(part); err != nil || n > mostWidth {
			return "", r.fail("a width of %.20s, the limit is %d", part, mostWidth)
		}
	}
	if err := r.charge(mostWidth / 8); err != nil {
		return "", err
	}
	f, n, isWhole, isNumber := number(v)
	var out string
	switch {
	case letter == 's':
		s, err := r.text(v)
		if err != nil {
			return "", err
		}
		out = fmt.Sprintf("%"+flags+"s", s)
	case letter == 'r':
		var b strings.Builder
		if err := r.show(&b, v, 0); err != nil {
			return "", err
		}
		out = fmt.Sprintf("%"+flags+"s", b.String())
	case (letter == 'd' || letter == 'i') && isNumber:
		if !isWhole {
			n = int64(f)
		}
		out = fmt.Sprintf("%"+flags+"d", n)
	case letter == 'x' && isWhole:
		out = fmt.Sprintf("%"+flags+"x", n)
	case letter == 'f' && isNumber:
		out = fmt.Sprintf("%"+flags+"f", f)
	default:
		return "", r.fail("%s is not formatted with %%%s%c here", kindOf(v), flags, letter)
	}
	return out, r.charge(len(out))
}

// braces is str.format: {}, {0}, {name}, each with a width and precision behind a colon.
func braces(r *run, s string, a given) (value, error) {
	if err := r.charge(len(s)); err != nil {
		return nil, err
	}
	var b strings.Builder
	next := 0
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		if i+1 < len(s) && s[i+1] == s[i] {
			b.WriteByte(s[i])
			s = s[i+2:]
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 0 {
			return nil, r.fail("a brace of a format has no other")
		}
		name, spec, _ := strings.Cut(s[i+1:i+end], ":")
		s = s[i+end+1:]
		var v value
		switch at, err := strconv.Atoi(name); {
		case name == "":
			at = next
			next++
			fallthrough
		case err == nil:
			if at < 0 || at >= len(a.list) {
				return nil, r.fail("a format asks for value %d of %d", at, len(a.list))
			}
			v = a.list[at]
		default:
			named, ok := a.named[name]
			if !ok {
				return nil, r.fail("a format asks for %.40q", name)
			}
			v = named
		}
		letter := byte('s')
		if n := len(spec); n > 0 && strings.IndexByte("sdfx", spec[n-1]) >= 0 {
			letter, spec = spec[n-1], spec[:n-1]
		} else if _, _, isWhole, ok := number(v); ok && spec != "" {
			if letter = 'f'; isWhole {
				letter = 'd'
			}
		}
		if strings.HasPrefix(spec, "<") {
			spec = "-" + spec[1:]
		}
		if strings.IndexFunc(strings.TrimPrefix(spec, ">"), func(c rune) bool { return c != '-' && c != '.' && (c < '0' || c > '9') }) >= 0 {
			return nil, r.fail("a format's %.20q is not known here", spec)
		}
		out, err := r.shaped(strings.TrimPrefix(spec, ">"), letter, v)
		if err != nil {
			return nil, err
		}
		b.WriteString(out)
	}
	return b.String(), nil
}

// asks is a method that asks all letters of a text, of which there is one at least.
func asks(is func(rune) bool) func(r *run, s string, a given) (value, error) {
	return func(r *run, s string, _ given) (value, error) {
		if err := r.charge(len(s)); err != nil {
			return nil, err
		}
		return s != "" && strings.IndexFunc(s, func(c rune) bool { return !is(c) }) < 0, nil
	}
}

// without is a method that takes a text off the beginning or the end.
func without(cut func(s, off string) string) func(r *run, s string, a given) (value, error) {
	return func(r *run, s string, a given) (value, error) {
		off, ok := a.at(0, "", nil).(string)
		if !ok {
			return nil, r.fail("what is taken off is a text")
		}
		return cut(s, off), r.charge(min(len(s), len(off)))
	}
}

// padded is a method that widens a text.
func padded(pad func(s string, missing int, fill string) string) func(r *run, s string, a given) (value, error) {
	return func(r *run, s string, a given) (value, error) {
		n, err := r.whole(a.at(0, "width", nil), "a width")
		if err != nil {
			return nil, err
		}
		fill, ok := a.at(1, "fillchar", " ").(string)
		if !ok || utf8.RuneCountInString(fill) != 1 {
			return nil, r.fail("a text is filled with one letter")
		}
		if err := r.charge(len(s)); err != nil {
			return nil, err
		}
		missing := max(0, n-utf8.RuneCountInString(s))
		if missing > r.room/len(fill) {
			return nil, r.beyond("more than %d bytes", r.most.Bytes)
		}
		return pad(s, missing, fill), r.charge(missing * len(fill))
	}
}

// parted is a text before, at and behind another, that is looked for from the beginning or the end.
func parted(last bool) func(r *run, s string, a given) (value, error) {
	return func(r *run, s string, a given) (value, error) {
		sep, ok := a.at(0, "sep", nil).(string)
		if !ok || sep == "" {
			return nil, r.fail("a separator is a text")
		}
		if err := r.charge(2*len(s) + len(sep) + 64); err != nil {
			return nil, err
		}
		i := strings.Index(s, sep)
		if last {
			i = strings.LastIndex(s, sep)
		}
		parts := []value{s, "", ""}
		switch {
		case i >= 0:
			parts = []value{s[:i], sep, s[i+len(sep):]}
		case last:
			parts = []value{"", "", s}
		}
		return &list{items: parts, tuple: true}, nil
	}
}

var moreTextMethods = map[string]func(r *run, s string, a given) (value, error){
	"removeprefix": without(strings.TrimPrefix), "removesuffix": without(strings.TrimSuffix), "format": braces,
	"isdigit": asks(unicode.IsDigit), "isnumeric": asks(unicode.IsNumber), "isdecimal": asks(unicode.IsDigit), "isalpha": asks(unicode.IsLetter),
	"isalnum": asks(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }), "isspace": asks(unicode.IsSpace),
	"ljust":     padded(func(s string, n int, fill string) string { return s + strings.Repeat(fill, n) }),
	"rjust":     padded(func(s string, n int, fill string) string { return strings.Repeat(fill, n) + s }),
	"partition": parted(false), "rpartition": parted(true), "rsplit": rsplit, "splitlines": splitLines,
	"index": func(r *run, s string, a given) (value, error) {
		v, err := textMethods["find"](r, s, a)
		if err == nil && v == int64(-1) {
			return nil, r.fail("a text that is asked for is not there")
		}
		return v, err
	},
	"rfind": func(r *run, s string, a given) (value, error) {
		sub, ok := a.at(0, "sub", nil).(string)
		if !ok || len(a.list) != 1 {
			return nil, r.fail("rfind takes a text")
		}
		if err := r.charge(2*len(s) + len(sub)); err != nil {
			return nil, err
		}
		i := strings.LastIndex(s, sub)
		if i > 0 {
			i = utf8.RuneCountInString(s[:i])
		}
		return int64(i), nil
	},
	"count": func(r *run, s string, a given) (value, error) {
		sub, ok := a.at(0, "sub", nil).(string)
		if !ok || len(a.list) != 1 {
			return nil, r.fail("count takes a text")
		}
		return int64(strings.Count(s, sub)), r.charge(2*len(s) + len(sub))
	},
}

// rsplit is str.rsplit, with a separator or at white space.
func rsplit(r *run, s string, a given) (value, error) {
	if a.at(1, "maxsplit", nil) == nil {
		return split(r, s, a)
	}
	most, err := r.whole(a.at(1, "maxsplit", nil), "maxsplit")
	if err != nil {
		return nil, err
	}
	if most < 0 {
		return split(r, s, given{list: []value{a.at(0, "sep", nil)}})
	}
	sep, ok := a.at(0, "sep", nil).(string)
	if ok && sep == "" {
		return nil, r.fail("an empty separator")
	}
	if err := r.charge(2*len(s) + len(sep)); err != nil {
		return nil, err
	}
	if !ok {
		s = strings.TrimRightFunc(s, unicode.IsSpace)
	}
	var parts []value
	for len(parts) < most {
		i, n := strings.LastIndex(s, sep), len(sep)
		if !ok {
			if i = strings.LastIndexFunc(s, unicode.IsSpace); i >= 0 {
				_, n = utf8.DecodeRuneInString(s[i:])
			}
		}
		if i < 0 {
			break
		}
		if err := r.lists(2); err != nil {
			return nil, err
		}
		parts = append(parts, s[i+n:])
		if s = s[:i]; !ok {
			s = strings.TrimRightFunc(s, unicode.IsSpace)
		}
	}
	if ok || strings.TrimSpace(s) != "" {
		parts = append(parts, s)
	}
	slices.Reverse(parts)
	return &list{items: parts}, nil
}

// splitLines is str.splitlines at line ends of either kind.
func splitLines(r *run, s string, a given) (value, error) {
	keep := truth(a.at(0, "keepends", false))
	if err := r.charge(2 * len(s)); err != nil {
		return nil, err
	}
	l := &list{}
	for s != "" {
		i, n := strings.IndexAny(s, "\n\r"), 1
		if i < 0 {
			i, n = len(s), 0
		} else if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		if err := r.lists(2); err != nil {
			return nil, err
		}
		line := s[:i]
		if keep {
			line = s[:i+n]
		}
		l.items = append(l.items, line)
		s = s[i+n:]
	}
	return l, nil
}

// seek is list.index and list.count.
func (r *run) seek(items []value, name string, a given) (value, error) {
	n := int64(0)
	for i, v := range items {
		same, err := r.equal(v, a.at(0, "", nil))
		if err != nil {
			return nil, err
		}
		if same && name == "index" {
			return int64(i), nil
		} else if same {
			n++
		}
	}
	if name == "index" {
		return nil, r.fail("what is asked for is not in the list")
	}
	return n, nil
}
