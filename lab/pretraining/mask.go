package pretraining

import (
	"math/rand/v2"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model/nn"
)

// maskFeed draws batches, masks them and translates their tokens into the
// step's vocabulary.
type maskFeed struct {
	spec  EncoderSpec
	tok   *tokenizer.WordPiece
	rows  [][]int32
	rng   *rand.Rand
	order []int     // rows still to come in this pass
	rare  []float32 // by token: its weight in the row's prediction
	place []int32   // by token: its index in the step's vocabulary, or -1
}

func newMaskFeed(s EncoderSpec, tok *tokenizer.WordPiece, rows [][]int32, rng *rand.Rand) *maskFeed {
	f := &maskFeed{spec: s, tok: tok, rows: rows, rng: rng,
		rare: make([]float32, s.Config.VocabSize), place: make([]int32, s.Config.VocabSize)}
	counts := make([]int, s.Config.VocabSize)
	total := 0
	for _, r := range rows {
		for _, id := range r {
			if !f.special(id) {
				counts[id]++
				total++
			}
		}
	}
	for id, n := range counts {
		f.rare[id] = float32(frequent / (frequent + float64(n)/float64(max(total, 1))))
		f.place[id] = -1
	}
	return f
}

func (f *maskFeed) special(id int32) bool {
	return id == f.tok.PadID() || id == f.tok.ClsID() || id == f.tok.SepID()
}

// next returns the step's vocabulary and its inputs by name.
func (f *maskFeed) next() (vocab []int32, in map[string]any) {
	s := f.spec
	tokens := make([]int32, 0, s.Batch*s.Sequence)
	for range s.Batch {
		if len(f.order) == 0 {
			f.order = f.rng.Perm(len(f.rows))
		}
		tokens = append(tokens, f.rows[f.order[0]]...)
		f.order = f.order[1:]
	}
	// The vocabulary: what every step needs, then the rows' tokens. Tokens
	// that find no room become unknown; random ones fill what is left.
	take := func(id int32) {
		if f.place[id] < 0 && len(vocab) < s.Candidates {
			f.place[id] = int32(len(vocab))
			vocab = append(vocab, id)
		}
	}
	for _, id := range []int32{f.tok.PadID(), f.tok.UnknownID(), f.tok.ClsID(), f.tok.SepID(), f.tok.MaskID()} {
		take(id)
	}
	for i, id := range tokens {
		take(id)
		if f.place[id] < 0 {
			tokens[i] = f.tok.UnknownID()
		}
	}
	for _, id := range f.rng.Perm(f.tok.VocabSize()) {
		take(int32(id))
	}
	for id := int32(f.tok.VocabSize()); len(vocab) < s.Candidates; id++ {
		take(id) // ids that the tokenizer left unused
	}

	var open []int // places that may be masked
	for i, id := range tokens {
		if !f.special(id) {
			open = append(open, i)
		}
	}
	f.rng.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	k := s.masked()
	places, rows, targets := make([]int32, k), make([]int32, k), make([]int32, k)
	weights, rare := make([]float32, k), make([]float32, k)
	for i, at := range open[:min(k, max(1, int(maskShare*float64(len(open)))), len(open))] {
		id := tokens[at]
		places[i], rows[i], targets[i] = int32(at), int32(at/s.Sequence), f.place[id]
		weights[i], rare[i] = 1, f.rare[id]
		switch r := f.rng.Float64(); {
		case r < 0.8:
			tokens[at] = f.tok.MaskID()
		case r < 0.9:
			tokens[at] = vocab[5+f.rng.IntN(len(vocab)-5)]
		}
	}
	for i, id := range tokens {
		tokens[i] = f.place[id]
	}
	for _, id := range vocab {
		f.place[id] = -1
	}
	return vocab, map[string]any{task.Tokens: tokens, nn.MaskedPlaces: places, nn.MaskedRows: rows, nn.MaskedTargets: targets,
		task.Weights: weights, nn.MaskedRowWeight: rare}
}
