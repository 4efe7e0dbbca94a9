package coordinator

import (
	"context"
	"log/slog"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
	"github.com/starling-fl/starling/secagg/log"
	"github.com/starling-fl/starling/wasm/program"
)

// Config is what a coordinator needs in addition to the job.
type Config struct {
	Job Job
	// Dir holds the store and the released checkpoint; it is made where there is
	// none, and resumed where it holds this job.
	Dir  string
	Base *model.Base
	// BaseName and BaseRevision say where devices can have the base from without this
	// coordinator: a model's name on a hub and its commit, or an embedded base's name alone.
	// Empty: nowhere.
	BaseName, BaseRevision string
	// Sources says where another owner can get base and start, in a form that the caller chooses.
	// store.ReadSources returns it. May be empty.
	Sources string
	// Elsewhere describes the last release known from another place than Dir; nil: none is known. A
	// store that is older than that release has forgotten rounds, and is refused.
	Elsewhere *model.CheckpointInfo
	// Released is called, from one goroutine at a time, when a release has been written to the
	// folder dir. It must return soon. May be nil.
	Released func(version int, dir string)
	// Start is what the first round begins with, made elsewhere over the same base;
	// nil: a fresh adapter.
	Start *model.Adapter
	// Evaluator measures every rank of the last adapter and so chooses one. It may
	// be nil: then no accuracy is reported.
	Evaluator metric.Evaluator
	// Live measures adapters while rounds go on; nil: Evaluator does. One that takes a sample
	// leaves the machine to the rounds.
	Live metric.Evaluator
	// Log may be nil.
	Log *slog.Logger
	// Progress is called in order from one goroutine at every change; it must
	// return soon. May be nil.
	Progress func(monitor.Status)
	// Seed makes the run reproducible: every source of randomness is derived from
	// it, results are marked not private and have no epsilon. At least 16 bytes;
	// nil takes crypto/rand.
	Seed []byte
	// Patient waits ever longer, up to an hour, if Cohort.MaxAbandoned rounds in a row released
	// nothing, instead of ending the job.
	Patient bool
	// DespiteDropout continues a job that was paused because more devices drop out than
	// cohort.dropout declares, and starts counting anew. No epsilon was computed for that case.
	DespiteDropout bool
	// EnrolmentsOfAddress bounds the new devices, and the failed attempts, of one
	// address in an hour. 0 is 256, and none for this machine's own.
	EnrolmentsOfAddress int
	// Cosign asks a witness to sign a head of the log of enrolled keys, and returns its
	// signature lines; prove says how the log continues from what the witness knows. nil: there
	// is no witness. It is called before each round's plan and must return soon.
	Cosign func(ctx context.Context, head log.Head, signed []byte, prove func(from int64) ([]log.Hash, error)) ([]byte, error)
	// Host is the fleet that the job shares with other jobs; nil: the job has a fleet of its own,
	// in its store.
	Host Host
	// Hosts are the code shapes of the training step's programs that assignments
	// offer; nil is program.Hosts, all of them. Empty but not nil offers none: devices must
	// bring a trainer of their own.
	Hosts []string
	// Compile makes the programs; nil is program.Step.
	Compile program.Compile
}
