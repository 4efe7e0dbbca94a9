package coordinator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/coordinator/store"
)

// Overview is what changes all the time on the operator's dashboard: where the
// job stands, and the cohort of the running round.
type Overview struct {
	Status Status `json:"progress"`
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
	StandingAbsent   = '.' // drawn, not there
	StandingJoined   = 'j' // present, its keys not yet here
	StandingTraining = 't' // its keys are here: it trains
	StandingMasked   = 'm' // its masked update is here
	StandingRevealed = 'r' // it has revealed its shares
	StandingAway     = 'a' // its connection broke, it may come back
	StandingDropped  = 'x' // out of the round
)

// Occurrence is a line of the coordinator's log, for the operator.
type Occurrence struct {
	Time  time.Time `json:"time"`
	Level string    `json:"level"` // "INFO", "WARN" or "ERROR"
	What  string    `json:"what"`
	// Details are the line's attributes as pairs "key=value".
	Details []string `json:"details,omitempty"`
}

const (
	maxRecords     = store.MaxHistory
	maxOccurrences = 200
	maxWatchers    = 16
)

// watch keeps what the dashboard shows. The engine writes, requests read.
type watch struct {
	watchers atomic.Int32

	mu      sync.Mutex
	view    Overview      // by mu
	rounds  []RoundRecord // by mu: that are over, oldest first; the last maxRecords
	made    int           // by mu: changes of rounds
	stamps  []int         // by mu: of each of rounds, what made was with its last change
	began   Traffic       // by mu: when the round began
	parts   Parts         // by mu: of began
	changed chan struct{} // by mu: closed at the next change

	log occurrences
}

func newWatch() *watch { return &watch{changed: make(chan struct{})} }

// News is what a dashboard lacks.
type News struct {
	Overview Overview
	Rounds   []RoundRecord // those that are new or have changed since the last News; a record is known by its Round
	Lines    []Occurrence  // of the log, since the last News
}

// Follower follows the job for one dashboard.
type Follower struct {
	w             *watch
	rounds, lines int // how far it has been told
}

// Follow begins to follow the job; nil where 16 do so already: each costs the engine
// a walk over the cohort. Close ends it.
func (c *Coordinator) Follow() *Follower {
	if c.watch.watchers.Add(1) > maxWatchers {
		c.watch.watchers.Add(-1)
		return nil
	}
	return &Follower{w: c.watch}
}

// Close ends the following; call it once.
func (f *Follower) Close() { f.w.watchers.Add(-1) }

// News is what has changed, and a channel that is closed when there is more.
func (f *Follower) News() (News, <-chan struct{}) {
	w := f.w
	w.mu.Lock()
	defer w.mu.Unlock()
	n := News{Overview: w.view}
	for i, stamp := range w.stamps { // accuracies come later
		if stamp > f.rounds {
			n.Rounds = append(n.Rounds, w.rounds[i])
		}
	}
	f.rounds = w.made
	n.Lines, f.lines = w.log.after(f.lines)
	return n, w.changed
}

// Rounds are those that are over, the last 2000, those of earlier processes
// included.
func (c *Coordinator) Rounds() []RoundRecord {
	c.watch.mu.Lock()
	defer c.watch.mu.Unlock()
	return slices.Clone(c.watch.rounds)
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
	p, left, cohort, browsers := c.status, int64(0), "", ""
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
	answered := r.m.Answered(d.n)
	_, away := r.away.of[d]
	switch {
	case p.dropped && !r.m.Joined(d.n):
		return StandingAbsent
	case p.dropped:
		return StandingDropped
	case answered >= round.Unmasking:
		return StandingRevealed
	case away:
		return StandingAway
	case answered >= round.Collecting:
		return StandingMasked
	case answered >= round.Keying:
		return StandingTraining
	case d.sess != nil:
		return StandingJoined
	}
	return StandingAbsent
}

