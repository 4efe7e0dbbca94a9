package exposure

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/dp/audit/membership"
	"github.com/starling-fl/starling/dp/audit/memorization"
	"github.com/starling-fl/starling/internal/app/engine"
	"github.com/starling-fl/starling/internal/leaf/terminal"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate"
	"github.com/starling-fl/starling/model/evaluate/answer"
)

// subject is the model that is attacked, and what it began as.
type subject struct {
	Engine     engine.Engine
	Checkpoint *model.Checkpoint
	Rank       int
	Start      *model.Adapter // that training began with; nil: a fresh one, which is the base
	Progress   io.Writer      // how far it is

	examiner *evaluate.Examiner
}

// Open prepares to look.
func (s *subject) Open() (err error) {
	ck := s.Checkpoint
	if s.Start == nil {
		s.Start = model.NewAdapter(ck.Adapter.Layout(), 0)
	}
	if a, b := s.Start.Layout().Size(s.Rank), ck.Adapter.Layout().Size(s.Rank); a != b {
		return fmt.Errorf("%w: the start has %d values at rank %d, the released model %d: it did not begin there", ErrPeople, a, s.Rank, b)
	}
	s.examiner, err = evaluate.NewExaminer(s.Engine.Backend, ck.Base, ck.Adapter.Layout(), ck.Seq)
	return err
}

// Asks reports whether the model answers questions in words: only then is there anything to remove.
func (s *subject) Asks() bool { return s.examiner.Asks() }

// chunk is how many examples are looked at between two words of how far it is.
const chunk = 32

// look examines examples with an adapter.
func (s *subject) look(ctx context.Context, what string, a *model.Adapter, examples []dataset.Example) ([]evaluate.Examined, error) {
	slice := a.Slice(s.Rank)
	return inChunks(s.Progress, what, examples, func(some []dataset.Example) ([]evaluate.Examined, error) {
		return s.examiner.Examine(ctx, slice, s.Rank, some)
	})
}

func inChunks[T any](told io.Writer, what string, examples []dataset.Example, do func([]dataset.Example) ([]T, error)) ([]T, error) {
	count := terminal.NewCountdown(told, what, len(examples))
	out := make([]T, 0, len(examples))
	for from := 0; from < len(examples); from += chunk {
		some, err := do(examples[from:min(from+chunk, len(examples))])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		out = append(out, some...)
		count.Reach(len(out))
	}
	return out, nil
}

// observations are what both models show of each example, and what the released one does once
// answers are removed.
type observations struct {
	Model, Base []evaluate.Examined
	// Red says which examples are questions whose answer was in the document and was removed;
	// of these the models' answers.
	Red               []bool
	RedModel, RedBase []evaluate.Examined
	DeltaMemory       []float64 // how alike answers without a question are; NaN: none
	Unprinted         []bool    // questions whose answer is not in the document
	// Blurred says that the base reads pages' pictures, Patched that it does so as they are, without an encoder.
	Blurred, Patched, Questions bool
}

// wanted says how much is looked at beside the examples as they are: the answers to questions
// whose answer was removed, the base's to them, and what the released model says without a
// question.
type wanted struct{ Removed, Base, Unasked bool }

// Observe looks at people's examples.
func (s *subject) Observe(ctx context.Context, p *People, want wanted) (l *observations, err error) {
	l = &observations{Questions: s.Asks()}
	if l.Model, err = s.look(ctx, "examples, released model", s.Checkpoint.Adapter, p.Examples); err != nil {
		return nil, err
	}
	if l.Base, err = s.look(ctx, "examples, base", s.Start, p.Examples); err != nil {
		return nil, err
	}
	n := len(p.Examples)
	l.Red, l.Unprinted, l.DeltaMemory = make([]bool, n), make([]bool, n), slices.Repeat([]float64{math.NaN()}, n)
	l.RedModel, l.RedBase = make([]evaluate.Examined, n), make([]evaluate.Examined, n)
	if !l.Questions || !want.Removed {
		return l, nil
	}
	var red []dataset.Example
	var at []int
	for i, e := range p.Examples {
		t5 := s.Checkpoint.Base.Config.T5
		_, looks := t5.Page()
		l.Blurred = l.Blurred || e.Image != nil && looks
		l.Patched = l.Blurred && t5.Patched.On()
		if len(e.Answers) == 0 {
			continue
		}
		without, found, left := memorization.Redact(e, e.Answers)
		l.Unprinted[i] = !found
		if l.Red[i] = found && left; l.Red[i] {
			red, at = append(red, without), append(at, i)
		}
	}
	place := func(to []evaluate.Examined, from []evaluate.Examined) {
		for k, i := range at {
			to[i] = from[k]
		}
	}
	answers, err := s.look(ctx, "questions without their answers, released model", s.Checkpoint.Adapter, red)
	if err != nil {
		return nil, err
	}
	place(l.RedModel, answers)
	if want.Base {
		if answers, err = s.look(ctx, "questions without their answers, base", s.Start, red); err != nil {
			return nil, err
		}
		place(l.RedBase, answers)
	}
	if want.Unasked {
		err = s.lookUnasked(ctx, p, l)
	}
	return l, err
}

