package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// parseTagged reads a JSON object with "words" and as many "tags", or "tokens" and "ner_tags": numbers are names of tags, too.
func (s *scanner) parseTagged(words, tags, user, provider json.RawMessage) (l labelled, err error) {
	if json.Unmarshal(words, &l.Words) != nil {
		return l, errors.New("\"words\" (or \"tokens\") must be a list of strings")
	}
	var each []json.RawMessage
	if len(tags) == 0 || json.Unmarshal(tags, &each) != nil || each == nil {
		return l, errors.New("\"tags\" (or \"ner_tags\") must be a list of strings or numbers, one for each of \"words\" (or \"tokens\")")
	}
	l.Tags = make([]string, len(each))
	for i, raw := range each {
		if l.Tags[i], err = scalar("tags", raw); err != nil {
			return l, err
		}
	}
	l.Text = strings.Join(l.Words, " ")
	if l.User, err = scalar("user", user); err == nil {
		l.Provider, err = scalar("provider", provider)
	}
	return l, err
}

func (l labelled) checkTags() error {
	if len(l.Words) == 0 || len(l.Words) != len(l.Tags) {
		return fmt.Errorf("%d words with %d tags, want a tag for each of at least one word", len(l.Words), len(l.Tags))
	}
	for i, w := range l.Words {
		switch {
		case strings.TrimSpace(w) == "" || !utf8.ValidString(w):
			return fmt.Errorf("word %d is %.40q, want text", i+1, w)
		case l.Tags[i] == "" || len(l.Tags[i]) > MaxLabel || !utf8.ValidString(l.Tags[i]):
			return fmt.Errorf("tag %d is %.40q, want 1 to %d bytes of text", i+1, l.Tags[i], MaxLabel)
		}
	}
	return nil
}

// byTag builds a Set of examples that have, or whose words have, labels by name: numbered
// in alphabetical order, and written to where of says.
func byTag(file string, examples []Example, tags [][]string, of func(*Example) *[]int) (*Set, error) {
	index := map[string]int{}
	for _, names := range tags {
		for _, n := range names {
			if index[n] = 0; len(index) > MaxLabels {
				return nil, fmt.Errorf("%s: more than %d distinct tags", file, MaxLabels)
			}
		}
	}
	var labels []string
	for n := range index {
		labels = append(labels, n)
	}
	slices.Sort(labels)
	for i, n := range labels {
		index[n] = i
	}
	for i := range examples {
		to := of(&examples[i])
		*to = make([]int, 0, len(tags[i]))
		for _, n := range tags[i] {
			*to = append(*to, index[n])
		}
	}
	return &Set{Name: file, Labels: labels, Examples: examples}, nil
}
