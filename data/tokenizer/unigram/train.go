// Package unigram trains SentencePiece unigram vocabularies, which package tokenizer reads.
//
//	file, err := unigram.Train(texts, 2000, []string{"<pad>", "</s>"}) // a tokenizer.json
package unigram

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/starling-fl/starling/data/tokenizer"
)

// space stands for a space within pieces.
const space = "\u2581"

// Of Train's tokenizers.
const (
	unigramPad     = "<pad>"
	unigramEnd     = "</s>"
	unigramUnknown = "<unk>"

	longestPiece = 12 // runes of a candidate
	mostDigits   = 2  // in a piece: numbers are to be copied, not known
	unigramPass  = 3  // re-estimations at each size
)

// Train trains a unigram vocabulary of at most size pieces and returns its
// tokenizer.json: padding 0, the end of a text 1, the unknown 2, then the pieces, most
// frequent first, then the special tokens given, which no text becomes. Case stays.
//
// It follows Kudo 2018 with the likeliest way to cut each word in place of the mean
// over all of them: candidates are the frequent substrings of words; they are cut by
// the present scores and counted again, and the least used dropped, until size is
// reached. Single characters stay. The same texts give the same bytes.
func Train(texts iter.Seq[string], size int, special []string) ([]byte, error) {
	words := map[string]int{}
	for text := range texts {
		for _, w := range strings.Fields(text) {
			words[space+w]++
		}
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("%w: no words to train on", tokenizer.ErrVocab)
	}
	room := size - 3 - len(special)
	scores, chars := seeds(words, 8*size)
	if room < len(chars) {
		return nil, fmt.Errorf("%w: %d pieces, the text has %d characters and 3 and %d special tokens beside them", tokenizer.ErrVocab, size, len(chars), len(special))
	}
	for {
		var counts map[string]int
		for range unigramPass {
			counts = map[string]int{}
			for w, n := range words {
				for _, p := range cut(w, scores) {
					counts[p] += n
				}
			}
			scores = logShares(counts, chars)
		}
		if len(scores) <= room {
			break
		}
		keep := max(room, len(scores)*3/4)
		least := slices.SortedFunc(func(yield func(string) bool) {
			for p := range scores {
				if !chars[p] && !yield(p) {
					return
				}
			}
		}, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
		for _, p := range least[max(0, keep-len(chars)):] {
			delete(scores, p)
		}
	}
	return unigramJSON(scores, special)
}

// seeds lists substrings of words with the log of their share, the most frequent
// by length, and every character.
func seeds(words map[string]int, most int) (scores map[string]float64, chars map[string]bool) {
	counts, chars := map[string]int{}, map[string]bool{}
	for w, n := range words {
		runes := []rune(w)
		for i := range runes {
			chars[string(runes[i])] = true
			digits := 0
			for j := i; j < min(len(runes), i+longestPiece); j++ {
				if runes[j] >= '0' && runes[j] <= '9' {
					if digits++; digits > mostDigits {
						break
					}
				}
				counts[string(runes[i:j+1])] += n
			}
		}
	}
	all := make([]string, 0, len(counts))
	for p, n := range counts {
		if n > 1 || chars[p] {
			all = append(all, p)
		}
	}
	weight := func(p string) int { return counts[p] * utf8.RuneCountInString(p) }
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b)) })
	kept := map[string]int{}
	for i, p := range all {
		if i < most || chars[p] {
			kept[p] = counts[p]
		}
	}
	return logShares(kept, chars), chars
}

// logShares are the logs of the pieces' shares; characters that are not used stay with
// the count of 1.
func logShares(counts map[string]int, chars map[string]bool) map[string]float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	scores := make(map[string]float64, len(counts)+len(chars))
	for c := range chars {
		scores[c] = -math.Log(float64(total))
	}
	for p, n := range counts {
		scores[p] = math.Log(float64(n) / float64(total))
	}
	return scores
}

// cut is the likeliest way to cut a word into pieces.
func cut(word string, scores map[string]float64) []string {
	type state struct {
		score float64
		from  int
	}
	best := make([]state, len(word)+1)
	for i := range best {
		best[i].score = math.Inf(-1)
	}
	best[0].score = 0
	for i := 0; i < len(word); i++ {
		if math.IsInf(best[i].score, -1) {
			continue
		}
		for j, runes := i, 0; j < len(word) && runes < longestPiece; runes++ {
			_, n := utf8.DecodeRuneInString(word[j:])
			j += n
			if s, ok := scores[word[i:j]]; ok && best[i].score+s > best[j].score {
				best[j] = state{best[i].score + s, i}
			}
		}
	}
	var out []string
	for at := len(word); at > 0; at = best[at].from {
		out = append(out, word[best[at].from:at])
	}
	return out
}

// unigramJSON writes the pieces as Hugging Face's tokenizers read them.
func unigramJSON(scores map[string]float64, special []string) ([]byte, error) {
	pieces := slices.SortedFunc(func(yield func(string) bool) {
		for p := range scores {
			if !yield(p) {
				return
			}
		}
	}, func(a, b string) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	vocab := [][2]any{{unigramPad, 0}, {unigramEnd, 0}, {unigramUnknown, 0}}
	for _, p := range pieces {
		vocab = append(vocab, [2]any{p, math.Round(scores[p]*1e4) / 1e4})
	}
	var added []map[string]any
	token := func(id int, text string) {
		added = append(added, map[string]any{"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
			"normalized": false, "special": true})
	}
	for id, text := range []string{unigramPad, unigramEnd, unigramUnknown} {
		token(id, text)
	}
	for i, text := range special {
		token(len(vocab)+i, text)
	}
	metaspace := map[string]any{"type": "Metaspace", "replacement": space, "prepend_scheme": "always", "split": true}
	return json.Marshal(map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil,
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{map[string]any{"type": "WhitespaceSplit"}, metaspace}},
		"decoder":       metaspace,
		"post_processor": map[string]any{"type": "TemplateProcessing",
			"single": []any{map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}},
				map[string]any{"SpecialToken": map[string]any{"id": unigramEnd, "type_id": 0}}},
			"pair": []any{map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}},
				map[string]any{"Sequence": map[string]any{"id": "B", "type_id": 0}}},
			"special_tokens": map[string]any{unigramEnd: map[string]any{"id": unigramEnd, "ids": []int{1}, "tokens": []string{unigramEnd}}}},
		"model": map[string]any{"type": "Unigram", "unk_id": 2, "vocab": vocab, "byte_fallback": false},
	})
}
