package task

import (
	"fmt"
	"slices"
)

// Score says how well predicted labels fit the right ones.
type Score struct {
	// Accuracy is the share of places with exactly the right labels.
	Accuracy float64 `json:"accuracy"`
	// MacroF1 is the mean over the classes present of the harmonic mean of
	// precision and recall: it does not let a common class hide a rare one.
	MacroF1 float64 `json:"macro_f1"`
	// TokenF1 counts words whose label is not O; only if words have labels.
	TokenF1 *float64 `json:"token_f1,omitempty"`
	// MicroF1 is the F1 of all classes' counts together; only if texts have any number of labels.
	MicroF1 *float64 `json:"micro_f1,omitempty"`
	// Perplexity is e^Loss; only if masked tokens are predicted.
	Perplexity *float64 `json:"perplexity,omitempty"`
	// WordErrors and CharacterErrors are the error rates (S + D + I) / N of words and of
	// characters, 0 being best; only of transcripts, whose Accuracy is 1 - WordErrors.
	WordErrors      *float64 `json:"word_error_rate,omitempty"`
	CharacterErrors *float64 `json:"character_error_rate,omitempty"`
	// Loss is the mean loss over all places, in nats. Reports leave it out, since JSON cannot hold
	// the loss of a diverged model.
	Loss float64 `json:"-"`

	Notes []string `json:"-"` // the task's own figures in words, a line each
}

// ScoreOf compares predicted labels with the right ones, place by place. loss is the sum of the
// places' losses; names are the classes', if they have any.
func ScoreOf(l Labeller, said, right [][]int, loss float64, classes int, names []string) Score {
	hits := 0
	_, spells := l.(Transcriber) // whose labels are in an order
	for i, s := range said {
		if slices.Equal(s, right[i]) {
			hits++
		}
	}
	s := Score{Accuracy: float64(hits) / float64(len(right)), Loss: loss / float64(max(len(said), 1))}
	if !spells {
		s.MacroF1 = MacroF1(said, right, classes)
	}
	l.Figures(&s, said, right, names)
	return s
}

// MacroF1 is the mean of F1 over the classes that are right somewhere; 0 if none is.
func MacroF1(said, right [][]int, classes int) float64 {
	f1, present := 0.0, 0
	for _, c := range Count(said, right, classes) {
		if c.Actual > 0 {
			present++
			f1 += c.F1()
		}
	}
	return f1 / float64(max(present, 1))
}

// Counts are of one class: how often it was right, predicted, and both.
type Counts struct{ Actual, Predicted, Hits int }

// Count counts each of the classes over all places.
func Count(said, right [][]int, classes int) []Counts {
	out := make([]Counts, classes)
	for i, s := range said {
		for _, c := range right[i] {
			out[c].Actual++
		}
		for _, c := range s {
			out[c].Predicted++
			if slices.Contains(right[i], c) {
				out[c].Hits++
			}
		}
	}
	return out
}

// Precision is the share of right predictions of the class; 0 without predictions.
func (c Counts) Precision() float64 { return ratio(c.Hits, c.Predicted) }

// Recall is the share of the class's examples that were predicted; 0 without examples.
func (c Counts) Recall() float64 { return ratio(c.Hits, c.Actual) }

// F1 is the harmonic mean of precision and recall; 0 if there is none.
func (c Counts) F1() float64 { return ratio(2*c.Hits, c.Predicted+c.Actual) }

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// MajorityAccuracy is the accuracy of always predicting the most common labels.
func MajorityAccuracy(right [][]int) float64 {
	count, most := map[string]int{}, 0
	for _, labels := range right {
		name := fmt.Sprint(labels)
		count[name]++
		most = max(most, count[name])
	}
	return float64(most) / float64(len(right))
}
