package task

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// Types is a column of spans if the base distinguishes segments: i32 [S], 0 for the question and 1
// for the document.
const Types = "types"

// Span finds an answer within a document: the encoder reads question and document as a pair, and a
// head scores, for each token, how well it begins and ends the answer (Devlin et al. 2019). If a
// model reads boxes, each token has its word's. A document longer than the sequence becomes several
// examples: see Split.
//
// Labels are f32 [S,2], 1 where an answer begins and where one ends. All places with a right answer
// are right, and training uses all of them (Clark and Gardner 2018). An example without answers
// points at the first token, as in SQuAD 2.0; one that does not contain its answers has weight 0.
type Span struct {
	columns                []Column
	tok                    tokenizer.Tokenizer
	before, between, after []int32 // special tokens around question and document
	sequence, most         int     // tokens; of an answer
	types, boxes           bool
}

var spanKind = kind{columns: spanColumns, takes: []dataset.Form{dataset.FormQuestions}, make: func(p parts) (Task, error) {
	return newSpan(p.columns, p.tok, p.layout, p.sequence), nil
}}

func spanColumns(l *model.Layout, sequence int) []Column {
	columns := []Column{{Name: Tokens, Type: I32, Shape: []int{sequence}, Limit: l.Config.VocabSize}}
	if n := l.Config.TypeVocabSize; n > 1 {
		columns = append(columns, Column{Name: Types, Type: I32, Shape: []int{sequence}, Limit: n})
	}
	if l.Method.Boxes() {
		columns = append(columns, Column{Name: Boxes, Type: I32, Shape: []int{sequence, 4}, Limit: page + 1})
	}
	return append(columns, Column{Name: Labels, Type: F32, Shape: []int{sequence, 2}}, Column{Name: Weights, Type: F32})
}

func newSpan(columns []Column, tok tokenizer.Tokenizer, l *model.Layout, sequence int) *Span {
	s := &Span{columns: columns, tok: tok, sequence: sequence, most: l.Method.AnswerTokens(),
		types: l.Config.TypeVocabSize > 1, boxes: l.Method.Boxes()}
	s.before, s.after = around(tok)
	for range l.Config.Separators() { // of RoBERTa two: <s> a </s></s> b </s>
		s.between = append(s.between, s.after...)
	}
	return s
}

func (s *Span) Columns() []Column { return s.columns }

// piece is a token of a document.
type piece struct {
	id   int32
	word int
	box  [4]uint16
}

// wordsOf are a document's words; of a text what is between spaces.
func wordsOf(e *dataset.Example) []string {
	if len(e.Words) > 0 {
		return e.Words
	}
	return strings.Fields(e.Text)
}

// pieces are a document's tokens.
func (s *Span) pieces(e *dataset.Example) ([]piece, error) {
	words := wordsOf(e)
	switch {
	case e.Question == "":
		return nil, errors.New("an example has no question")
	case len(words) == 0:
		return nil, errors.New("a document has no words")
	case s.boxes && len(e.Boxes) != len(words):
		return nil, fmt.Errorf("a document has %d boxes for %d words, and the job reads a box for each", len(e.Boxes), len(words))
	}
	var all []piece
	for i, word := range words {
		if i > 0 {
			word = " " + word // which byte-level vocabularies mind
		}
		var box [4]uint16
		if s.boxes {
			box = e.Boxes[i]
			for _, x := range box {
				if x > page || box[0] > box[2] || box[1] > box[3] {
					return nil, fmt.Errorf("the box %v of word %d is none within %d", box, i+1, page)
				}
			}
		}
		for _, id := range s.tok.Encode(word) {
			all = append(all, piece{id, i, box})
		}
	}
	return all, nil
}

// question is as much of the question as there is room for beside a document.
func (s *Span) question(e *dataset.Example) []int32 {
	ids := s.tok.Encode(e.Question)
	return ids[:min(len(ids), max(0, (s.sequence-s.framing())/2))]
}

// framing is the number of special tokens.
func (s *Span) framing() int { return len(s.before) + len(s.between) + len(s.after) }

