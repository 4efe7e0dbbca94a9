package task

import (
	"errors"
	"fmt"
	"math"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/tokenizer"
	"github.com/starling-fl/starling/model"
)

// multiLabel is any number of labels for a text: 1 for each that is right, 0 for each
// that is not.
type multiLabel struct {
	columns  []Column
	tok      tokenizer.Tokenizer
	sequence int
}

var multiLabelKind = kind{columns: multiLabelColumns, takes: []dataset.Form{dataset.FormLists}, make: func(p parts) (Task, error) {
	return &multiLabel{p.columns, p.tok, p.sequence}, nil
}}

func multiLabelColumns(l *model.Layout, sequence int) []Column {
	return []Column{
		{Name: Tokens, Type: I32, Shape: []int{sequence}, Limit: l.Config.VocabSize},
		{Name: Labels, Type: F32, Shape: []int{l.Classes}},
		{Name: Weights, Type: F32},
	}
}

func (m *multiLabel) Columns() []Column { return m.columns }

func (m *multiLabel) Encode(e *dataset.Example, b Batch, row int) error {
	if e.Form() != dataset.FormLists {
		return fmt.Errorf("it holds %s, and the job learns lists of labels: give each text \"labels\", [] for none", e.Form().Description())
	}
	labels := b[1].F32[row*b[1].Size():][:b[1].Size()]
	clear(labels)
	for _, c := range e.Labels {
		if c < 0 || c >= len(labels) {
			return errors.New("it has a label that the job has not")
		}
		labels[c] = 1
	}
	copy(b[0].I32[row*m.sequence:], m.tok.EncodeFixed(e.Text, m.sequence))
	b[2].F32[row] = 1
	return nil
}

func (m *multiLabel) Places(Batch, int) []int                           { return []int{0} }
func (m *multiLabel) Truths(e *dataset.Example, _ Batch, _ int) [][]int { return [][]int{e.Labels} }
func (m *multiLabel) Choice() Choice                                    { return AnyOf }

func (m *multiLabel) Open(e dataset.Example) dataset.Example {
	e.Labels = []int{}
	return e
}

// Figures adds micro-F1, and a note that the accuracy is of texts with exactly the right labels.
func (m *multiLabel) Figures(s *Score, said, right [][]int, names []string) {
	var all Counts
	for _, c := range Count(said, right, len(names)) {
		all.Actual, all.Predicted, all.Hits = all.Actual+c.Actual, all.Predicted+c.Predicted, all.Hits+c.Hits
	}
	f1 := all.F1()
	s.MicroF1 = &f1
	s.Notes = append(s.Notes, fmt.Sprintf("micro-F1 %.1f %%; the accuracy is of texts with exactly the right labels", 100*f1))
}

// AnyOf chooses each label whose own sigmoid is above a half.
var AnyOf Choice = anyOf{}

type anyOf struct{}

func (anyOf) Several() bool { return true }

func (anyOf) Predicted(scores []float32) []int {
	said := []int{}
	for c, x := range scores {
		if x > 0 {
			said = append(said, c)
		}
	}
	return said
}

// Loss is the mean of the labels' binary cross-entropies.
func (anyOf) Loss(scores []float32, right []int) float64 {
	loss := 0.0
	for _, x := range scores {
		loss += math.Max(float64(x), 0) + math.Log1p(math.Exp(-math.Abs(float64(x))))
	}
	for _, c := range right {
		loss -= float64(scores[c])
	}
	return loss / float64(len(scores))
}

func (anyOf) Probabilities(scores []float32) []float64 {
	out := make([]float64, len(scores))
	for i, x := range scores {
		out[i] = 1 / (1 + math.Exp(-float64(x)))
	}
	return out
}
