package monitor

import (
	"time"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// The states of a Status in addition to those of a round.
const (
	StateWaiting   = "waiting"   // for enough devices to enrol
	StateCommitted = "committed" // a round is over, its checkpoint is released
	StateAbandoned = "abandoned" // a round is over, nothing is released
	StateMeasuring = "measuring" // all rounds are made, every rank is measured
	StateFinished  = "finished"  // the job is over
	StateStopped   = "stopped"   // the coordinator has stopped; the job goes on when it is served again
	StateRunning   = "running"   // a round is under way: all that is public of it
)

// Status is the state of a job. Progress reports, the dashboard, round records and results are made
// of its parts, so that a figure is added in one place and copied nowhere. Its JSON is flat.
type Status struct {
	PublicStatus
	Enrolled  int `json:"enrolled"` // in the population: without those that have left or are in no draw
	Connected int `json:"connected"`
	Turnout
	Traffic        // since the job began, over restarts
	Parts   Parts  `json:"parts"` // of Traffic
	Reason  string `json:"reason,omitempty"`
	// Beginning is what the first round waits for; nil once rounds have begun.
	Beginning *Beginning `json:"beginning,omitempty"`
}

// Beginning is what the first round waits for.
type Beginning struct {
	Enrolled int      `json:"enrolled"`
	With     int      `json:"with"`              // devices that rounds begin with by themselves
	Least    int      `json:"least"`             // that a round needs: with so many an operator may have them begin
	ByWord   bool     `json:"by_word,omitempty"` // an operator may: it is the only job of its server
	Due      int64    `json:"due,omitempty"`     // seconds of Unix, from when on they begin with Least; 0: never
	By       string   `json:"by,omitempty"`      // the operator who has had them begin
	Open     int      `json:"open,omitempty"`    // invitations that somebody has yet to use
	Awaited  []string `json:"awaited,omitempty"` // notes of some of them
}

// PublicStatus is the part of Status that everybody may see: nothing in it counts devices.
type PublicStatus struct {
	Job     string   `json:"job"`
	Labels  []string `json:"labels"`
	Rounds  int      `json:"rounds"` // that the job commits
	Private bool     `json:"private"`
	State   string   `json:"state"`
	RoundID
	Measured
	dp.Guarantees               // after the last committed round
	Elapsed       time.Duration `json:"elapsed_ns"`
}

// after is what may be seen of p by everybody, who saw was before: all of it where a
// round is over or none is made, and in a round that it runs.
func (p PublicStatus) after(was PublicStatus, settled bool) PublicStatus {
	if !settled {
		was.State = StateRunning
		return was
	}
	p.Elapsed = (p.Elapsed + time.Minute - 1).Truncate(time.Minute)
	return p
}

// RoundID identifies a round, and what has been released by then.
type RoundID struct {
	// Round is the round's number, the one on the wire, in the journal, the ledger and
	// the metrics: it counts abandoned rounds, too, and is never reused. 0: none yet.
	Round uint64 `json:"round"`
	// Version is that of the released adapter: how many rounds are committed, 0..Rounds.
	Version  int     `json:"version"`
	Rank     int     `json:"rank"`
	ClipNorm float64 `json:"clip_norm"` // of the round; once it is over, of the next
}

// Turnout is what became of a round's cohort.
type Turnout struct {
	Cohort   int `json:"cohort"`   // drawn
	Dropped  int `json:"dropped"`  // of the cohort: were in the round, and left it so far
	Absent   int `json:"absent"`   // of the cohort: are not there, and never were in this round
	Answered int `json:"answered"` // messages of the present state
	Departures
}

// Departures counts, of the Dropped devices, those that did not just fall silent, lose their
// connection or have their shard fail. They are counted when the round is over.
type Departures struct {
	Declined int `json:"declined,omitempty"` // a limit of their owners' kept them out
	Stopped  int `json:"stopped,omitempty"`  // said that they cannot go on, or will not
	Refused  int `json:"refused,omitempty"`  // sent something that was refused
}

// Measured is the accuracy and loss of the adapter of ValidationVersion on
// public validation data, at the ranks that were measured. Measuring runs beside the rounds and may
// lag.
type Measured struct {
	Validation        []metric.RankAccuracy `json:"validation,omitempty"`
	ValidationVersion int                   `json:"validation_version,omitempty"`
}

// Result is what a job has achieved.
type Result struct {
	Rounds int `json:"rounds"` // committed
	// What is counted is counted since the job began, over restarts; in a job of 2000 rounds and more
	// since this process began.
	Abandoned  int                   `json:"abandoned"` // rounds that released nothing
	Dropped    int                   `json:"dropped"`   // devices that left a round that they were in, over all rounds
	Absent     int                   `json:"absent"`    // devices that were drawn and not there, over all rounds
	Adapter    *model.Adapter        `json:"-"`
	Checkpoint string                `json:"checkpoint"` // folder of the released checkpoint
	Validation []metric.RankAccuracy `json:"validation,omitempty"`
	BestRank   int                   `json:"best_rank"` // the rank of the best validation accuracy; 0 where none was measured

	dp.Guarantees
	Private  bool    `json:"private"`
	ClipNorm float64 `json:"clip_norm"` // after the last round

	// Traffic in all, and divided by device and round for the devices that answered
	// the round's first turn.
	Traffic
	BytesUpPerDeviceRound   float64 `json:"bytes_up_per_device_round"`
	BytesDownPerDeviceRound float64 `json:"bytes_down_per_device_round"`
	// BytesOnceUp and BytesOnceDown are for what a device fetches once and not in
	// every round: the base, programs, the job, the page. They are part of Traffic,
	// and no part of what is divided by device and round.
	BytesOnceUp   int64 `json:"bytes_once_up"`
	BytesOnceDown int64 `json:"bytes_once_down"`
	Parts         Parts `json:"parts"` // of Traffic
	// LedgerHead is the hash of the ledger's last entry, hexadecimal.
	LedgerHead string `json:"ledger_head"`
}

// moved fills in what crossed the sockets in what is counted, and since the job began; devices is
// how many answered the first turn of a round, over all rounds that are counted.
func (r *Result) moved(run, job Parts, devices int) {
	once := run.Once()
	r.Traffic, r.Parts, r.BytesOnceUp, r.BytesOnceDown = run.traffic(), job, once.Up, once.Down
	if devices > 0 {
		r.BytesUpPerDeviceRound = float64(r.BytesUp-r.BytesOnceUp) / float64(devices)
		r.BytesDownPerDeviceRound = float64(r.BytesDown-r.BytesOnceDown) / float64(devices)
	}
}

// Unreleased is the number of rounds that are over and released nothing. Rounds' numbers count them.
func (s PublicStatus) Unreleased() int {
	n := int(s.Round) - s.Version
	switch s.State {
	case StateWaiting, StateCommitted, StateAbandoned, StateMeasuring, StateFinished, StateStopped:
	default:
		n-- // the one that runs
	}
	return max(0, n)
}