// Split cuts a document into parts that fit beside the question. They overlap by the largest number
// of tokens of an answer, so that each answer is whole in some part. Parts without an answer have
// none, unless no part has one.
func (s *Span) Split(e *dataset.Example) ([]dataset.Example, error) {
	all, err := s.pieces(e)
	if err != nil {
		return nil, err
	}
	room := s.sequence - s.framing() - len(s.question(e))
	if room < 1 {
		return nil, fmt.Errorf("task: sequences of %d tokens have no room for a document", s.sequence)
	}
	if len(all) <= room {
		return []dataset.Example{*e}, nil
	}
	words := wordsOf(e)
	first := make([]int, len(words)+1) // by word: its first piece
	for i, p := 0, 0; i <= len(words); i++ {
		for p < len(all) && all[p].word < i {
			p++
		}
		first[i] = p
	}
	overlap := min(s.most, room/2)
	var parts []dataset.Example
	stands := false
	for from := 0; ; {
		to := from + 1 // at least one word, which is cut where it is longer than the room
		for to < len(words) && first[to+1]-first[from] <= room {
			to++
		}
		part := *e
		part.Text, part.Words = "", words[from:to]
		if len(e.Boxes) > 0 {
			part.Boxes = e.Boxes[from:to]
		}
		parts = append(parts, part)
		stands = stands || len(s.places(all[first[from]:min(first[to], first[from]+room)], e.Answers)) > 0
		if to == len(words) {
			break
		}
		next := to
		for next > from+1 && first[to]-first[next-1] <= overlap {
			next--
		}
		from = next
	}
	if stands {
		for i := range parts {
			cut, err := s.pieces(&parts[i])
			if err != nil {
				return nil, err
			}
			if len(s.places(cut[:min(len(cut), room)], e.Answers)) == 0 {
				parts[i].Answers = nil
			}
		}
	}
	return parts, nil
}

// places are where answers are in a document: first and last piece of each.
func (s *Span) places(in []piece, answers []string) (at [][2]int) {
	for _, a := range answers {
		var before []int32
		for _, text := range []string{a, " " + a} { // byte-level vocabularies tell them apart
			ids := s.tok.Encode(text)
			if len(ids) == 0 || len(ids) > s.most || slices.Equal(ids, before) {
				continue // as it was without the space, in vocabularies that do not mind it
			}
			before = ids
			for i := 0; i+len(ids) <= len(in); i++ {
				n := 0
				for n < len(ids) && in[i+n].id == ids[n] {
					n++
				}
				if n == len(ids) {
					at = append(at, [2]int{i, i + n - 1})
				}
			}
		}
	}
	return at
}

// Encode writes a part of a document with its question and the positions of its answers.
func (s *Span) Encode(e *dataset.Example, b Batch, row int) error {
	in, first, err := s.write(e, b, row)
	if err != nil {
		return err
	}
	labels := b.Float32(Labels)[2*row*s.sequence:][:2*s.sequence]
	clear(labels)
	weight := float32(1)
	at := s.places(in, e.Answers)
	switch {
	case len(e.Answers) == 0:
		labels[0], labels[1] = 1, 1
	case len(at) == 0:
		weight = 0
	}
	for _, p := range at {
		labels[2*(first+p[0])], labels[2*(first+p[1])+1] = 1, 1
	}
	b.Float32(Weights)[row] = weight
	return nil
}

// Read writes a part of a document with its question.
func (s *Span) Read(e *dataset.Example, b Batch, row int) error {
	_, _, err := s.write(e, b, row)
	return err
}

// pair is what the encoder reads of a part of a document: its pieces as far as there is
// room, the question before them, and the place of the first piece.
func (s *Span) pair(e *dataset.Example) (in []piece, question []int32, first int, err error) {
	if in, err = s.pieces(e); err != nil {
		return nil, nil, 0, err
	}
	question = s.question(e)
	first = len(s.before) + len(question) + len(s.between)
	return in[:min(len(in), max(0, s.sequence-first-len(s.after)))], question, first, nil
}

// write writes the pair, and returns the document's pieces and the place of their first.
func (s *Span) write(e *dataset.Example, b Batch, row int) ([]piece, int, error) {
	in, question, first, err := s.pair(e)
	if err != nil {
		return nil, 0, err
	}
	tokens := b.Int32(Tokens)[row*s.sequence:][:s.sequence]
	n := copy(tokens, s.before)
	n += copy(tokens[n:], question)
	n += copy(tokens[n:], s.between)
	for _, p := range in {
		tokens[n] = p.id
		n++
	}
	n += copy(tokens[n:], s.after)
	for i := n; i < s.sequence; i++ {
		tokens[i] = s.tok.PadID()
	}
	if s.types {
		types := b.Int32(Types)[row*s.sequence:][:s.sequence]
		for i := range types {
			types[i] = 0
			if i >= first && i < n {
				types[i] = 1
			}
		}
	}
	if s.boxes {
		boxes := b.Int32(Boxes)[4*row*s.sequence:][:4*s.sequence]
		clear(boxes)
		for i, p := range in {
			for k, x := range p.box {
				boxes[4*(first+i)+k] = int32(x)
			}
		}
	}
	return in, first, nil
}

