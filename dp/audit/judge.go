package audit

import (
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
)

// The ways in which a pass is scored.
const (
	ScoreReleases = "releases"   // inner products with every released sum
	ScoreClip     = "clip norms" // what the clip norms say of the clipping counts
	ScoreFates    = "fates"      // released or charged, and in how many shards
)

// way is a score of each canary that it looks at, and whether that was in.
type way struct {
	name   string
	scores []float64
	in     []bool
}

// add has a way look at the first canaries of one more run of the job. Canaries that it does not look at are no
// part of its experiment: their coins are fixed, and the guarantee holds whatever they are.
func (w *way) add(scores []float64, in []bool) {
	w.scores = append(w.scores, scores...)
	w.in = append(w.in, in[:len(scores)]...)
}

// judge guesses in every way, at a share of the level each, and keeps the best. Runs of the job are
// independent and have canaries of their own: the guarantee of one holds for each canary of all, so that their
// guesses count together.
func judge(runs []*run, out *Result, level float64) error {
	pass, clips := runs[0].pass, runs[0].cfg.Job.Clipping.Adaptive
	var ledger dp.Guarantee
	p := PassResult{Pass: pass, Runs: len(runs)}
	releases, norms, fates := way{name: ScoreReleases}, way{name: ScoreClip}, way{name: ScoreFates}
	for _, r := range runs {
		spent, err := r.core.Budget().Guarantee(accounting.Epsilon, r.events)
		if err != nil {
			return err
		}
		if spent.Epsilon > ledger.Epsilon || ledger.Rounds == 0 {
			ledger = spent
		}
		rate := r.cfg.Job.Cohort.SamplingRate
		if pass == PassPresence {
			fates.add(decode(len(r.in), rate, r.ends), r.in)
		} else {
			releases.add(r.signal, r.in)
			if clips {
				norms.add(decode(r.talkers, rate, r.counts), r.in)
			}
		}
		p.Canaries += len(r.in)
		p.Rounds += len(r.events)
		p.Of += r.cfg.Job.Rounds
		p.Released += r.released
	}
	if ledger.Epsilon > out.Ledger.Epsilon {
		out.Ledger = ledger
	}
	var ways []way
	for _, w := range []way{releases, norms, fates} {
		if len(w.scores) > 0 {
			ways = append(ways, w)
		}
	}
	tries := 0
	for _, w := range ways {
		tries += usable(len(w.scores))
	}
	level /= float64(max(1, tries))
	best := -1.0
	for _, w := range ways {
		gs, err := guesses(w.name, w.scores, w.in, ledger.Delta, level)
		if err != nil {
			return err
		}
		for _, g := range gs {
			if g.Epsilon > best {
				best, p.Scores, p.In = g.Epsilon, w.scores, w.in
			}
			if g.Epsilon > out.Epsilon {
				out.Epsilon, out.Best = g.Epsilon, g
			}
			if n := g.In + g.Out; n >= leastGuesses {
				most, err := LowerBound(len(w.in), n, n, ledger.Delta, level)
				if err != nil {
					return err
				}
				out.Most = max(out.Most, most)
			}
		}
		p.Guesses = append(p.Guesses, gs...)
	}
	out.Canaries = max(out.Canaries, p.Canaries)
	out.Passes = append(out.Passes, p)
	out.Flawed = out.Flawed || best > ledger.Epsilon
	return nil
}
