package leak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/starling-fl/starling/data/task"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/model"
)

// Limits of matching.
const (
	mostMatched = 4      // examples of an update; of more nothing is found in seconds
	fewestTries = 500    // trainings that there must be time for in each trial
	mostTries   = 20_000 // of a trial
	priorTexts  = 200    // from which the attacker knows what such texts are made of
	mostWords   = 400    // tokens that are tried at a place,
	wordsAtOnce = 24     // and of them at once, drawn anew each time
	enough      = 0.9    // share of the tokens with which another attack leaves nothing to look for
)

const nameMatching = "gradient matching"

// matching looks for the texts whose training comes to an update of the same direction: it
// changes one token after another, trains on what comes of it by the round's own program,
// and keeps what has the larger cosine.
func (p *probe) matching(labels *attack, hints ...*attack) *attack {
	a := &attack{name: nameMatching, of: Tokens}
	switch {
	case p.Layout.Method.Task != model.TaskClassify:
		a.why = "it is written for texts with one label"
	case p.examples > mostMatched:
		a.why = fmt.Sprintf("an update averages more examples than the %d that it can match in seconds", mostMatched)
	}
	if a.why != "" {
		return a
	}
	var words []int32 // that such texts have, the most frequent first
	a.prepared = func(ctx context.Context) (why string, err error) {
		if words, err = p.prior(); err != nil {
			return "", err
		}
		m := &match{p: p, rows: task.NewBatch(p.task.Columns(), p.examples)}
		m.blank(make([]int, p.examples))
		if _, err := m.train(ctx); err != nil { // which loads the program
			return "", err
		}
		began := time.Now()
		if _, err := m.train(ctx); err != nil {
			return "", err
		}
		if took := time.Since(began); p.Tries == 0 && took*fewestTries > p.share() {
			a.slow = true
			why = fmt.Sprintf("a training takes %v, and it needs %d in %v", took.Round(time.Millisecond), fewestTries, p.share())
		}
		return why, nil
	}
	a.tokens = func(ctx context.Context, u *update) ([]float64, error) {
		for _, h := range hints {
			if h.in.share() > enough {
				a.why = h.name + " find nearly everything without it"
				return nil, nil
			}
		}
		m := &match{p: p, rows: task.NewBatch(p.task.Columns(), p.examples), to: u.values, rng: rand.New(p.source("search", u.trial))}
		if labels.why == "" {
			var of []int
			for label, n := range labels.labels(u) {
				of = append(of, slices.Repeat([]int{label}, n)...)
			}
			m.blank(of)
		} else {
			m.blank(make([]int, p.examples))
		}
		m.words = words
		for _, h := range hints { // what else is known of the update
			if h.why != "" {
				continue
			}
			score, err := h.tokens(ctx, u)
			if err != nil {
				return nil, err
			}
			m.hints = slices.AppendSeq(m.hints, maps.Keys(best(score, 2*len(u.in.tokens))))
		}
		slices.Sort(m.hints)
		if err := m.search(ctx, time.Now().Add(p.share())); err != nil {
			return nil, err
		}
		score := make([]float64, p.Base.Config.VocabSize)
		for _, id := range m.rows.Int32(task.Tokens) {
			score[id]++
		}
		return p.positive(score), nil
	}
	return a
}

// share is a trial's of the time.
func (p *probe) share() time.Duration { return p.Lasts / time.Duration(p.Trials) }

// prior are the tokens of such texts as the attacker makes up.
func (p *probe) prior() ([]int32, error) {
	counts := map[int32]int{}
	for i := 0; i*p.examples < priorTexts; i++ {
		examples, err := p.madeUp("prior", i)
		if err != nil {
			return nil, err
		}
		f, err := p.facts(examples)
		if err != nil {
			return nil, err
		}
		for id := range f.tokens {
			counts[id]++
		}
	}
	words := make([]int32, 0, len(counts))
	for id := range counts {
		words = append(words, id)
	}
	slices.SortFunc(words, func(a, b int32) int { return cmp.Or(counts[b]-counts[a], int(a-b)) })
	return words[:min(len(words), mostWords)], nil
}

// match is a search: texts that become those behind an update.
type match struct {
	p     *probe
	rows  task.Batch
	to    []float32
	rng   *rand.Rand
	words []int32 // to draw from,
	hints []int32 // and every other time from these
}

// blank makes the rows texts without words.
func (m *match) blank(labels []int) {
	tokens, weights := m.rows.Int32(task.Tokens), m.rows.Float32(task.Weights)
	for row := range m.p.examples {
		copy(tokens[row*m.p.Sequence:], m.p.empty)
		m.rows.Int32(task.Labels)[row], weights[row] = int32(labels[row]), 1
	}
}

// draw is a token to try.
func (m *match) draw() int32 {
	from := m.words
	if len(m.hints) > 0 && m.rng.IntN(2) == 0 {
		from = m.hints
	}
	return from[m.rng.IntN(len(from))]
}

// train is what a round on the rows comes to.
func (m *match) train(ctx context.Context) ([]float32, error) {
	p := m.p
	t := p.contribution(nil, [32]byte{}).Task
	t.Steps = p.steps(p.examples)
	t.MostSteps, t.Work, t.Columns = p.Steps, p.Settings.Work, p.task.Columns()
	t.Batches = m.batches(t.Steps)
	delta, err := p.Trainer.Train(ctx, t)
	if errors.Is(err, edge.ErrDiverged) {
		err = fmt.Errorf("%w: training on made-up examples: %w", ErrNotTried, err)
	}
	return delta, err
}

func (m *match) batches(steps int) iter.Seq2[task.Batch, error] {
	return func(yield func(task.Batch, error) bool) {
		b := task.NewBatch(m.p.task.Columns(), m.p.Batch)
		at := 0
		for range steps {
			if at >= m.p.examples {
				at = 0
			}
			b.Clear(0)
			for row := 0; row < m.p.Batch && at < m.p.examples; row++ {
				b.Copy(row, m.rows, at)
				at++
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

// cosine is how alike the rows' update is to the one that is looked for.
func (m *match) cosine(ctx context.Context) (float64, error) {
	delta, err := m.train(ctx)
	if errors.Is(err, ErrNotTried) { // of these texts, not of all
		return -1, nil
	} else if err != nil {
		return 0, err
	}
	var both, own, to float64
	for i, x := range delta {
		both += float64(x) * float64(m.to[i])
		own += float64(x) * float64(x)
		to += float64(m.to[i]) * float64(m.to[i])
	}
	if own == 0 || to == 0 {
		return 0, nil
	}
	return both / math.Sqrt(own*to), nil
}

// search changes tokens until the time or the tries are up.
func (m *match) search(ctx context.Context, until time.Time) error {
	left := mostTries
	if m.p.Tries > 0 {
		left, until = m.p.Tries, time.Now().Add(time.Hour)
	}
	tokens := m.rows.Int32(task.Tokens)
	best, err := m.cosine(ctx)
	if err != nil {
		return err
	}
	var order []int
	for i := range tokens {
		if i%m.p.Sequence > 0 { // where a text's first token is
			order = append(order, i)
		}
	}
	for {
		m.rng.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
		for _, at := range order {
			for range wordsAtOnce {
				if left--; left < 0 || !time.Now().Before(until) {
					return nil
				}
				before := tokens[at]
				tokens[at] = m.draw()
				now, err := m.cosine(ctx)
				if err != nil {
					return err
				}
				if now > best {
					best = now
				} else {
					tokens[at] = before
				}
			}
		}
	}
}
