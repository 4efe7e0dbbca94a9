package memorization

import (
	"math/rand/v2"
	"slices"
)

// Sure is the confidence from which an answer counts as one the model is sure of (section 5.1).
const Sure = 0.9

// Outcome is a model's answer to one question.
type Outcome struct {
	Provider   string
	Member     bool
	Key        string // what was asked for; "" if the file does not say
	Right      float64
	Similarity float64
	Confidence float64
}

// Line is a group's figures.
type Line struct {
	Questions int     `json:"questions"`
	Providers int     `json:"providers"`
	ACC       float64 `json:"acc"`
	ANLS      float64 `json:"anls"`
	Sure      int     `json:"sure_questions"` // answered with a confidence of .9 or more
	SureACC   float64 `json:"sure_acc"`
	SureANLS  float64 `json:"sure_anls"`
}

// Difference is members minus others, with its range for 95 % of similar sets of providers.
type Difference struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Comparison compares members with others.
type Comparison struct {
	Members Line       `json:"members"`
	Others  Line       `json:"others"`
	ACC     Difference `json:"acc_difference"`
	ANLS    Difference `json:"anls_difference"`
}

// Remembers reports whether members' answers are better than others' beyond chance.
func (c Comparison) Remembers() bool { return c.ANLS.Low > 0 || c.ACC.Low > 0 }

// Compare sums outcomes up. Its intervals resample whole providers, since the questions of one
// provider are not independent.
func Compare(outcomes []Outcome, seed uint64) (c Comparison) {
	c.Members, c.Others = line(outcomes, true), line(outcomes, false)
	groups := [2][]tally{tallies(outcomes, false), tallies(outcomes, true)}
	c.ACC.Mean, c.ANLS.Mean = c.Members.ACC-c.Others.ACC, c.Members.ANLS-c.Others.ANLS
	if len(groups[0]) == 0 || len(groups[1]) == 0 {
		return c
	}
	const resamples = 2000
	rng := rand.New(rand.NewPCG(seed, 0x6d65))
	var acc, anls []float64
	for range resamples {
		var mean [2][2]float64
		for k, g := range groups {
			var sum tally
			for range g {
				sum.add(g[rng.IntN(len(g))])
			}
			mean[k] = [2]float64{sum.right / sum.n, sum.similar / sum.n}
		}
		acc, anls = append(acc, mean[1][0]-mean[0][0]), append(anls, mean[1][1]-mean[0][1])
	}
	middle := func(x []float64, d *Difference) {
		slices.Sort(x)
		d.Low, d.High = x[len(x)*25/1000], x[len(x)*975/1000]
	}
	middle(acc, &c.ACC)
	middle(anls, &c.ANLS)
	return c
}

// tally is one provider's sums.
type tally struct{ n, right, similar float64 }

func (t *tally) add(o tally) { t.n, t.right, t.similar = t.n+o.n, t.right+o.right, t.similar+o.similar }

func tallies(outcomes []Outcome, member bool) []tally {
	at := map[string]int{}
	var out []tally
	for _, o := range outcomes {
		if o.Member != member {
			continue
		}
		i, known := at[o.Provider]
		if !known {
			i = len(out)
			at[o.Provider], out = i, append(out, tally{})
		}
		out[i].add(tally{1, o.Right, o.Similarity})
	}
	return out
}

func line(outcomes []Outcome, member bool) (l Line) {
	l.Providers = len(tallies(outcomes, member))
	for _, o := range outcomes {
		if o.Member != member {
			continue
		}
		l.Questions++
		l.ACC += o.Right
		l.ANLS += o.Similarity
		if o.Confidence >= Sure {
			l.Sure++
			l.SureACC += o.Right
			l.SureANLS += o.Similarity
		}
	}
	n, sure := float64(max(l.Questions, 1)), float64(max(l.Sure, 1))
	l.ACC, l.ANLS, l.SureACC, l.SureANLS = l.ACC/n, l.ANLS/n, l.SureACC/sure, l.SureANLS/sure
	return l
}