// record keeps a round that is over.
func (c *Coordinator) record(r *running, released bool, reason string) Traffic {
	rec := RoundRecord{
		Ended:   time.Now().Unix(),
		RoundID: c.status.RoundID, Turnout: c.status.Turnout, Guarantees: c.status.Guarantees,
		Released: released, Reason: reason, Seconds: time.Since(r.began).Seconds(),
	}
	rec.ClipNorm = r.vector.Lattice.Clip()
	parts := c.traffic.parts()
	now := parts.traffic()
	w := c.watch
	w.tell(func() {
		rec.Traffic = Traffic{now.BytesUp - w.began.BytesUp, now.BytesDown - w.began.BytesDown}
		rec.Parts, rec.soFar = parts.since(w.parts), c.before.plus(parts)
		w.began, w.parts = now, parts
		if len(w.rounds) >= maxRecords {
			w.rounds = slices.Delete(w.rounds, 0, len(w.rounds)-maxRecords+1)
			w.stamps = slices.Delete(w.stamps, 0, len(w.stamps)-maxRecords+1)
		}
		w.made++
		w.rounds, w.stamps = append(w.rounds, rec), append(w.stamps, w.made)
	})
	c.remember(rec)
	return rec.Traffic
}

// lastEnded is when the last round was over, in Unix time; 0 before the first.
func (w *watch) lastEnded() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rounds) == 0 {
		return 0
	}
	return w.rounds[len(w.rounds)-1].Ended
}

// remember keeps a record over restarts. A round that cannot be remembered is
// committed all the same.
func (c *Coordinator) remember(rec RoundRecord) {
	b, err := json.Marshal(rememberedRound{rec, rec.soFar})
	if err == nil {
		err = c.store.Remember(rec.Round, b)
	}
	if err != nil {
		c.log.Error("the round is not remembered over a restart", "round", rec.Round, "error", err)
	}
}

// rememberedRound is a record as it is in the store.
type rememberedRound struct {
	RoundRecord
	// SoFar is what crossed the sockets since the job began: a process that comes after
	// counts on from there. Zero in those of earlier programs.
	SoFar Parts `json:"so_far"`
}

// recall takes in what earlier processes remembered, and shows the job where they left it.
func (c *Coordinator) recall() error {
	lines, err := c.store.History()
	if err != nil {
		return err
	}
	for _, b := range lines {
		rec, err := parseRecord(b)
		if err != nil {
			c.log.Error("a remembered round cannot be read", "error", err)
			continue
		}
		if c.before = c.before.plus(rec.Parts); rec.soFar != (Parts{}) {
			c.before = rec.soFar
		}
		if rec.Released {
			c.metrics.lastCommit.Set(float64(rec.Ended))
		}
		c.status.RoundID = rec.RoundID
		if rec.Accuracy != nil {
			c.status.Measured = Measured{rec.Accuracy, rec.Version}
		}
		c.watch.made++
		c.watch.rounds, c.watch.stamps = append(c.watch.rounds, rec), append(c.watch.stamps, c.watch.made)
	}
	return nil
}

// parseRecord reads a remembered round. Earlier programs called its number the attempt, and
// round the version that it was to make.
func parseRecord(b []byte) (RoundRecord, error) {
	of := struct {
		rememberedRound
		Attempt uint64 `json:"attempt"`
	}{}
	if err := json.Unmarshal(b, &of); err != nil {
		return RoundRecord{}, fmt.Errorf("coordinator: %w", err)
	}
	if of.Attempt != 0 {
		of.Version, of.Round = int(of.Round), of.Attempt
		if !of.Released {
			of.Version--
		}
	}
	of.soFar = of.SoFar
	return of.RoundRecord, nil
}

// measured notes a version's accuracy beside its round.
func (c *Coordinator) measured(version int, accuracy []RankAccuracy) {
	w := c.watch
	var changed []RoundRecord
	w.tell(func() {
		for i := range w.rounds {
			if w.rounds[i].Released && w.rounds[i].Version == version {
				w.made++
				w.rounds[i].Accuracy, w.stamps[i] = accuracy, w.made
				changed = append(changed, w.rounds[i])
			}
		}
	})
	for _, rec := range changed {
		c.remember(rec)
	}
}
