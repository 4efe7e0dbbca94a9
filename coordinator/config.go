package coordinator

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/model"
)

// Evaluator measures a released adapter on public data: never on devices'.
type Evaluator interface {
	// Evaluate returns the accuracy in [0, 1] at each of the ranks, in their
	// order. Rank 0 is the head alone.
	Evaluate(ctx context.Context, a *model.Adapter, ranks []int) ([]float64, error)
}

// Compile makes the training step's program for one rank and one host ("wazero"
// or "v8").
type Compile func(spec ProgramSpec) ([]byte, error)

// ProgramSpec says which training step is wanted.
type ProgramSpec struct {
	Job  Job
	Base *model.Base
	Rank int
	Host string
	// Compact names the frozen matrices that stay 4-bit codes in memory.
	Compact map[string]bool
}

// Config is what a coordinator needs beside the job.
type Config struct {
	Job Job
	// Dir holds the store and the released checkpoint; it is made where there is
	// none, and resumed where it holds this job.
	Dir  string
	Base *model.Base
	// Start is what the first round begins with, made elsewhere over the same base;
	// nil: a fresh adapter.
	Start *model.Adapter
	// Evaluator measures every rank of the last adapter and so chooses one. It may
	// be nil: then no accuracy is reported.
	Evaluator Evaluator
	// Live measures the adapters in between, beside the rounds; nil is Evaluator.
	// One that takes a sample keeps the machine for the rounds.
	Live Evaluator
	// Log may be nil.
	Log *slog.Logger
	// Progress is called in order from one goroutine at every change; it must
	// return soon. May be nil.
	Progress func(Progress)
	// Seed makes the run reproducible: every source of randomness is derived from
	// it, results are marked not private and have no epsilon. At least 16 bytes;
	// nil takes crypto/rand.
	Seed []byte
	// Pages are the join page and the dashboard, served at /; nil serves none.
	Pages http.Handler
	// Patient waits ever longer, up to an hour, where Cohort.MaxAbandoned rounds in a
	// row released nothing, in place of ending the job.
	Patient bool
	// MostOfAddress bounds the open connections of one address (of one /64 in IPv6).
	// 0 is an eighth of what the process may have, and leaves this machine's own
	// addresses, behind which a proxy stands, to that whole.
	MostOfAddress int
	// EnrolmentsOfAddress bounds the new devices, and the failed attempts, of one
	// address in an hour. 0 is 256, and none for this machine's own.
	EnrolmentsOfAddress int
	// Hosts are the code shapes of the training step's programs that assignments
	// offer; nil is Hosts, all of them. Empty but not nil offers none: devices must
	// bring a trainer of their own.
	Hosts []string
	// Compile makes the programs; nil is CompileStep.
	Compile Compile
}

// RankAccuracy is the accuracy of the released adapter cut to a rank, on public
// validation data.
type RankAccuracy struct {
	Rank     int     `json:"rank"`
	Accuracy float64 `json:"accuracy"`
}

// The states of Progress beside those of a round.
const (
	StateWaiting   = "waiting"   // for enough devices to enrol
	StateCommitted = "committed" // a round is over, its checkpoint is released
	StateAbandoned = "abandoned" // a round is over, nothing is released
	StateMeasuring = "measuring" // all rounds are made, every rank is measured
	StateFinished  = "finished"  // the job is over
)

// Progress is where the job stands.
type Progress struct {
	Job    string   `json:"job"`
	Labels []string `json:"labels"`
	// Round is the round being made, 1..Rounds; Attempt counts the abandoned
	// ones, too, and is never reused.
	Round   int    `json:"round"`
	Rounds  int    `json:"rounds"`
	Attempt uint64 `json:"attempt"`
	State   string `json:"state"`
	Rank    int    `json:"rank"`

	Enrolled  int `json:"enrolled"`
	Connected int `json:"connected"`
	Cohort    int `json:"cohort"`  // drawn in this round
	Dropped   int `json:"dropped"` // of the cohort, so far in this round
	Answered  int `json:"answered"`

	// Validation is the accuracy of the adapter of ValidationRound on public
	// validation data, at the ranks that were measured. Measuring runs beside the
	// rounds and may lag.
	Validation      []RankAccuracy `json:"validation,omitempty"`
	ValidationRound int            `json:"validation_round,omitempty"`
	// Simulated and Delivered are the guarantees after the last committed round:
	// both nil in a reproducible run, Simulated nil without simulation.
	Simulated *dp.Guarantee `json:"simulated,omitempty"`
	Delivered *dp.Guarantee `json:"delivered,omitempty"`
	// Visible is the delivered guarantee against those who see who takes part, as
	// shard peers and network observers do; nil where it is the same.
	Visible *dp.Guarantee `json:"visible,omitempty"`
	Private bool          `json:"private"`

	// ClipNorm is that of the round, or of the next one.
	ClipNorm float64 `json:"clip_norm"`

	// BytesUp and BytesDown are what crossed the sockets since the start, up
	// being towards the coordinator.
	BytesUp   int64 `json:"bytes_up"`
	BytesDown int64 `json:"bytes_down"`

	Reason  string        `json:"reason,omitempty"`
	Elapsed time.Duration `json:"elapsed_ns"`
}

// Result is what a job came to.
type Result struct {
	Rounds     int            `json:"rounds"`    // committed
	Abandoned  int            `json:"abandoned"` // rounds of this run that released nothing
	Dropped    int            `json:"dropped"`   // devices that were drawn and left a round, over all rounds of this run
	Adapter    *model.Adapter `json:"-"`
	Checkpoint string         `json:"checkpoint"` // folder of the released checkpoint
	Validation []RankAccuracy `json:"validation,omitempty"`
	BestRank   int            `json:"best_rank"` // the rank of the best validation accuracy; 0 where none was measured

	Simulated *dp.Guarantee `json:"simulated,omitempty"`
	Delivered *dp.Guarantee `json:"delivered,omitempty"`
	Visible   *dp.Guarantee `json:"visible,omitempty"`
	Private   bool          `json:"private"`
	ClipNorm  float64       `json:"clip_norm"` // after the last round

	// BytesUp and BytesDown in all, and divided by device and round for the
	// devices that answered the round's first turn.
	BytesUp                 int64   `json:"bytes_up"`
	BytesDown               int64   `json:"bytes_down"`
	BytesUpPerDeviceRound   float64 `json:"bytes_up_per_device_round"`
	BytesDownPerDeviceRound float64 `json:"bytes_down_per_device_round"`
	// BytesOnceUp and BytesOnceDown are for what a device fetches once and not in
	// every round: the base, programs, the job, the page. They are part of BytesUp
	// and BytesDown, and no part of what is divided by device and round.
	BytesOnceUp   int64 `json:"bytes_once_up"`
	BytesOnceDown int64 `json:"bytes_once_down"`
	// LedgerHead is the hash of the ledger's last entry, hexadecimal.
	LedgerHead string `json:"ledger_head"`
}