// lookUnasked fills DeltaMemory: what is said of a document without a question, and how alike
// it is once it is removed from the document. Questions of one document share it.
func (s *subject) lookUnasked(ctx context.Context, p *People, l *observations) error {
	slice := s.Checkpoint.Adapter.Slice(s.Rank)
	say := func(what string, of []dataset.Example) ([]answer.Reply, error) {
		return inChunks(s.Progress, what, of, func(some []dataset.Example) ([]answer.Reply, error) {
			return s.examiner.Replies(ctx, slice, s.Rank, some)
		})
	}
	documents, of := distinct(p.Examples)
	for i := range documents {
		documents[i] = s.examiner.Unasked(documents[i])
	}
	first, err := say("documents without a question", documents)
	if err != nil {
		return err
	}
	var without []dataset.Example
	var at []int
	for i, r := range first {
		if r.Text == "" {
			continue
		}
		if e, _, left := memorization.Redact(documents[i], []string{r.Text}); left {
			without, at = append(without, e), append(at, i)
		}
	}
	second, err := say("documents without what was said", without)
	if err != nil {
		return err
	}
	alike := slices.Repeat([]float64{math.NaN()}, len(documents))
	for k, i := range at {
		alike[i] = evaluate.ANLS(second[k].Text, []string{first[i].Text})
	}
	for i, d := range of {
		l.DeltaMemory[i] = alike[d]
	}
	return nil
}

// distinct are the documents of examples, and whose each is: those that share their words'
// memory are one.
func distinct(examples []dataset.Example) (documents []dataset.Example, of []int) {
	known := map[*string]int{}
	for _, e := range examples {
		if len(e.Words) > 0 {
			if at, was := known[&e.Words[0]]; was {
				of = append(of, at)
				continue
			}
			known[&e.Words[0]] = len(documents)
		}
		of = append(of, len(documents))
		documents = append(documents, e)
	}
	return documents, of
}

// Units are the means over each one's examples, for attacks on membership.
func (l *observations) Units(p *People) []membership.Unit {
	at := map[string]int{}
	var out []membership.Unit
	var sums, counts [][membership.Metrics]float64
	remembered := p.remembered()
	for i, who := range p.Owner {
		u, known := at[who]
		if !known {
			u = len(out)
			at[who] = u
			out = append(out, membership.Unit{Name: who, Member: p.Member[i]})
			sums, counts = append(sums, [membership.Metrics]float64{}), append(counts, [membership.Metrics]float64{})
		}
		m, b := l.Model[i], l.Base[i]
		memory := math.NaN()
		if l.Red[i] && remembered[i] {
			memory = l.RedModel[i].Similarity
		}
		out[u].Questions++
		if !math.IsNaN(m.Loss) {
			out[u].Target += membership.Logit(m.Loss)
		}
		for k, x := range [membership.Metrics]float64{m.Right, m.Similarity, m.Loss, m.Confidence, m.Loss - b.Loss, m.Confidence - b.Confidence,
			memory, l.DeltaMemory[i], b.Right, b.Similarity, b.Loss, b.Confidence} {
			if !math.IsNaN(x) {
				sums[u][k] += x
				counts[u][k]++
			}
		}
	}
	for u := range out {
		out[u].Target /= max(counts[u][membership.Loss], 1)
		for k := range out[u].Means {
			out[u].Means[k] = sums[u][k] / counts[u][k] // NaN where there is none
		}
	}
	return out
}

// Outcomes are the answers to questions, for the test of memorization: those whose answer was
// removed, or with removed false all as they are; with constant those alone that ask for what is
// the same in all of a provider's documents.
func (l *observations) Outcomes(p *People, base, removed, constant bool) (out []memorization.Outcome) {
	of := map[[2]bool][]evaluate.Examined{{false, false}: l.Model, {true, false}: l.Base, {false, true}: l.RedModel, {true, true}: l.RedBase}[[2]bool{base, removed}]
	remembered := p.remembered()
	for i, e := range p.Examples {
		if removed && !l.Red[i] || constant && !remembered[i] {
			continue
		}
		out = append(out, memorization.Outcome{Provider: p.Owner[i], Member: p.Member[i], Key: e.Key,
			Right: of[i].Right, Similarity: of[i].Similarity, Confidence: of[i].Confidence})
	}
	return out
}
