package task

import (
	"cmp"
	"math"
	"slices"
)

// Spelling is the choice of a text by connectionist temporal classification (Graves et al. 2006). A
// recording's scores are those of each character in each frame, frame after frame. Frames spell the
// text that remains of their characters when equal neighbours are merged and blanks removed.
type Spelling struct {
	Characters int // the blank among them
	Blank      int
	Beams      int  // beginnings of texts that a search has at hand; 0 and 1: each frame's best character
	Mean       bool // a text's loss is by its characters
}

// MostBeams is the largest Spelling.Beams.
const MostBeams = 256

// Several is true: any number of characters may be right.
func (Spelling) Several() bool { return true }

// Frames is the least number of frames that can spell a text: one for each character, and one for
// the blank between two equal ones.
func (s Spelling) Frames(text []int32) int {
	n := len(text)
	for i := 1; i < len(text); i++ {
		if text[i] == text[i-1] {
			n++
		}
	}
	return n
}

// Predicted returns the text that the scores predict: what each frame's best character spells or,
// with more than one beam, a likelier text if a prefix search finds one.
func (s Spelling) Predicted(scores []float32) []int {
	greedy := s.Greedy(scores)
	if s.Beams < 2 {
		return greedy
	}
	if text, p := s.Search(scores); p > s.LogProbability(scores, greedy) {
		return text
	}
	return greedy
}

// Greedy returns the text that the best character of each frame spells.
func (s Spelling) Greedy(scores []float32) []int {
	text, before := []int{}, s.Blank
	for ; len(scores) >= s.Characters; scores = scores[s.Characters:] {
		at := Best(scores[:s.Characters])
		if at != before && at != s.Blank {
			text = append(text, at)
		}
		before = at
	}
	return text
}

// logProbs are the logarithms of each frame's softmax.
func (s Spelling) logProbs(scores []float32) [][]float64 {
	var out [][]float64
	for ; len(scores) >= s.Characters; scores = scores[s.Characters:] {
		row := make([]float64, s.Characters)
		for c := range row {
			row[c] = -CrossEntropy(scores[:s.Characters], c)
		}
		out = append(out, row)
	}
	return out
}

// A beginning is a text as far as some frames spell it, with the logarithms of the probability
// that the last of them is a blank, and that it is the text's last character.
type beginning struct {
	text        []int
	blank, last float64
}

func (b beginning) all() float64 { return logAdd(b.blank, b.last) }

// Search is a prefix beam search (Hannun et al. 2014, without a language model). It returns the
// likeliest text that it finds over all ways to spell it, and the logarithm of its probability.
// Frame by frame it keeps the Beams likeliest prefixes; with as many beams as there are texts it is
// exact. Of equal ones it takes the first in the order of their characters.
func (s Spelling) Search(scores []float32) (text []int, logProbability float64) {
	none := math.Inf(-1)
	kept := []beginning{{nil, 0, none}}
	for _, row := range s.logProbs(scores) {
		next := map[string]*beginning{}
		at := func(text []int) *beginning {
			key := textKey(text)
			b := next[key]
			if b == nil {
				b = &beginning{text, none, none}
				next[key] = b
			}
			return b
		}
		for _, k := range kept {
			same := at(k.text)
			same.blank = logAdd(same.blank, k.all()+row[s.Blank])
			for c, p := range row {
				if c == s.Blank {
					continue
				}
				longer := append(k.text[:len(k.text):len(k.text)], c)
				if n := len(k.text); n > 0 && k.text[n-1] == c {
					same.last = logAdd(same.last, k.last+p) // it goes on
					b := at(longer)
					b.last = logAdd(b.last, k.blank+p) // it stands again
					continue
				}
				b := at(longer)
				b.last = logAdd(b.last, k.all()+p)
			}
		}
		kept = kept[:0:0]
		for _, b := range next {
			kept = append(kept, *b)
		}
		slices.SortFunc(kept, func(a, b beginning) int {
			return cmp.Or(cmp.Compare(b.all(), a.all()), slices.Compare(a.text, b.text))
		})
		kept = kept[:min(len(kept), max(1, s.Beams))]
	}
	return kept[0].text, kept[0].all()
}

// textKey tells texts from others.
func textKey(text []int) string {
	out := make([]byte, 0, 2*len(text))
	for _, c := range text {
		out = append(out, byte(c>>8), byte(c))
	}
	return string(out)
}

// logAdd is log(e^a + e^b).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// Loss is -LogProbability, in nats; divided by the number of characters if Mean is set; infinite
// if no way spells the text.
func (s Spelling) Loss(scores []float32, right []int) float64 {
	loss := -s.LogProbability(scores, right)
	if s.Mean {
		loss /= float64(max(1, len(right)))
	}
	return loss
}

// LogProbability is the logarithm of the probability of a text over all ways in which the frames
// can spell it, whatever Mean is; -Inf if there is no way.
func (s Spelling) LogProbability(scores []float32, text []int) float64 {
	states := make([]int, 2*len(text)+1) // blank, character, blank, ...
	for i := range states {
		if states[i] = s.Blank; i%2 == 1 {
			states[i] = text[i/2]
		}
	}
	none := math.Inf(-1)
	alpha := make([]float64, len(states))
	for i := range alpha {
		alpha[i] = none
	}
	alpha[0] = 0 // before the first frame
	for _, row := range s.logProbs(scores) {
		next := make([]float64, len(states))
		for i, c := range states {
			sum := alpha[i]
			if i > 0 {
				sum = logAdd(sum, alpha[i-1])
			}
			if i > 1 && c != s.Blank && c != states[i-2] {
				sum = logAdd(sum, alpha[i-2])
			}
			next[i] = sum + row[c]
		}
		alpha = next
	}
	n := len(alpha)
	if n == 1 {
		return alpha[0]
	}
	return logAdd(alpha[n-1], alpha[n-2])
}

// Probabilities returns nil: there are too many texts to list.
func (s Spelling) Probabilities([]float32) []float64 { return nil }
