package coordinator

import (
	"bytes"
	"encoding/hex"
	"slices"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job/statement"
	"github.com/starling-fl/starling/model"
)

// About describes the job to owners of devices who consider joining. It does not change while the
// job runs: the guarantees are those of all its rounds, not what has been spent so far.
type About struct {
	Job    string   `json:"job"`
	ID     string   `json:"id"`   // TaskID in hexadecimal: a name may be shared, or shown otherwise
	Task   string   `json:"task"` // what is learnt, as in the job file: one of model.TaskNames
	Labels []string `json:"labels"`
	Rounds int      `json:"rounds"`

	// Asks says who asks and what for; nil if the job does not say. Verified: its domain names the key that signed it,
	// as the server found.
	Asks     *statement.Statement `json:"asks,omitempty"`
	Verified bool                 `json:"verified,omitempty"`

	// Private is false for a reproducible run, whose every secret is seeded, and for one
	// without noise.
	Private bool `json:"private"`
	// Protects is whose presence the noise hides: "device" or "provider".
	Protects string `json:"protects"`
	// Providers is how many providers a device may hold; 0 if devices are
	// protected.
	Providers int `json:"providers,omitempty"`
	// SimulatedPopulation is the number of devices whose noise is simulated; 0
	// without simulation.
	SimulatedPopulation int `json:"simulated_population,omitempty"`
	// Guarantees when all rounds are made; Delivered is that of those who join.
	dp.Guarantees

	// ShardFloor is the least number of devices whose updates are added up before
	// anything can be read.
	ShardFloor int `json:"shard_floor"`
	// SamplingRate is the probability with which a device is drawn for a round.
	SamplingRate float64 `json:"sampling_rate"`
	// BaseBytes is the size of the base that a device fetches once.
	BaseBytes uint64 `json:"base_bytes"`
	// Round is what a device moves and does in a round.
	Round RoundSize `json:"round"`
	// Full reports that a page needs the full build of its program: for shares that are sealed with
	// the post-quantum hybrid, and for all but the most common bases and tokenizers.
	Full bool `json:"full,omitempty"`
	// Sound is what the base hears of a recording; nil if the job has none.
	Sound *Sound `json:"sound,omitempty"`
	// Sample is the name of a public file to try, at /v1/sample; empty: there is none.
	Sample string `json:"sample,omitempty"`
	// Protocol names the coordinator's version of the protocol: a page with another one is too old.
	Protocol string `json:"protocol"`
	// NeedsSecret reports that a join token is needed: the address is not enough.
	NeedsSecret bool `json:"needs_secret"`
}

// RoundSize is what a device transfers and computes in a round of the largest rank, the costliest.
// The turns of secure aggregation add some kilobytes.
type RoundSize struct {
	Batch  int    `json:"batch"`            // examples of a step
	Steps  int    `json:"steps"`            // at most, where the job counts epochs; batches that are scored are steps, too
	Epochs int    `json:"epochs,omitempty"` // over the device's own examples; 0: the job counts steps
	Down   uint64 `json:"down"`             // bytes of the adapter's slice, as long as it is
	Up     uint64 `json:"up"`               // bytes of the masked update
}

// roundSize is that of the job.
func roundSize(t *core.Terms) RoundSize {
	values := t.Layout.Size(slices.Max(t.Ranks()))
	s := t.Job.Training
	return RoundSize{Batch: s.Batch, Steps: s.Steps + s.Scored, Epochs: s.Epochs, Down: 4 * uint64(values), Up: (uint64(values)*uint64(t.Bits) + 7) / 8}
}

// OfferedProgram is a training program that anybody may fetch as a blob.
type OfferedProgram struct {
	Host   string `json:"host"`
	SHA256 string `json:"sha256"` // in hexadecimal
	Size   uint64 `json:"size"`
}

// Programs lists the training programs of the largest rank, one per host, for a device that wants
// to know what a round takes before it joins. They are compiled once.
func (c *Coordinator) Programs() ([]OfferedProgram, error) {
	programs, err := c.programs.at(slices.Max(c.t.Ranks()))
	list := []OfferedProgram{}
	for _, p := range programs {
		list = append(list, OfferedProgram{p.Host, hex.EncodeToString(p.Blob.SHA256[:]), p.Blob.Size})
	}
	return list, err
}

// Sound describes the recordings that a base takes: what is beyond Samples is cut off, and nothing
// is learnt from a recording shorter than Least.
type Sound struct {
	Rate    int `json:"rate"`    // samples a second
	Samples int `json:"samples"` // that a row has room for
	Least   int `json:"least"`   // samples of one frame
}

// About computes the description of the job. Its guarantees take a moment.
func (c *Coordinator) About() (About, error) {
	j := c.t.Job
	a := About{
		Job: j.Name, ID: hex.EncodeToString(c.task[:]), Task: j.Task, Labels: append([]string{}, j.Labels...), Rounds: j.Rounds, Private: c.private(), Protects: "device",
		ShardFloor: j.Shard.Floor, SamplingRate: j.Cohort.SamplingRate, BaseBytes: c.t.BaseRef.Size,
		Round: roundSize(c.t), Full: heavy(c.t), NeedsSecret: len(c.secret) > 0, Protocol: wire.Protocol(),
	}
	if !j.About.IsZero() {
		a.Asks = &j.About
	}
	if j.Providers.Max > 0 {
		a.Protects, a.Providers = "provider", j.Providers.Max
	}
	if c := c.t.Base.Config; c.Hears() {
		a.Sound = &Sound{Rate: c.Speech.Rate, Samples: c.Speech.Samples(j.Adapter.Sequence), Least: c.Speech.Samples(1)}
	}
	if j.Simulated() {
		a.SimulatedPopulation = int(j.BudgetPopulation())
	}
	if !a.Private {
		return a, nil
	}
	var err error
	a.Guarantees, err = c.t.Promise()
	return a, err
}

// Rho is the noise in a released mean over what clipping bounds it by: see core.Terms.
func (c *Coordinator) Rho() float64 { return c.t.Rho() }

// Announced is the job's announcement, as devices get it when they enrol. They may try it before.
// It does not change.
func (c *Coordinator) Announced() []byte { return bytes.Clone(c.jobBytes) }

// BaseConfig is the configuration of the job's base, by which a device judges what is trained before it fetches the base.
func (c *Coordinator) BaseConfig() model.Config { return c.t.Base.Config }

// heavy reports whether the job asks for what a page's light build leaves out.
func heavy(t *core.Terms) bool {
	return t.Job.Shard.Hybrid || t.Base.Heavy() || t.Job.Training.HeldOut > 0
}
