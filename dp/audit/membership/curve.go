package membership

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// scored are the units that an attack was tried on, in falling order of their scores.
type scored struct {
	member []bool
	tie    []bool // has the score of the one before it
	right  []bool // the attack's own word on it is right
	unit   []int
}

// ranked sorts by score; said is the attack's word on each.
func ranked(units []int, member []bool, score []float64, said []bool) scored {
	order := make([]int, len(units))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score[b], score[a]) })
	var s scored
	for k, i := range order {
		s.member = append(s.member, member[i])
		s.right = append(s.right, said[i] == member[i])
		s.unit = append(s.unit, units[i])
		s.tie = append(s.tie, k > 0 && score[i] == score[order[k-1]])
	}
	return s
}

// Figures say how well an attack separates members from others.
type Figures struct {
	Accuracy float64 `json:"accuracy"`          // share of right words, the paper's figure
	Balanced float64 `json:"balanced_accuracy"` // mean of the shares among members and among others: .5 by chance
	AUC      float64 `json:"auc"`               // area under the receiver's curve of the scores: .5 by chance
	TPR      float64 `json:"tpr_at_1_fpr"`      // share of members above a score that at most 1 % of the others exceed: .01 by chance
}

// falsePositives is the share of others that may be taken for members.
const falsePositives = 0.01

// figures weighs each unit; nil weighs all alike. Curves are those of scikit-learn's roc_curve.
func (s scored) figures(weight []float64) Figures {
	var all, right, score [2]float64 // of others, of members
	w := func(k int) float64 {
		if weight == nil {
			return 1
		}
		return weight[s.unit[k]]
	}
	for k, member := range s.member {
		c := 0
		if member {
			c = 1
		}
		all[c] += w(k)
		if s.right[k] {
			right[c] += w(k)
		}
	}
	area, best := 0.0, 0.0
	for k := 0; k < len(s.member); {
		var step [2]float64
		for first := true; k < len(s.member) && (first || s.tie[k]); k, first = k+1, false {
			c := 0
			if s.member[k] {
				c = 1
			}
			step[c] += w(k)
		}
		area += step[0] * (score[1] + step[1]/2)
		score[0] += step[0]
		score[1] += step[1]
		if score[0] <= falsePositives*all[0] {
			best = score[1]
		}
	}
	return Figures{
		Accuracy: (right[0] + right[1]) / (all[0] + all[1]),
		Balanced: (right[0]/all[0] + right[1]/all[1]) / 2,
		AUC:      area / (all[0] * all[1]),
		TPR:      best / all[1],
	}
}

// chance is the probability that scores which know nothing of membership order as well as
// these, by the Mann-Whitney statistic with ties, in its normal approximation.
func (s scored) chance() float64 {
	var n [2]float64
	ties := 0.0
	for k := 0; k < len(s.member); {
		run := 0.0
		for first := true; k < len(s.member) && (first || s.tie[k]); k, first = k+1, false {
			run++
			if s.member[k] {
				n[1]++
			} else {
				n[0]++
			}
		}
		ties += run*run*run - run
	}
	total := n[0] + n[1]
	variance := n[0] * n[1] / 12 * (total + 1 - ties/(total*(total-1)))
	if variance <= 0 {
		return 1
	}
	u := s.figures(nil).AUC * n[0] * n[1]
	return 0.5 * math.Erfc((u-n[0]*n[1]/2-0.5)/math.Sqrt(2*variance)) // 1/2 for continuity
}

// Interval holds a figure for a similar set of providers with a confidence of 95 %.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Intervals are the intervals of the figures' means over the seeds.
type Intervals struct {
	Accuracy Interval `json:"accuracy"`
	Balanced Interval `json:"balanced_accuracy"`
	AUC      Interval `json:"auc"`
	TPR      Interval `json:"tpr_at_1_fpr"`
}

// resamples of the providers that intervals are drawn from.
const resamples = 1000

// intervals draws the providers anew, members and others each as many as they are, and takes
// the middle 95 % of the figures' means over the seeds (the percentile bootstrap). It is of
// other providers of the kind, for this model: what another training run would give it does
// not say.
func intervals(of []scored, member []bool, seed uint64) Intervals {
	rng := rand.New(rand.NewPCG(seed, 0x6275))
	var places [2][]int
	for i, m := range member {
		c := 0
		if m {
			c = 1
		}
		places[c] = append(places[c], i)
	}
	var drawn [4][]float64
	weight := make([]float64, len(member))
	for range resamples {
		clear(weight)
		for _, p := range places {
			for range p {
				weight[p[rng.IntN(len(p))]]++
			}
		}
		f := meanFigures(of, weight)
		for k, x := range []float64{f.Accuracy, f.Balanced, f.AUC, f.TPR} {
			if !math.IsNaN(x) { // a resample may hold none of a seed's members
				drawn[k] = append(drawn[k], x)
			}
		}
	}
	middle := func(x []float64) Interval {
		if len(x) == 0 {
			return Interval{}
		}
		slices.Sort(x)
		return Interval{x[len(x)*25/1000], x[min(len(x)-1, len(x)*975/1000)]}
	}
	return Intervals{middle(drawn[0]), middle(drawn[1]), middle(drawn[2]), middle(drawn[3])}
}

// meanFigures is the mean over the seeds.
func meanFigures(of []scored, weight []float64) (mean Figures) {
	n := float64(len(of))
	for _, s := range of {
		f := s.figures(weight)
		mean.Accuracy += f.Accuracy / n
		mean.Balanced += f.Balanced / n
		mean.AUC += f.AUC / n
		mean.TPR += f.TPR / n
	}
	return mean
}
