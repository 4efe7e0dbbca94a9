package task

import (
	"fmt"
	"math/rand/v2"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// Mixture is what a base for documents is pretrained on. A T5 this small does not learn to copy
// from answers alone: it first learns to continue after two given tokens, then to answer. In
// addition it learns the places of words (Wang et al. 2023 on federated document question answering,
// TM, LM and TLM, after UDOP, Tang et al. 2023): masked tokens from their places, places from
// tokens, and both.
type Mixture struct {
	*answer
	sentinels
}

// Most masked tokens of a Mixture's example.
const maskText, maskLayout, maskBoth = 4, 3, 2

// MixtureTokens lists the special tokens that a Mixture's tokenizer must have and, if sentinels is
// not 0, that many mask tokens for each objective, for Denoise.
func MixtureTokens(sentinels int) []string {
	var out []string
	for i := range max(maskText, sentinels) {
		out = append(out, fmt.Sprintf("<text_%d>", i))
	}
	for i := range max(maskLayout, sentinels) {
		out = append(out, fmt.Sprintf("<layout_%d>", i), fmt.Sprintf("</layout_%d>", i))
	}
	for i := range max(maskBoth, sentinels) {
		out = append(out, fmt.Sprintf("<text_layout_%d>", i))
	}
	for i := range locations {
		out = append(out, fmt.Sprintf("<loc_%d>", i))
	}
	return out
}

// NewMixture returns the mixture for a layout whose task is answer.
func NewMixture(l *model.Layout, tok tokenizer.Tokenizer, sequence int) (*Mixture, error) {
	if l.Method.Task != model.TaskAnswer {
		return nil, fmt.Errorf("task: the mixture is for a base that writes text, not for task %s", l.Method.Task)
	}
	s, err := newSentinels(tok, l.Config)
	if err != nil {
		return nil, err
	}
	return &Mixture{newAnswer(answerColumns(l, sequence), tok, l, sequence), s}, nil
}

// copying is the share of pretraining that comes before the first question.
const copying = 0.7

// Draw writes a row about a document; rng decides which kind. Questions begin once done, which goes
// from 0 to 1, has passed the time for copying.
func (m *Mixture) Draw(rng *rand.Rand, done float64, e *dataset.Example, b Batch, row int) error {
	questions, cues := 0.0, 0.9 // of what is no question
	if done > copying {
		questions, cues = 0.75, 0.6
	}
	x := rng.Float64()
	if x < questions {
		return m.Encode(e, b, row)
	}
	ids, boxes, err := m.read(e)
	if err != nil {
		return err
	}
	if err := m.pixels(e, b, row); err != nil {
		return err
	}
	const prompt = 10 // tokens that a task's prompt takes at most
	n := min(len(ids), m.sequence-1-prompt)
	ids, boxes = ids[:max(0, n)], boxes[:max(0, n)]
	masks := (1 - cues) / 3
	switch x = (x - questions) / (1 - questions); {
	case n < 8, x < cues:
		m.cue(rng, ids, boxes, b, row)
	case x < cues+masks:
		m.masked(rng, ids, boxes, b, row, maskText, 0.5, m.hideText)
	case x < cues+2*masks:
		m.masked(rng, ids, boxes, b, row, maskLayout, 0.75, m.hidePlace)
	default:
		m.masked(rng, ids, boxes, b, row, maskBoth, 0.15, m.hideBoth)
	}
	return nil
}

// cue gives two neighbours of the document and asks for what follows them.
func (m *Mixture) cue(rng *rand.Rand, ids []int32, boxes [][4]int32, b Batch, row int) {
	at := 0
	if len(ids) > 3 {
		at = rng.IntN(len(ids) - 3)
	}
	given := ids[at:min(at+2, len(ids))]
	prompt := append(m.tok.Encode("continue: "), given...)
	m.source(b, row, append(prompt, m.tok.Encode("context: ")...), ids, boxes)
	m.target(b, row, ids[at+len(given):])
}

// masked picks up to most tokens, each with the probability share, and lets mask
// rewrite each in its place and say what is written of it.
func (m *Mixture) masked(rng *rand.Rand, ids []int32, boxes [][4]int32, b Batch, row, most int, share float64,
	mask func(l int, id int32, box [4]int32) (in []int32, at [][4]int32, out []int32)) {
	picked := map[int]bool{}
	for _, i := range rng.Perm(len(ids)) {
		if len(picked) < most && rng.Float64() < share {
			picked[i] = true
		}
	}
	var in, out []int32
	var places [][4]int32
	l := 0
	for i, id := range ids {
		if !picked[i] {
			in, places = append(in, id), append(places, boxes[i])
			continue
		}
		x, at, y := mask(l, id, boxes[i])
		in, places, out = append(in, x...), append(places, at...), append(out, y...)
		l++
	}
	m.source(b, row, m.tok.Encode("fill in: "), in, places)
	m.target(b, row, out)
}
