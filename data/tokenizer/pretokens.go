//go:build !js || full

package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/starling-fl/starling/internal/leaf/pattern"
)

// part is a piece of a text on its way to the model. first: the text begins with it.
type part struct {
	text  string
	first bool
}

// cutter is a step of a pre-tokenizer: it hands on what it makes of a part, in order, until each
// returns false, which it returns, too.
type cutter func(p part, m *pattern.Meter, each func(part) bool) bool

// perByte is how many steps of regular expressions each byte of a text may take: published ones take
// up to 48. What lies behind is cut, so that time follows from a text's length.
const perByte = 192

// maxCutters bounds how often a text is gone over.
const maxCutters = 16

func newMeter(text string) *pattern.Meter { return &pattern.Meter{Left: perByte*len(text) + 1024} }

// preTokenizer is a step of a tokenizer.json's pre_tokenizer, or a Sequence of them.
type preTokenizer struct {
	Type        string         `json:"type"`
	AddPrefix   *bool          `json:"add_prefix_space"`
	UseRegex    *bool          `json:"use_regex"`
	Individual  bool           `json:"individual_digits"`
	Behavior    string         `json:"behavior"`
	Invert      bool           `json:"invert"`
	Pattern     *textPattern   `json:"pattern"`
	Replacement string         `json:"replacement"`
	Prepend     *string        `json:"prepend_scheme"`
	Split       *bool          `json:"split"`
	Delimiter   string         `json:"delimiter"`
	List        []preTokenizer `json:"pretokenizers"`
}

// textPattern is what a Split or a Replace looks for: a text as it is, or an expression.
type textPattern struct {
	Text  string `json:"String"`
	Regex string `json:"Regex"`
}

// spanFinder hands on the parts of a text that are found and those between, in order.
type spanFinder func(text string, m *pattern.Meter, each func(from, to int, found bool) bool) bool

func (t *textPattern) finder() (spanFinder, error) {
	switch {
	case t == nil || t.Text == "" && t.Regex == "":
		return nil, fmt.Errorf("a pattern that is neither String nor Regex, or empty")
	case t.Text != "":
		return literally(t.Text), nil
	}
	p, err := pattern.Parse(t.Regex)
	if err != nil {
		return nil, err
	}
	return matches(p), nil
}

func literally(what string) spanFinder {
	return func(text string, _ *pattern.Meter, each func(from, to int, found bool) bool) bool {
		at := 0
		for {
			n := strings.Index(text[at:], what)
			if n < 0 {
				return at == len(text) || each(at, len(text), false)
			}
			if n > 0 && !each(at, at+n, false) || !each(at+n, at+n+len(what), true) {
				return false
			}
			at += n + len(what)
		}
	}
}

func matches(p *pattern.Pattern) spanFinder {
	return func(text string, m *pattern.Meter, each func(from, to int, found bool) bool) bool {
		done := 0
		for from := 0; from <= len(text); {
			start, end, ok := p.Next(text, from, m)
			if m.Spent() {
				return false // what follows is cut
			}
			if !ok {
				break
			}
			if done < start && !each(done, start, false) || !each(start, end, true) {
				return false
			}
			if done, from = end, end; start == end {
				_, n := utf8.DecodeRuneInString(text[end:])
				from += max(n, 1)
			}
		}
		return done == len(text) || each(done, len(text), false)
	}
}

// eachOf finds each character of a kind by itself.
func eachOf(is func(r rune) bool) spanFinder {
	return func(text string, _ *pattern.Meter, each func(from, to int, found bool) bool) bool {
		done := 0
		for i, r := range text {
			if !is(r) {
				continue
			}
			end := i + utf8.RuneLen(r)
			if done < i && !each(done, i, false) || !each(i, end, true) {
				return false
			}
			done = end
		}
		return done == len(text) || each(done, len(text), false)
	}
}

// behaviors are what becomes of parts that are found: spans that belong together are joined, and
// what is dropped is not handed on.
const (
	isolated   = "Isolated"
	removed    = "Removed"
	contiguous = "Contiguous"
	previous   = "MergedWithPrevious"
	following  = "MergedWithNext"
)

// cutAt parts texts at what find finds.
func cutAt(find spanFinder, behavior string, invert bool) (cutter, error) {
	switch behavior {
	case isolated, removed, contiguous, previous, following:
	default:
		return nil, fmt.Errorf("behavior %.40q", behavior)
	}
	return func(p part, m *pattern.Meter, each func(part) bool) bool {
		from, to, was := 0, 0, false // of what waits to be handed on, and whether it was found
		hand := func() bool {
			done := from < to && !each(part{p.text[from:to], p.first && from == 0})
			from = to
			return !done
		}
		all := find(p.text, m, func(start, end int, found bool) bool {
			found = found != invert
			joins := from < to && (behavior == contiguous && found == was || behavior == previous && found && !was || behavior == following && !found && was)
			if !joins && !hand() {
				return false
			}
			if to, was = end, found; behavior == removed && found {
				from = to
			}
			return true
		})
		return all && hand()
	}, nil
}

// spelling is how the model's vocabulary spells texts.
type spelling struct {
	bytes  bool // each byte as a character of GPT-2's alphabet
	spaces bool // a space is ▁
	prefix bool // and one precedes a text, which Decode leaves out
}

