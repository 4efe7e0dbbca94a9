package progress

import (
	"fmt"
	"math"
)

// Learning watches whether a job's validation accuracy rises, so that one that does
// not is said and not shown as progress.
type Learning struct {
	majority float64 // accuracy of always saying the commonest label
	texts    int     // that an accuracy is a mean over
	rounds   int     // of the job

	seen      int // measurements so far
	best      float64
	at        int // version of the best
	last      int // version of the last measurement
	saidFloor bool
	saidStall float64 // the best that a stall was last said of
	below     int     // measurements in a row far below the best
	saidFall  bool
}

// NewLearning watches a job of so many rounds, whose accuracies are means over so many texts
// of which the commonest label has a share.
func NewLearning(majority float64, texts, rounds int) *Learning {
	return &Learning{majority: majority, texts: texts, rounds: rounds}
}

// leastFall is how far accuracy must have fallen to be said to.
const leastFall = 0.15

// leastSeen is how many measurements say something.
const leastSeen = 4

// observe takes a measurement in and returns what is to be said of it, mostly
// nothing. Who rises slowly is not said to stand still: each new best counts, however
// small the step. To be above the commonest label takes two standard errors, and to be
// said to stand still again a rise of one.
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
	// Ranks differ in accuracy from round to round: one that is far below says nothing, several in a row do.
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
