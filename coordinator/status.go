package coordinator

import (
	"time"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/model"
)

// The states of a Status beside those of a round.
const (
	StateWaiting   = "waiting"   // for enough devices to enrol
	StateCommitted = "committed" // a round is over, its checkpoint is released
	StateAbandoned = "abandoned" // a round is over, nothing is released
	StateMeasuring = "measuring" // all rounds are made, every rank is measured
	StateFinished  = "finished"  // the job is over
	StateRunning   = "running"   // a round is under way: all that is public of it
)

// Status is where a job stands. It is the one type of it: progress reports, the
// dashboard, round records and results are made of its parts, so that a figure is
// added in one place and copied in none. JSON is flat.
type Status struct {
	PublicStatus
	Enrolled  int `json:"enrolled"`
	Connected int `json:"connected"`
	Turnout
	Traffic        // since the job began, over restarts
	Parts   Parts  `json:"parts"` // of Traffic
	Reason  string `json:"reason,omitempty"`
}

// PublicStatus is the part that everybody may see: nothing of it counts devices.
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

// RoundID says which round is being made, or was, and what has been made.
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
}

// Traffic is what crossed the sockets, in bytes, up being towards the coordinator.
type Traffic struct {
	BytesUp   int64 `json:"bytes_up"`
	BytesDown int64 `json:"bytes_down"`
}

// Bytes went up, towards the coordinator, and down.
type Bytes struct {
	Up   int64 `json:"up"`
	Down int64 `json:"down"`
}

// Parts is what Traffic was for. What a device fetches is counted with the HTTP and
// TLS around it, messages are by themselves; Rest is what is neither.
type Parts struct {
	Page     Bytes `json:"page"`     // once: what the job is, and a browser's pages and client
	Base     Bytes `json:"base"`     // once a device: the base's weights
	Programs Bytes `json:"programs"` // once a device and rank: training programs
	Model    Bytes `json:"model"`    // once a browser, at the end
	Slices   Bytes `json:"slices"`   // every round: the adapter's slice, or a difference to one
	Turns    Bytes `json:"turns"`    // every round: assignments, secure aggregation's turns
	Updates  Bytes `json:"updates"`  // every round: masked updates
	Rest     Bytes `json:"rest"`     // handshakes, pings, status, what frames are wrapped in
}

// partNames are each's names, as in JSON.
var partNames = []string{"page", "base", "programs", "model", "slices", "turns", "updates", "rest"}

func (p *Parts) each() []*Bytes {
	return []*Bytes{&p.Page, &p.Base, &p.Programs, &p.Model, &p.Slices, &p.Turns, &p.Updates, &p.Rest}
}

// plus adds up.
func (p Parts) plus(q Parts) Parts {
	for i, b := range q.each() {
		at := p.each()[i]
		at.Up, at.Down = at.Up+b.Up, at.Down+b.Down
	}
	return p
}

// sum is all of it, once is what a device fetches once.
func (p Parts) sum() (all Bytes) {
	for _, b := range p.each() {
		all.Up, all.Down = all.Up+b.Up, all.Down+b.Down
	}
	return all
}

// traffic is what the parts are of: bytes go on while somebody reads the meter, so that a
// total that is read by itself is another moment's.
func (p Parts) traffic() Traffic {
	all := p.sum()
	return Traffic{BytesUp: all.Up, BytesDown: all.Down}
}

func (p Parts) once() Bytes {
	return Parts{Page: p.Page, Base: p.Base, Programs: p.Programs, Model: p.Model}.sum()
}

// since is what came after began.
func (p Parts) since(began Parts) Parts {
	for i, b := range began.each() {
		at := p.each()[i]
		// A request is told for its part when it is answered: of one that was under
		// way what began counts as rest is no rest now.
		at.Up, at.Down = max(0, at.Up-b.Up), max(0, at.Down-b.Down)
	}
	return p
}

// Measured is the accuracy and loss of the adapter of ValidationVersion on
// public validation data, at the ranks that were measured. Measuring runs beside the rounds and may
// lag.
type Measured struct {
	Validation        []RankAccuracy `json:"validation,omitempty"`
	ValidationVersion int            `json:"validation_version,omitempty"`
}

// RankAccuracy is how the released adapter, cut to a rank, does on public
// validation data. What devices lose in training is theirs: it never comes here.
type RankAccuracy struct {
	Rank     int     `json:"rank"`
	Accuracy float64 `json:"accuracy"`
	Loss     float64 `json:"loss,omitempty"` // validation loss, see metric.Score; 0: none
}

// RoundRecord is a round that is over.
type RoundRecord struct {
	RoundID
	Turnout
	Released bool           `json:"released"`
	Reason   string         `json:"reason,omitempty"` // why nothing was released
	Seconds  float64        `json:"seconds"`
	Ended    int64          `json:"ended,omitempty"`    // in Unix time, seconds; 0 in records of earlier programs
	Accuracy []RankAccuracy `json:"accuracy,omitempty"` // of its adapter, once measured
	dp.Guarantees
	Traffic       // of this round, all devices
	Parts   Parts `json:"parts"` // of Traffic

	soFar Parts // since the job began, when the round ended
}

// Result is what a job came to.
type Result struct {
	Rounds     int            `json:"rounds"`    // committed
	Abandoned  int            `json:"abandoned"` // rounds of this run that released nothing
	Dropped    int            `json:"dropped"`   // devices that left a round that they were in, over all rounds of this run
	Absent     int            `json:"absent"`    // devices that were drawn and not there, over all rounds of this run
	Adapter    *model.Adapter `json:"-"`
	Checkpoint string         `json:"checkpoint"` // folder of the released checkpoint
	Validation []RankAccuracy `json:"validation,omitempty"`
	BestRank   int            `json:"best_rank"` // the rank of the best validation accuracy; 0 where none was measured

	dp.Guarantees
	Private  bool    `json:"private"`
	ClipNorm float64 `json:"clip_norm"` // after the last round

	// Traffic of this run in all, and divided by device and round for the devices that answered
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
