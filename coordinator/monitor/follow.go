package monitor

// Overview is the frequently updated part of the operator's dashboard: the job's state and the
// running round's cohort.
type Overview struct {
	Status Status `json:"progress"`
	// StateLeft is the time until the running state closes, in milliseconds; 0
	// if nothing is waited for.
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

const maxWatchers = 16

// News is what a dashboard does not have yet.
type News struct {
	Overview Overview
	Rounds   []RoundRecord // those that are new or have changed since the last News; a record is known by its Round
	Lines    []Occurrence  // of the log, since the last News
}

// Follower follows the job for one dashboard.
type Follower struct {
	m             *Monitor
	rounds, lines int // how far it has been told
}

// Follow starts following the job; nil if 16 do so already, since each costs the coordinator a walk
// over the cohort. Close ends it.
func (m *Monitor) Follow() *Follower {
	if m.watchers.Add(1) > maxWatchers {
		m.watchers.Add(-1)
		return nil
	}
	return &Follower{m: m}
}

// Watched reports whether anybody follows: if not, an Overview needs no cohort.
func (m *Monitor) Watched() bool { return m.watchers.Load() > 0 }

// Close stops following. Call it once.
func (f *Follower) Close() { f.m.watchers.Add(-1) }

// News returns the changes, and a channel that is closed when there are more.
func (f *Follower) News() (News, <-chan struct{}) {
	m := f.m
	m.mu.Lock()
	defer m.mu.Unlock()
	n := News{Overview: m.view}
	for i, stamp := range m.stamps { // accuracies come later
		if stamp > f.rounds {
			n.Rounds = append(n.Rounds, m.rounds[i])
		}
	}
	f.rounds = m.made
	n.Lines, f.lines = m.lines.after(f.lines)
	return n, m.changed
}
