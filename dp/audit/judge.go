package audit

import "github.com/starling-fl/starling/dp/accounting"

// The ways in which a pass is scored.
const (
	ScoreReleases = "releases"   // inner products with every released sum
	ScoreClip     = "clip norms" // what the clip norms say of the clipping counts
	ScoreFates    = "fates"      // released or charged, and in how many shards
)

// way is a score of each canary; it may be of the first few alone.
type way struct {
	name   string
	scores []float64
}

// judge guesses in every way, at a share of the level each, and keeps the best.
func (r *run) judge(out *Result, level float64) error {
	ledger, err := r.core.Budget().Guarantee(accounting.Epsilon, r.events)
	if err != nil {
		return err
	}
	if ledger.Epsilon > out.Ledger.Epsilon {
		out.Ledger = ledger
	}
	rate := r.cfg.Job.Cohort.SamplingRate
	var ways []way
	if r.pass == PassUpdates {
		ways = append(ways, way{ScoreReleases, r.signal})
		if r.cfg.Job.Clipping.Adaptive {
			ways = append(ways, way{ScoreClip, decode(r.talkers, rate, r.counts)})
		}
	} else {
		ways = append(ways, way{ScoreFates, decode(len(r.in), rate, r.ends)})
	}
	tries := 0
	for _, w := range ways {
		tries += usable(len(w.scores))
	}
	level /= float64(max(1, tries))
	p := PassResult{Pass: r.pass, Canaries: len(r.in), Rounds: len(r.events), Of: r.cfg.Job.Rounds, Released: r.released}
	best := -1.0
	for _, w := range ways {
		// Canaries that this way does not look at are no part of its experiment: their
		// coins are fixed, and the guarantee holds whatever they are.
		in := r.in[:len(w.scores)]
		gs, err := guesses(w.name, w.scores, in, ledger.Delta, level)
		if err != nil {
			return err
		}
		for _, g := range gs {
			if g.Epsilon > best {
				best, p.Scores, p.In = g.Epsilon, w.scores, in
			}
			if g.Epsilon > out.Epsilon {
				out.Epsilon, out.Best = g.Epsilon, g
			}
			if n := g.In + g.Out; n >= leastGuesses {
				most, err := LowerBound(len(in), n, n, ledger.Delta, level)
				if err != nil {
					return err
				}
				out.Most = max(out.Most, most)
			}
		}
		p.Guesses = append(p.Guesses, gs...)
	}
	out.Canaries = max(out.Canaries, len(r.in))
	out.Passes = append(out.Passes, p)
	out.Flawed = out.Flawed || best > ledger.Epsilon
	return nil
}
