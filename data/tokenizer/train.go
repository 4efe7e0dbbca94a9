package tokenizer

import (
	"container/heap"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// maxAlphabet bounds how many distinct characters a trained vocabulary keeps;
// the rarest become [UNK].
const maxAlphabet = 512

// Train builds a vocabulary of at most vocabSize pieces from texts: the
// special tokens, the characters met (alone and as continuation), then the
// most frequent adjacent pair of pieces merged again and again, as Hugging
// Face's WordPiece trainer does (Sennrich et al. 2016, algorithm 1). Pairs
// seen once are not merged. The result depends only on the texts: ties go to
// the pair that sorts first.
func Train(texts iter.Seq[string], vocabSize int) (*WordPiece, error) {
	if vocabSize > maxVocab {
		return nil, fmt.Errorf("%w: vocabulary size %d, the limit is %d", ErrVocab, vocabSize, maxVocab)
	}
	counts := map[string]int{}
	for text := range texts {
		for w := range words(text) {
			counts[w]++
		}
	}
	if len(counts) == 0 {
		return nil, fmt.Errorf("%w: the corpus has no words", ErrVocab)
	}
	tr := newTrainer(counts)
	if need := len(tr.pieces); vocabSize < need {
		return nil, fmt.Errorf("%w: vocabulary size %d is below the %d special tokens and characters of the corpus", ErrVocab, vocabSize, need)
	}
	for len(tr.pieces) < vocabSize && tr.mergeBest() {
	}
	return FromVocab(tr.pieces)
}

type pair struct{ left, right int32 }

// segmented is a distinct word of the corpus, cut into pieces.
type segmented struct {
	pieces []int32
	count  int
}

type trainer struct {
	pieces []string
	ids    map[string]int32
	words  []segmented
	counts map[pair]int
	where  map[pair]map[int]struct{} // words that may hold the pair
	queue  candidates
}

func newTrainer(counts map[string]int) *trainer {
	tr := &trainer{ids: map[string]int32{}, counts: map[pair]int{}, where: map[pair]map[int]struct{}{}}
	for _, s := range specials {
		tr.add(s)
	}
	list := make([]string, 0, len(counts))
	chars := map[string]int{}
	for w, n := range counts {
		if len([]rune(w)) > maxWordRunes {
			continue
		}
		list = append(list, w)
		for i, r := range w {
			chars[initial(i, r)] += n
		}
	}
	slices.Sort(list) // map order must not reach the result
	alphabet := make([]string, 0, len(chars))
	for c := range chars {
		alphabet = append(alphabet, c)
	}
	slices.SortFunc(alphabet, func(a, b string) int {
		if d := chars[b] - chars[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	alphabet = alphabet[:min(len(alphabet), maxAlphabet)]
	slices.Sort(alphabet)
	for _, c := range alphabet {
		tr.add(c)
	}
	for _, w := range list {
		s := segmented{count: counts[w]}
		for i, r := range w {
			id, ok := tr.ids[initial(i, r)]
			if !ok {
				s.pieces = nil
				break
			}
			s.pieces = append(s.pieces, id)
		}
		if len(s.pieces) > 1 {
			tr.words = append(tr.words, s)
		}
	}
	for at := range tr.words {
		tr.count(at, +1)
	}
	for p, n := range tr.counts {
		tr.push(p, n)
	}
	heap.Init(&tr.queue)
	return tr
}

// initial spells a character as the piece it is at byte offset i of a word.
func initial(i int, r rune) string {
	if i == 0 {
		return string(r)
	}
	return continuation + string(r)
}

func (tr *trainer) add(piece string) int32 {
	if id, ok := tr.ids[piece]; ok {
		return id
	}
	id := int32(len(tr.pieces))
	tr.pieces = append(tr.pieces, piece)
	tr.ids[piece] = id
	return id
}

// count adds sign times the pairs of one word to the counts.
func (tr *trainer) count(at, sign int) {
	w := tr.words[at]
	for i := 1; i < len(w.pieces); i++ {
		p := pair{w.pieces[i-1], w.pieces[i]}
		tr.counts[p] += sign * w.count
		if sign > 0 {
			if tr.where[p] == nil {
				tr.where[p] = map[int]struct{}{}
			}
			tr.where[p][at] = struct{}{}
		}
	}
}

func (tr *trainer) push(p pair, n int) {
	tr.queue = append(tr.queue, candidate{p, n, tr.pieces[p.left], tr.pieces[p.right]})
}

// mergeBest merges the most frequent pair everywhere and reports whether
// there was one worth merging.
func (tr *trainer) mergeBest() bool {
	for len(tr.queue) > 0 {
		c := heap.Pop(&tr.queue).(candidate)
		now := tr.counts[c.pair]
		if now < 2 {
			continue
		}
		if now != c.count { // stale: put it back where it belongs
			c.count = now
			heap.Push(&tr.queue, c)
			continue
		}
		tr.merge(c.pair)
		return true
	}
	return false
}

func (tr *trainer) merge(p pair) {
	joined := tr.add(tr.pieces[p.left] + strings.TrimPrefix(tr.pieces[p.right], continuation))
	touched := make([]int, 0, len(tr.where[p]))
	for at := range tr.where[p] {
		touched = append(touched, at)
	}
	slices.Sort(touched)
	fresh := map[pair]struct{}{}
	for _, at := range touched {
		tr.count(at, -1)
		w := &tr.words[at]
		out := w.pieces[:0]
		for i := 0; i < len(w.pieces); i++ {
			if i+1 < len(w.pieces) && w.pieces[i] == p.left && w.pieces[i+1] == p.right {
				out = append(out, joined)
				i++
				continue
			}
			out = append(out, w.pieces[i])
		}
		w.pieces = out
		tr.count(at, +1)
		for i := 1; i < len(out); i++ {
			if out[i-1] == joined || out[i] == joined {
				fresh[pair{out[i-1], out[i]}] = struct{}{}
			}
		}
	}
	delete(tr.where, p)
	delete(tr.counts, p)
	for q := range fresh {
		heap.Push(&tr.queue, candidate{q, tr.counts[q], tr.pieces[q.left], tr.pieces[q.right]})
	}
}

// candidate is a pair with the count it had when it was queued. The spelling
// breaks ties, so that ids (which follow map order nowhere) decide nothing.
type candidate struct {
	pair
	count       int
	left, right string
}

type candidates []candidate

func (c candidates) Len() int      { return len(c) }
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c candidates) Less(i, j int) bool {
	if c[i].count != c[j].count {
		return c[i].count > c[j].count
	}
	if c[i].left != c[j].left {
		return c[i].left < c[j].left
	}
	return c[i].right < c[j].right
}
func (c *candidates) Push(x any) { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	old := *c
	x := old[len(old)-1]
	*c = old[:len(old)-1]
	return x
}