// Best returns the likeliest answer in a part of a document, and its probability: the beginning and
// the end are each a softmax over the part's tokens and the first token, which stands for no
// answer. logits hold two numbers for each token, its beginning and its end.
func (s *Span) Best(e *dataset.Example, logits []float32) (text string, probability float64, err error) {
	in, _, first, err := s.pair(e)
	if err != nil {
		return "", 0, err
	}
	if len(logits) < 2*(first+len(in)) {
		return "", 0, fmt.Errorf("task: %d scores for %d tokens", len(logits), first+len(in))
	}
	begin, end := s.softmax(logits, first, len(in), 0), s.softmax(logits, first, len(in), 1)
	from, to := 0, -1
	for i := range in {
		for j := i; j < min(len(in), i+s.most); j++ {
			if p := begin[i] * end[j]; p > probability {
				from, to, probability = i, j, p
			}
		}
	}
	if to < from {
		return "", 0, nil
	}
	return s.text(wordsOf(e), in, from, to), probability, nil
}

// Loss is the cross-entropy of softmaxes over all tokens of the row, as in training; an example without answers
// points at the first token.
func (s *Span) Loss(e *dataset.Example, logits []float32) (loss float64, stands bool, err error) {
	in, _, first, err := s.pair(e)
	if err != nil {
		return 0, false, err
	}
	n := first + len(in) + len(s.after)
	if len(logits) < 2*n {
		return 0, false, fmt.Errorf("task: %d scores for %d tokens", len(logits), n)
	}
	at := s.places(in, e.Answers)
	if len(at) == 0 && len(e.Answers) > 0 {
		return 0, false, nil
	}
	for which := range 2 {
		right := map[int]bool{0: len(at) == 0}
		for _, p := range at {
			right[first+p[which]] = true
		}
		top := math.Inf(-1)
		for i := range n {
			top = math.Max(top, float64(logits[2*i+which]))
		}
		all, hit := 0.0, 0.0
		for i := range n {
			x := math.Exp(float64(logits[2*i+which]) - top)
			if all += x; right[i] {
				hit += x
			}
		}
		loss += math.Log(all/math.Max(hit, math.SmallestNonzeroFloat32)) / 2
	}
	return loss, true, nil
}

func (s *Span) softmax(logits []float32, first, n, which int) []float64 {
	top := float64(logits[which])
	for i := range n {
		top = math.Max(top, float64(logits[2*(first+i)+which]))
	}
	sum, out := math.Exp(float64(logits[which])-top), make([]float64, n)
	for i := range out {
		out[i] = math.Exp(float64(logits[2*(first+i)+which]) - top)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// text is what is at pieces from..to as the document has it, its first and last word
// cut where the pieces are: whole where their lengths do not tell.
func (s *Span) text(words []string, in []piece, from, to int) string {
	out := append([]string(nil), words[in[from].word:in[to].word+1]...)
	before, behind := s.cut(words, in, from, true), s.cut(words, in, to, false)
	last := len(out) - 1
	runes := []rune(out[last])
	out[last] = string(runes[:len(runes)-behind])
	runes = []rune(out[0])
	out[0] = string(runes[min(before, len(runes)):])
	return strings.Join(out, " ")
}

// cut counts the characters of a piece's word that are before it, or behind it; none
// where the pieces' lengths do not tell.
func (s *Span) cut(words []string, in []piece, at int, before bool) int {
	word := in[at].word
	from, to := at, at+1
	for from > 0 && in[from-1].word == word {
		from--
	}
	for to < len(in) && in[to].word == word {
		to++
	}
	lengths, left, unknown := make([]int, to-from), utf8.RuneCountInString(words[word]), -1
	for i := range lengths {
		id := in[from+i].id
		if id == s.tok.UnknownID() {
			if unknown >= 0 {
				return 0
			}
			unknown = i // what the others leave
			continue
		}
		text := s.tok.Piece(id)
		for _, mark := range []string{"##", "Ġ", "▁"} {
			text = strings.TrimPrefix(text, mark)
		}
		lengths[i] = utf8.RuneCountInString(text)
		left -= lengths[i]
	}
	if unknown >= 0 && left > 0 {
		lengths[unknown], left = left, 0
	}
	if left != 0 {
		return 0
	}
	beside := lengths[:at-from]
	if !before {
		beside = lengths[at-from+1:]
	}
	n := 0
	for _, x := range beside {
		n += x
	}
	return n
}
