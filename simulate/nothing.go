package simulate

import (
	"fmt"
	"sync"

	"github.com/starling-fl/starling/edge"
)

// nothing keeps the first reason for which a client's training came to nothing.
type nothing struct {
	mu  sync.Mutex
	why error // by mu
}

func (n *nothing) note(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.why == nil {
		n.why = err
	}
}

// mostNothing is the number of rounds after which a run ends whose clients have all sent zeros
// since it began. A coordinator pauses such a job where its noise lets it see that.
const mostNothing = 3

// came ends a run of which nothing can come: an error once all clients of the first rounds have
// sent zeros.
func (r *Run) came() error {
	clients := 0
	for _, round := range r.rounds {
		with := round.Cohort - round.Empty - round.Dropped
		if round.Zeros < with {
			return nil
		}
		clients += with
	}
	if clients == 0 || len(r.rounds) < min(mostNothing, r.job.Rounds) {
		return nil
	}
	r.nothing.mu.Lock()
	defer r.nothing.mu.Unlock()
	why := r.nothing.why
	if why == nil { // other processes trained, or an earlier one
		why = edge.ErrDiverged
	}
	return fmt.Errorf("simulate: training came to nothing on all clients of the first %d rounds, and zeros were sent in its place: %w; "+
		"lower training.learning_rate, or look at the examples", len(r.rounds), why)
}
