package coordinator

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/secagg"
)

// Overview is what changes all the time on the operator's dashboard: where the
// job stands, and the cohort of the running round.
type Overview struct {
	Progress Progress `json:"progress"`
	// StateLeft is the time until the running state closes, in milliseconds; 0
	// where nothing is waited for.
	StateLeft int64 `json:"state_left_ms"`
	// Cohort has a character for each drawn device, in no order that means
	// anything: its standing, see the Standing constants.
	Cohort string `json:"cohort"`
	// Browsers marks the cohort's devices that are browsers with a 'b'.
	Browsers string `json:"browsers"`
}

// Standings of a drawn device in the running round.
const (
	StandingAbsent   = '.' // drawn, not connected yet
	StandingJoined   = 'j' // present, its keys not yet here
	StandingTraining = 't' // its keys are here: it trains
	StandingMasked   = 'm' // its masked update is here
	StandingRevealed = 'r' // it has revealed its shares
	StandingAway     = 'a' // its connection broke, it may come back
	StandingDropped  = 'x' // out of the round
)

// RoundRecord is a round that is over.
type RoundRecord struct {
	Round     int            `json:"round"` // committed rounds, this one included; that it tried for, if abandoned
	Attempt   uint64         `json:"attempt"`
	Rank      int            `json:"rank"`
	Cohort    int            `json:"cohort"`
	Dropped   int            `json:"dropped"`
	Released  bool           `json:"released"`
	Reason    string         `json:"reason,omitempty"` // why nothing was released
	Seconds   float64        `json:"seconds"`
	ClipNorm  float64        `json:"clip_norm"`
	Accuracy  []RankAccuracy `json:"accuracy,omitempty"` // of its adapter, once measured
	Delivered *dp.Guarantee  `json:"delivered,omitempty"`
	Simulated *dp.Guarantee  `json:"simulated,omitempty"`
	BytesUp   int64          `json:"bytes_up"`   // in this round, all devices
	BytesDown int64          `json:"bytes_down"` // in this round, all devices
}

// Occurrence is a line of the coordinator's log, for the operator.
type Occurrence struct {
	Time  time.Time `json:"time"`
	Level string    `json:"level"` // "INFO", "WARN" or "ERROR"
	What  string    `json:"what"`
	// Details are the line's attributes as pairs "key=value".
	Details []string `json:"details,omitempty"`
}

const (
	maxRecords     = 2000
	maxOccurrences = 200
	maxWatchers    = 16
)

// watch keeps what the dashboard shows. The engine writes, requests read.
type watch struct {
	watchers atomic.Int32

	mu      sync.Mutex
	view    Overview      // by mu
	rounds  []RoundRecord // by mu: over since this process began, oldest first; the last maxRecords
	made    int           // by mu: changes of rounds
	began   [2]int64      // by mu: bytes up and down when the round began
	changed chan struct{} // by mu: closed at the next change

	log occurrences
}

func newWatch() *watch { return &watch{changed: make(chan struct{})} }

// seen is how far a dashboard has been told.
type seen struct{ rounds, lines int }

// news are the server-sent events that a dashboard lacks, and a channel that is
// closed when there is more.
func (w *watch) news(s *seen) ([]byte, <-chan struct{}, error) {
	w.mu.Lock()
	view, changed, made := w.view, w.changed, w.made
	var rounds []RoundRecord
	if made != s.rounds {
		rounds = slices.Clone(w.rounds) // accuracies come later
	}
	w.mu.Unlock()
	parts := []struct {
		name string
		data any
		send bool
	}{{"overview", view, true}, {"rounds", rounds, made != s.rounds}}
	lines, written := w.log.after(s.lines)
	parts = append(parts, struct {
		name string
		data any
		send bool
	}{"events", lines, len(lines) > 0})
	s.rounds, s.lines = made, written
	var out []byte
	for _, p := range parts {
		if !p.send {
			continue
		}
		b, err := json.Marshal(p.data)
		if err != nil {
			return nil, nil, err
		}
		out = fmt.Appendf(out, "event: %s\ndata: %s\n\n", p.name, b)
	}
	return out, changed, nil
}

// tell takes a change in; owned by the engine.
func (w *watch) tell(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	close(w.changed)
	w.changed = make(chan struct{})
}

// watched shows the progress to those who watch; the cohort only where there
// is somebody, since that walks it.
func (c *Coordinator) watched() {
	p, left, cohort, browsers := c.progress, int64(0), "", ""
	if r := c.running; r != nil && c.watch.watchers.Load() > 0 {
		cohort, browsers = c.cohortMap(r)
		if next := r.due.next; !next.IsZero() {
			left = max(0, time.Until(next).Milliseconds())
		}
	}
	c.watch.tell(func() { c.watch.view = Overview{p, left, cohort, browsers} })
}

// cohortMap says where each drawn device stands, by device number.
func (c *Coordinator) cohortMap(r *running) (standing, browsers string) {
	numbers := make([]round.Device, 0, len(r.parts))
	for n := range r.parts {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	var s, b strings.Builder
	for _, n := range numbers {
		d := c.order[n]
		s.WriteByte(standingOf(r, d, r.parts[n]))
		if d.browser {
			b.WriteByte('b')
		} else {
			b.WriteByte('n')
		}
	}
	return s.String(), b.String()
}

func standingOf(r *running, d *device, p *participant) byte {
	held := func(turn secagg.Turn) bool { return p.heldTurns&(1<<(turn-1)) != 0 }
	_, away := r.away[d]
	switch {
	case p.bad, p.dropped:
		return StandingDropped
	case held(secagg.TurnReveal):
		return StandingRevealed
	case away:
		return StandingAway
	case held(secagg.TurnMask):
		return StandingMasked
	case held(secagg.TurnAdvertise):
		return StandingTraining
	case d.sess != nil:
		return StandingJoined
	}
	return StandingAbsent
}

// record keeps a round that is over.
func (c *Coordinator) record(r *running, released bool, reason string, dropped int) {
	rec := RoundRecord{
		Round: c.progress.Round, Attempt: r.id, Rank: r.rank, Cohort: len(r.parts), Dropped: dropped,
		Released: released, Reason: reason, Seconds: time.Since(r.began).Seconds(), ClipNorm: math.Float64frombits(c.metrics.clipNorm.Load()),
		Delivered: c.progress.Delivered, Simulated: c.progress.Simulated,
	}
	up, down := c.metrics.bytesUp.Load(), c.metrics.bytesDown.Load()
	w := c.watch
	w.tell(func() {
		rec.BytesUp, rec.BytesDown = up-w.began[0], down-w.began[1]
		w.began = [2]int64{up, down}
		if len(w.rounds) >= maxRecords {
			w.rounds = slices.Delete(w.rounds, 0, len(w.rounds)-maxRecords+1)
		}
		w.rounds = append(w.rounds, rec)
		w.made++
	})
}

// measured notes a version's accuracy beside its round.
func (w *watch) measured(version int, accuracy []RankAccuracy) {
	w.tell(func() {
		for i := range w.rounds {
			if w.rounds[i].Released && w.rounds[i].Round == version {
				w.rounds[i].Accuracy = accuracy
				w.made++
			}
		}
	})
}
