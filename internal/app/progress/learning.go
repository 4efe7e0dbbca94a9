package progress

import (
	"fmt"
	"math"
)

// Learning watches whether a job's validation accuracy rises, so that a job that does
// not learn is reported, instead of shown as progress.
type Learning struct {
	majority float64 // accuracy of always saying the commonest label
	texts    int     // that an accuracy is a mean over
	rounds   int     // of the job

	seen      int // measurements so far
	best      float64
	at        int // version of the best
	last      int // version of the last measurement
	saidFloor bool
	saidStall float64 // the best accuracy when a stall was last reported
	below     int     // measurements in a row far below the best
	saidFall  bool
}

// NewLearning watches a job of the given number of rounds. Its accuracies are means over the
// given number of texts; majority is the share of the commonest label, in 0..1.
func NewLearning(majority float64, texts, rounds int) *Learning {
	return &Learning{majority: majority, texts: texts, rounds: rounds}
}

// leastFall is the least fall of accuracy that is reported, as a share of all texts.
const leastFall = 0.15

// leastSeen is the number of measurements before anything is reported.
const leastSeen = 4

// observe records a measurement and returns a message, mostly empty. A slow rise is no
// stall: each new best counts, however small the step. Accuracy is above the commonest
// label at two standard errors. After a stall was reported, the next report needs a rise
// of one standard error first.
func (l *Learning) observe(version int, accuracy float64) string {
	if l == nil || version <= l.last || l.texts == 0 {
		return ""
	}
	l.last = version
	l.seen++
	if l.seen == 1 || accuracy > l.best {
		l.best, l.at = accuracy, version
	}
	if l.seen < leastSeen {
		return ""
	}
	floor := l.majority + 2*math.Sqrt(l.majority*(1-l.majority)/float64(l.texts))
	if l.best <= floor {
		if l.saidFloor {
			return ""
		}
		l.saidFloor = true
		return fmt.Sprintf("not learning: the best of %d measurements is %.1f %%, and always saying the commonest label gives %.1f %%. "+
			"See whether texts and labels fit each other; else lower training.learning_rate", l.seen, 100*l.best, 100*l.majority)
	}
	deviation := math.Sqrt(math.Max(l.best*(1-l.best), 0.01) / float64(l.texts))
	// Ranks differ in accuracy from round to round: only several low ones in a row are a fall.
	if l.below++; l.best-accuracy <= max(leastFall, 4*deviation) {
		l.below = 0
	}
	if l.below >= leastSeen && !l.saidFall {
		l.saidFall = true
		return fmt.Sprintf("accuracy has fallen: %.1f %% after round %d, and far below that in the last %d measurements (now %.1f %%). "+
			"Training may diverge: lower training.learning_rate or server.learning_rate", 100*l.best, l.at, l.below, 100*accuracy)
	}
	if patience := max(leastSeen, l.rounds/4); version-l.at >= patience && l.best > l.saidStall+deviation {
		l.saidStall = l.best
		return fmt.Sprintf("no rise in the last %d rounds (best %.1f %%, after round %d): more rounds cost budget and may bring nothing. "+
			"Try a lower training.learning_rate, more training.steps or a larger cohort", version-l.at, 100*l.best, l.at)
	}
	return ""
}