// cutters compiles a pre-tokenizer.
func (p *preTokenizer) cutters(s *spelling) (all []cutter, err error) {
	if p == nil {
		return nil, nil
	}
	list := []preTokenizer{*p}
	if p.Type == "Sequence" {
		list = p.List
	}
	if len(list) > maxCutters {
		return nil, fmt.Errorf("%w: pre_tokenizer has %d steps, the limit is %d", ErrVocab, len(list), maxCutters)
	}
	for i := range list {
		if s.bytes {
			return nil, fmt.Errorf("%w: pre_tokenizer has %.40q behind ByteLevel", ErrVocab, list[i].Type)
		}
		c, err := list[i].cutter(s)
		if err != nil {
			return nil, fmt.Errorf("%w: pre_tokenizer %.40q: %w", ErrVocab, list[i].Type, err)
		}
		all = append(all, c)
	}
	return all, nil
}

func (p *preTokenizer) cutter(s *spelling) (cutter, error) {
	at := func(is func(r rune) bool, behavior string) (cutter, error) {
		return cutAt(eachOf(is), behavior, false)
	}
	switch p.Type {
	case "Split":
		find, err := p.Pattern.finder()
		if err != nil {
			return nil, err
		}
		return cutAt(find, p.Behavior, p.Invert)
	case "ByteLevel":
		s.bytes = true
		return byteLevel(p.AddPrefix == nil || *p.AddPrefix, p.UseRegex == nil || *p.UseRegex), nil
	case "Digits":
		if p.Individual {
			return at(isNumber, isolated)
		}
		return at(isNumber, contiguous)
	case "Punctuation":
		if p.Behavior == "" {
			return at(isPunct, isolated)
		}
		return at(isPunct, p.Behavior)
	case "WhitespaceSplit":
		return at(unicode.IsSpace, removed)
	case "CharDelimiterSplit":
		if utf8.RuneCountInString(p.Delimiter) != 1 {
			return nil, fmt.Errorf("delimiter %.40q", p.Delimiter)
		}
		return cutAt(literally(p.Delimiter), removed, false)
	case "Whitespace":
		return cutAt(wordsAndSigns, removed, true)
	case "BertPreTokenizer":
		spaces, _ := at(unicode.IsSpace, removed)
		signs, err := at(isPunct, isolated)
		return inTurn([]cutter{spaces, signs}), err
	case "Metaspace":
		return p.metaspace(s)
	}
	return nil, fmt.Errorf("it is not known here: want Split, ByteLevel, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit, " +
		"CharDelimiterSplit, BertPreTokenizer, or a Sequence of these")
}

// wordsAndSigns finds \w+|[^\w\s]+.
func wordsAndSigns(text string, _ *pattern.Meter, each func(from, to int, found bool) bool) bool {
	kind := func(r rune) int {
		switch {
		case inWord(r):
			return 1
		case unicode.IsSpace(r):
			return 2
		}
		return 0
	}
	from, was := 0, -1
	for i, r := range text {
		if k := kind(r); k != was {
			if i > 0 && !each(from, i, was != 2) {
				return false
			}
			from, was = i, k
		}
	}
	return from == len(text) || each(from, len(text), was != 2)
}

// inTurn takes steps one after the other.
func inTurn(all []cutter) cutter {
	switch len(all) {
	case 0:
		return func(p part, _ *pattern.Meter, each func(part) bool) bool { return p.text == "" || each(p) }
	case 1:
		return all[0]
	}
	first, rest := all[0], inTurn(all[1:])
	return func(p part, m *pattern.Meter, each func(part) bool) bool {
		return first(p, m, func(p part) bool { return rest(p, m, each) })
	}
}

// gptWords is the expression by which ByteLevel cuts texts (Radford et al. 2019).
var gptWords = sync.OnceValue(func() cutter {
	p, err := pattern.Parse(`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`)
	if err != nil {
		panic(err) // of a constant
	}
	c, err := cutAt(matches(p), isolated, false)
	if err != nil {
		panic(err)
	}
	return c
})

// byteLevel is GPT-2's step, without what makes bytes characters: the model reads bytes.
func byteLevel(prefix, words bool) cutter {
	cut := inTurn(nil)
	if words {
		cut = gptWords()
	}
	return func(p part, m *pattern.Meter, each func(part) bool) bool {
		if prefix && p.text != "" && p.text[0] != ' ' {
			p.text = " " + p.text
		}
		return cut(p, m, each)
	}
}

// prependScheme is a Metaspace's: where it puts a ▁ in front. Older files say add_prefix_space.
func prependScheme(scheme *string, add *bool) string {
	switch {
	case scheme != nil:
		return *scheme
	case add != nil && !*add:
		return "never"
	}
	return "always"
}

// metaspace writes spaces as ▁, puts one before a text or each part of it, and parts before each.
func (p *preTokenizer) metaspace(s *spelling) (cutter, error) {
	scheme := prependScheme(p.Prepend, p.AddPrefix)
	if p.Replacement != space || scheme != "always" && scheme != "first" && scheme != "never" {
		return nil, fmt.Errorf("replacement %.10q with prepend_scheme %.40q", p.Replacement, scheme)
	}
	s.spaces, s.prefix = true, s.prefix || scheme != "never"
	before, err := cutAt(literally(space), following, false)
	if err != nil {
		return nil, err
	}
	split := p.Split == nil || *p.Split
	return func(p part, m *pattern.Meter, each func(part) bool) bool {
		p.text = strings.ReplaceAll(p.text, " ", space)
		if (scheme == "always" || scheme == "first" && p.first) && p.text != "" && !strings.HasPrefix(p.text, space) {
			p.text = space + p.text
		}
		if !split {
			return p.text == "" || each(p)
		}
		return before(p, m, each)
	}, nil
}
