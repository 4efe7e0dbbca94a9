package task

import (
	"math"

	"github.com/starling-fl/starling/dataset"
)

// A Labeller is a Task whose examples, or the words or masked tokens of which, have
// labels, numbered 0..classes-1.
type Labeller interface {
	Task
	// Places are those that have labels in a row that Encode wrote, of the places that a
	// model scores: of an example as a whole the only one.
	Places(b Batch, row int) []int
	// Truths are the right labels at each of the places.
	Truths(e *dataset.Example, b Batch, row int) [][]int
	// Choice says how labels follow from a place's scores.
	Choice() Choice
	// Open is an example whose labels nobody knows, as Encode takes it.
	Open(e dataset.Example) dataset.Example
	// Figures adds to a score what is the task's own; names are the labels'.
	Figures(s *Score, said, right [][]int, names []string)
}

// A Choice is how labels follow from their scores at one place.
type Choice interface {
	// Predicted are the labels that the scores speak for.
	Predicted(scores []float32) []int
	// Loss is how little they speak for the right ones, in nats: 0 or more, and NaN where a
	// score is.
	Loss(scores []float32, right []int) float64
	// Probabilities are of each label, not calibrated; of finite scores.
	Probabilities(scores []float32) []float64
	// Several says whether any number of labels may be right, and said.
	Several() bool
}

// ScoresAt are those of one place, of all scores of a row: a Transcriber's only place has them all.
func ScoresAt(l Labeller, row []float32, place, classes int) []float32 {
	if _, all := l.(Transcriber); all {
		return row
	}
	return row[place*classes : (place+1)*classes]
}

// OneOf is the choice of exactly one label: the softmax of their scores.
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

// Best is the index of the largest score (the lowest on a tie).
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
// negative logarithm of its softmax. It is 0 or more, and NaN where a score is.
func CrossEntropy(scores []float32, class int) float64 {
	most := float64(scores[Best(scores)])
	sum := 0.0
	for _, x := range scores {
		sum += math.Exp(float64(x) - most)
	}
	return math.Log(sum) + (most - float64(scores[class]))
}

// Probability is a class's softmax: e^-CrossEntropy.
func Probability(scores []float32, class int) float64 { return math.Exp(-CrossEntropy(scores, class)) }

// whole labels an example as a whole, by the one label that it has.
type whole struct{}

func (whole) Places(Batch, int) []int                           { return []int{0} }
func (whole) Truths(e *dataset.Example, _ Batch, _ int) [][]int { return [][]int{{e.Label}} }
func (whole) Choice() Choice                                    { return OneOf }
func (whole) Open(e dataset.Example) dataset.Example            { return e }
func (whole) Figures(_ *Score, _, _ [][]int, _ []string)        {}
