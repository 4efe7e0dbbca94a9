package generation

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Likely is a token and how likely it is at a place.
type Likely struct {
	ID      int32
	Text    string  // see Model.named
	Bytes   []byte  // that it adds to a text; none of a special token
	Logprob float64 // natural logarithm of its probability: neither temperature nor penalties change it; NaN where nothing comes before
}

// Token is a token of a text.
type Token struct {
	Likely
	At  int      // in characters of the texts of the tokens before
	Top []Likely // the likeliest tokens at its place, the likeliest first
}

// likelihoods are what scores say of a place.
type likelihoods struct {
	scores []float32
	total  float64 // logarithm of the sum of their exponentials
	top    []Likely
}

var errScores = errors.New("the model's scores are no numbers: its weights are damaged, or an update has made them so")

// likelihoods keeps a copy of the scores, which are changed before a token is drawn.
func (m *Model) likelihoods(scores []float32, most int) (*likelihoods, error) {
	highest := math.Inf(-1)
	for _, x := range scores {
		highest = math.Max(highest, float64(x)) // NaN if one is
	}
	sum := 0.0
	for _, x := range scores {
		sum += math.Exp(float64(x) - highest)
	}
	l := &likelihoods{scores: slices.Clone(scores), total: highest + math.Log(sum)}
	if math.IsNaN(l.total) || math.IsInf(l.total, 0) {
		return nil, errScores
	}
	var best []int32 // by score, the earlier of two that are alike first
	for i, x := range scores {
		if len(best) == most && (most == 0 || x <= scores[best[most-1]]) {
			continue
		}
		at := len(best)
		for at > 0 && x > scores[best[at-1]] {
			at--
		}
		if best = slices.Insert(best, at, int32(i)); len(best) > most {
			best = best[:most]
		}
	}
	for _, id := range best {
		l.top = append(l.top, m.likely(id, l.of(id)))
	}
	return l, nil
}

func (l *likelihoods) of(id int32) float64 { return float64(l.scores[id]) - l.total }

func (m *Model) likely(id int32, logprob float64) Likely {
	adds := m.spell(id)
	return Likely{ID: id, Text: m.named(id, adds), Bytes: []byte(adds), Logprob: logprob}
}

// named is the text that a token adds; of a special token, which adds none, its name. Bytes that are no characters by
// themselves are "bytes:" and \xNN for each, as OpenAI spells them.
func (m *Model) named(id int32, text string) string {
	if text == "" {
		return m.tok.Piece(id)
	}
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	b.WriteString("bytes:")
	for _, x := range []byte(text) {
		fmt.Fprintf(&b, "\\x%02x", x)
	}
	return b.String()
}

// spell is what a token adds behind others: some tokenizers leave a space before a text's first word out.
func (m *Model) spell(id int32) string {
	before := m.tok.Encode("a")
	return strings.TrimPrefix(m.tok.Decode(append(before, id)), m.tok.Decode(before))
}

// spelled are what all tokens add to a text, none for special ones.
func (m *Model) spelled() [][]byte {
	all := make([][]byte, m.size)
	for id := range all {
		all[id] = []byte(m.spell(int32(id)))
	}
	return all
}
