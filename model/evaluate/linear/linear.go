// Package linear says what a linear model over words comes to on a text classification, as a figure to hold a trained
// adapter to: TF-IDF of words and of pairs of words, and a logistic regression for each label (Joachims 1998; the settings
// are scikit-learn's, but for C). It is given its training texts in the clear: who calls it says whose they are.
//
//	score, err := linear.Against(ctx, train, test) // two dataset.Sets over the same labels
//	if errors.Is(err, linear.ErrNone) {
//		// other examples than texts with one label each
//	}
package linear

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"gonum.org/v1/gonum/optimize"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/data/task"
)

// Bounds of the training, which takes some seconds of a core at them.
const (
	mostTexts    = 20_000  // evenly spaced ones are taken of more
	mostWords    = 1000    // of a text: those at its beginning
	mostFeatures = 1 << 15 // the commonest words and pairs
	mostWork     = 1 << 28 // features of all texts times labels
	iterations   = 40      // of each label's regression
	strength     = 10.0    // C: losses against half the squared norm of the weights
)

// ErrNone reports examples that a linear model over words is no reference for.
var ErrNone = errors.New("linear: no linear reference for this task: texts with one label each have one")

// Score is what the linear model comes to.
type Score struct {
	Accuracy float64 `json:"accuracy"`
	MacroF1  float64 `json:"macro_f1"`
	Texts    int     `json:"texts"` // it was trained on
}

// Against trains on one set and scores on another, which has the same labels. The same sets give the same score. The error
// wraps ErrNone if they hold other examples than texts with one label of at least two.
func Against(ctx context.Context, train, test *dataset.Set) (*Score, error) {
	for _, set := range []*dataset.Set{train, test} {
		if set == nil || len(set.Examples) == 0 || len(set.Labels) < 2 || set.Form() != dataset.FormTexts {
			return nil, ErrNone
		}
	}
	if !slices.Equal(train.Labels, test.Labels) {
		return nil, fmt.Errorf("linear: the labels of %q are not those of %q", train.Name, test.Name)
	}
	m, err := fit(ctx, train)
	if err != nil {
		return nil, err
	}
	said, right, hits := make([][]int, len(test.Examples)), make([][]int, len(test.Examples)), 0
	for i, e := range test.Examples {
		best := m.label(e.Text)
		if said[i], right[i] = []int{best}, []int{e.Label}; best == e.Label {
			hits++
		}
	}
	return &Score{Accuracy: float64(hits) / float64(len(test.Examples)), MacroF1: task.MacroF1(said, right, len(test.Labels)), Texts: m.texts}, nil
}

// model is a trained linear model.
type model struct {
	number  map[string]int // of a word or a pair
	idf     []float64
	weights [][]float64 // by label: of each feature, then the bias
	texts   int
}

// feature is one of a text.
type feature struct {
	number int
	value  float64
}

// terms are a text's words in lower case, and pairs of words that follow each other.
func terms(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) })
	words = words[:min(len(words), mostWords)]
	for i := range max(0, len(words)-1) {
		words = append(words, words[i]+" "+words[i+1])
	}
	return words
}

func fit(ctx context.Context, train *dataset.Set) (*model, error) {
	examples := evenly(train.Examples, mostTexts)
	m := &model{number: map[string]int{}}
	in := map[string]int{} // texts that have a term
	features := 0
	for i, e := range examples {
		seen := map[string]bool{}
		for _, t := range terms(e.Text) {
			if !seen[t] {
				seen[t] = true
				in[t]++
			}
		}
		if features += len(seen); features*len(train.Labels) > mostWork {
			examples = examples[:i+1]
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	m.texts = len(examples)
	list := make([]string, 0, len(in))
	for t := range in {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b string) int {
		if in[a] != in[b] {
			return in[b] - in[a]
		}
		return strings.Compare(a, b)
	})
	list = list[:min(len(list), mostFeatures)]
	m.idf = make([]float64, len(list))
	for i, t := range list {
		m.number[t], m.idf[i] = i, 1+math.Log(float64(1+len(examples))/float64(1+in[t]))
	}
	rows := make([][]feature, len(examples))
	for i, e := range examples {
		rows[i] = m.row(e.Text)
	}
	for label := range train.Labels {
		w, err := m.regress(ctx, rows, func(i int) bool { return examples[i].Label == label })
		if err != nil {
			return nil, err
		}
		m.weights = append(m.weights, w)
	}
	return m, nil
}

// evenly are at most so many of a list, evenly spaced.
func evenly(all []dataset.Example, most int) []dataset.Example {
	if len(all) <= most {
		return all
	}
	out := make([]dataset.Example, most)
	for i := range out {
		out[i] = all[i*len(all)/most]
	}
	return out
}

// row is a text's TF-IDF, of length 1.
func (m *model) row(text string) (out []feature) {
	counts := map[int]float64{}
	for _, t := range terms(text) {
		if n, known := m.number[t]; known {
			counts[n]++
		}
	}
	sum := 0.0
	for n, times := range counts {
		out = append(out, feature{n, times * m.idf[n]})
	}
	slices.SortFunc(out, func(a, b feature) int { return a.number - b.number }) // sums are of one order
	for _, f := range out {
		sum += f.value * f.value
	}
	for i := range out {
		out[i].value /= math.Sqrt(sum)
	}
	return out
}

// regress finds the weights that tell the texts of a label from others.
func (m *model) regress(ctx context.Context, rows [][]feature, has func(i int) bool) ([]float64, error) {
	bias := len(m.idf)
	sign := make([]float64, len(rows))
	for i := range sign {
		if sign[i] = -1; has(i) {
			sign[i] = 1
		}
	}
	// The optimizer asks for loss and gradient of a place, one after the other: they are computed together.
	total, place, gradient := 0.0, []float64(nil), make([]float64, bias+1)
	look := func(w []float64) {
		if slices.Equal(w, place) {
			return
		}
		total, place = 0, append(place[:0], w...)
		copy(gradient, w)
		gradient[bias] = 0
		for _, x := range w[:bias] {
			total += x * x / 2
		}
		for i, row := range rows {
			at := margin(w, row) * sign[i]
			total += strength * (math.Max(0, -at) + math.Log1p(math.Exp(-math.Abs(at))))
			d := -strength * sign[i] / (1 + math.Exp(at))
			for _, f := range row {
				gradient[f.number] += d * f.value
			}
			gradient[bias] += d
		}
	}
	problem := optimize.Problem{
		Func:   func(w []float64) float64 { look(w); return total },
		Grad:   func(to, w []float64) { look(w); copy(to, gradient) },
		Status: func() (optimize.Status, error) { return optimize.NotTerminated, ctx.Err() },
	}
	// A line search that ends early has found a place all the same.
	found, err := optimize.Minimize(problem, make([]float64, bias+1), &optimize.Settings{MajorIterations: iterations,
		Converger: &optimize.FunctionConverge{Relative: 1e-3, Iterations: 2}}, &optimize.LBFGS{Store: 5})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if found == nil {
		return nil, fmt.Errorf("linear: %w", err)
	}
	return found.X, nil
}

// margin is how far a row is on a label's side.
func margin(w []float64, row []feature) float64 {
	sum := w[len(w)-1]
	for _, f := range row {
		sum += w[f.number] * f.value
	}
	return sum
}

// label is the likeliest label of a text.
func (m *model) label(text string) int {
	best, at := math.Inf(-1), 0
	row := m.row(text)
	for label, w := range m.weights {
		if x := margin(w, row); x > best {
			best, at = x, label
		}
	}
	return at
}
