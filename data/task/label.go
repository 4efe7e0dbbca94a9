package task

import (
	"math"

	"github.com/starling-fl/starling/data/dataset"
)

// A Labeller is a Task in which examples, or their words or masked tokens, have labels
// 0..classes-1.
type Labeller interface {
	Task
	// Places lists, for a row that Encode wrote, which of the places that the model scores have
	// labels; an example that is labelled as a whole has one.
	Places(b Batch, row int) []int
	// Truths returns the right labels at each of the places.
	Truths(e *dataset.Example, b Batch, row int) [][]int
	// Choice decides which labels a place's scores predict.
	Choice() Choice
	// Open returns an example whose labels are unknown in the form that Encode accepts.
	Open(e dataset.Example) dataset.Example
	// Figures adds the task's own figures to a score; names are the labels'.
	Figures(s *Score, said, right [][]int, names []string)
}

// A Choice decides which labels are predicted, given their scores at one place.
type Choice interface {
	// Predicted returns the labels that the scores predict.
	Predicted(scores []float32) []int
	// Loss measures how badly the scores fit the right labels, in nats: 0 or more, and NaN if a
	// score is.
	Loss(scores []float32, right []int) float64
	// Probabilities returns the probability of each label, not calibrated; scores must be finite.
	Probabilities(scores []float32) []float64
	// Several reports whether any number of labels may be right, and predicted.
	Several() bool
}

// ScoresAt returns the scores of one place out of all scores of a row. A Transcriber has a single
// place with all of them.
func ScoresAt(l Labeller, row []float32, place, classes int) []float32 {
	if _, all := l.(Transcriber); all {
		return row
	}
	return row[place*classes : (place+1)*classes]
}

// OneOf chooses exactly one label, by the softmax of the scores.
var OneOf Choice = oneOf{}

type oneOf struct{}

func (oneOf) Predicted(scores []float32) []int           { return []int{Best(scores)} }
func (oneOf) Loss(scores []float32, right []int) float64 { return CrossEntropy(scores, right[0]) }
func (oneOf) Several() bool                              { return false }

func (oneOf) Probabilities(scores []float32) []float64 {
	most, sum := float64(scores[Best(scores)]), 0.0
	out := make([]float64, len(scores))
	for i, x := range scores {
		out[i] = math.Exp(float64(x) - most)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// Best is the index of the largest score, the lowest of equal ones.
func Best(scores []float32) int {
	best := 0
	for c, x := range scores {
		if x > scores[best] {
			best = c
		}
	}
	return best
}

// CrossEntropy is the loss of scores whose right class is given, in nats: the
// negative logarithm of its softmax. It is 0 or more, and NaN if a score is.
func CrossEntropy(scores []float32, class int) float64 {
	most := float64(scores[Best(scores)])
	sum := 0.0
	for _, x := range scores {
		sum += math.Exp(float64(x) - most)
	}
	return math.Log(sum) + (most - float64(scores[class]))
}

// Probability is the softmax of a class: e^-CrossEntropy.
func Probability(scores []float32, class int) float64 { return math.Exp(-CrossEntropy(scores, class)) }

// whole labels an example as a whole, by the one label that it has.
type whole struct{}

func (whole) Places(Batch, int) []int                           { return []int{0} }
func (whole) Truths(e *dataset.Example, _ Batch, _ int) [][]int { return [][]int{{e.Label}} }
func (whole) Choice() Choice                                    { return OneOf }
func (whole) Open(e dataset.Example) dataset.Example            { return e }
func (whole) Figures(_ *Score, _, _ [][]int, _ []string)        {}
