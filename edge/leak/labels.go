package leak

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/model"
)

// labelCounts reads from the head's last map how many examples each label has: a label's
// row of weights and its bias move by as much as the model's probability of it and its
// share of the examples differ. What one example more is worth follows from two rounds of
// the attacker's own, over the same start.
func (p *probe) labelCounts() attack {
	a := attack{name: "label counts", of: Labels}
	classes := p.Layout.Classes
	var head []model.Span
	for _, s := range p.Layout.Spans(p.Rank) {
		if s.Kind == model.KindHead && s.Len > 0 && s.Shape[0] == classes {
			head = append(head, s)
		}
	}
	switch {
	case classes == 0:
		a.why = "the task has no labels"
		return a
	case len(head) == 0:
		a.why = "no head is trained"
		return a
	}
	head = head[max(0, len(head)-2):] // of several maps as wide the last: its weights and bias
	// row is what a label's outputs are made by, in one vector.
	row := func(values []float32, class int) (all []float64) {
		for _, s := range head {
			width := s.Len / classes
			for _, x := range values[s.Offset+class*width : s.Offset+(class+1)*width] {
				all = append(all, float64(x))
			}
		}
		return all
	}
	var before [][]float64 // the attacker's own first round: rows by label,
	var had []int          // what was in it
	var one []float64      // and what one more of a label adds to its row
	a.prepared = func(ctx context.Context) (why string, err error) {
		var rows [2][][]float64
		examples, counts, err := p.unlike()
		if errors.Is(err, errAlike) {
			return errAlike.Error(), nil
		}
		if err != nil {
			return "", err
		}
		for i := range 2 {
			delta, err := p.trains(ctx, examples[i], p.derive("attacker's round", i))
			if err != nil {
				return "", err
			}
			for class := range classes {
				rows[i] = append(rows[i], row(delta, class))
			}
		}
		before, had = rows[0], counts[0]
		one = make([]float64, len(before[0]))
		weight := 0.0
		for class := range classes {
			more := float64(counts[1][class] - counts[0][class])
			weight += more * more
			for i := range one {
				one[i] += more * (rows[1][class][i] - rows[0][class][i])
			}
		}
		for i := range one {
			one[i] /= weight
		}
		return "", nil
	}
	a.labels = func(u *update) []int {
		guess := make([]float64, classes)
		length := dot(one, one)
		for class := range classes {
			now := row(u.values, class)
			for i := range now {
				now[i] -= before[class][i]
			}
			if guess[class] = float64(had[class]); length > 0 {
				guess[class] += dot(now, one) / length
			}
		}
		return whole(guess, total(u.in.labels))
	}
	return a
}

// errAlike is why there is nothing to learn labels from.
var errAlike = errors.New("made-up examples have the same labels every time")

// mostDraws is how often an attacker draws examples to learn from.
const mostDraws = 20

// unlike are two rounds' examples whose labels differ as much as any that were drawn.
func (p *probe) unlike() (examples [2][]dataset.Example, counts [2][]int, err error) {
	least := -1
	for draw := range mostDraws {
		drawn, err := p.madeUp("attacker's", draw)
		if err != nil {
			return examples, counts, err
		}
		f, err := p.facts(drawn)
		if err != nil {
			return examples, counts, err
		}
		if draw == 0 {
			examples[0], counts[0] = drawn, f.labels
		} else if same := overlap(f.labels, counts[0]); least < 0 || same < least {
			least, examples[1], counts[1] = same, drawn, f.labels
		}
	}
	if least == total(counts[0]) {
		return examples, counts, errAlike
	}
	return examples, counts, nil
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// whole are counts nearest to a guess, which add up to n: the guess less what all of it is
// too large by, none below 0, and what is left over to the largest remainders.
func whole(guess []float64, n int) []int {
	order := slices.Clone(guess)
	slices.Sort(order)
	slices.Reverse(order)
	// The projection onto the simplex (Held, Wolfe, Crowder 1974).
	sum, level := 0.0, 0.0
	for i, x := range order {
		sum += x
		if l := (sum - float64(n)) / float64(i+1); x-l >= 0 {
			level = l
		}
	}
	counts := make([]int, len(guess))
	rest, left := make([]float64, len(guess)), n
	by := make([]int, len(guess))
	for i, x := range guess {
		x = max(0, x-level)
		counts[i], by[i] = int(math.Floor(x)), i
		rest[i] = x - float64(counts[i])
		left -= counts[i]
	}
	slices.SortStableFunc(by, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for _, i := range by[:max(0, min(left, len(by)))] {
		counts[i]++
	}
	return counts
}
