package tokenizer

import (
	"fmt"
	"iter"
	"unicode"
)

// splitter cuts a text into words, which joined are the text.
type splitter func(text string) iter.Seq[string]

// preTokenizer is a tokenizer.json's, as byte-level models have it.
type preTokenizer struct {
	Type       string `json:"type"`
	AddPrefix  bool   `json:"add_prefix_space"`
	UseRegex   *bool  `json:"use_regex"`
	Individual bool   `json:"individual_digits"`
	Behavior   string `json:"behavior"`
	Invert     bool   `json:"invert"`
	Pattern    struct {
		Regex string `json:"Regex"`
	} `json:"pattern"`
	List []preTokenizer `json:"pretokenizers"`
}

// Expressions that published files cut texts at. Package regexp has no look-ahead, and would be
// 5 % of what a browser downloads.
const (
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// wordPattern is how Starling cuts where such an expression does; nil: it does not. In a
// package's variable it would be in every program, whether that reads these files or not.
func wordPattern(regex string) splitter {
	switch regex {
	case llama3Pattern:
		return lineWords(3)
	case qwen2Pattern:
		return lineWords(1)
	}
	return nil
}

// splitter says how a text is cut, and whether one without a leading space is given one.
func (p *preTokenizer) splitter() (s splitter, prefix bool, err error) {
	refused := func(what string) (splitter, bool, error) {
		return nil, false, fmt.Errorf("%w: pre_tokenizer %s: want ByteLevel with GPT-2's pattern, by itself or behind Digits (SmolLM), "+
			"or ByteLevel without one behind a Split by Llama 3's or Qwen 2's", ErrVocab, what)
	}
	if p == nil {
		return refused("is missing")
	}
	list := []preTokenizer{*p}
	if p.Type == "Sequence" {
		list = p.List
	}
	if len(list) == 0 || len(list) > 2 || list[len(list)-1].Type != "ByteLevel" {
		return refused(fmt.Sprintf("%.40q of %d steps", p.Type, len(list)))
	}
	last := list[len(list)-1]
	gpt := last.UseRegex == nil || *last.UseRegex
	if len(list) == 1 {
		if !gpt {
			return refused("has use_regex false and nothing before it")
		}
		return gptWords, last.AddPrefix, nil
	}
	switch first := list[0]; {
	case last.AddPrefix:
		return refused("has add_prefix_space behind another step")
	case first.Type == "Digits" && first.Individual && gpt:
		return digitWords, false, nil
	case first.Type == "Split" && first.Behavior == "Isolated" && !first.Invert && !gpt && wordPattern(first.Pattern.Regex) != nil:
		return wordPattern(first.Pattern.Regex), false, nil
	default:
		return refused(fmt.Sprintf("%.40q (%.200q)", first.Type, first.Pattern.Regex))
	}
}

// digitWords has every digit by itself, and splits what is between them as GPT-2's
// pattern does.
func digitWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		part := func(s string) bool {
			for w := range gptWords(s) {
				if !yield(w) {
					return false
				}
			}
			return true
		}
		from := 0
		for i, r := range text {
			if unicode.IsNumber(r) {
				n := i + len(string(r))
				if !part(text[from:i]) || !part(text[i:n]) {
					return
				}
				from = n
			}
		}
		part(text[from:])
	}
}
