// Package outcome reports on a finished job: accuracies, guarantees, bytes, for people
// as a table and for machines as JSON.
package outcome

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/app/sim"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate"
	"github.com/starling-fl/starling/model/evaluate/linear"
)

// Report is what a finished job says of itself, for people as a table and for
// machines as JSON. Accuracies are on the test split; validation alone chose
// the rank.
type Report struct {
	Task         string `json:"task"`
	Reproducible bool   `json:"reproducible"`       // every secret was seeded: nothing is private
	NoNoise      bool   `json:"no_noise,omitempty"` // none was added: nothing is private

	BaseAccuracy float64            `json:"base_accuracy"`
	RankAccuracy map[string]float64 `json:"rank_accuracy"` // of the ranks that were tested
	RankMacroF1  map[string]float64 `json:"rank_macro_f1"`
	Validation   map[string]float64 `json:"rank_validation_accuracy"` // of every rank
	BestRank     int                `json:"best_rank"`
	BestAccuracy float64            `json:"best_accuracy"`
	BestMacroF1  float64            `json:"best_macro_f1"`
	// Perplexity of masked words, of the base and at the best rank; nil for other tasks.
	BasePerplexity *float64 `json:"base_perplexity,omitempty"`
	BestPerplexity *float64 `json:"best_perplexity,omitempty"`

	// Word and character error rates of what is transcribed, of the base and at the best rank,
	// whose accuracies are 1 less the word error rates; nil for other tasks.
	BaseWordErrors      *float64 `json:"base_word_error_rate,omitempty"`
	BestWordErrors      *float64 `json:"best_word_error_rate,omitempty"`
	BestCharacterErrors *float64 `json:"best_character_error_rate,omitempty"`

	// HeadOnly is a recorded figure: see headOnlyRecords. nil if this task
	// was never measured.
	HeadOnly        *float64 `json:"head_only_accuracy"`
	HeadOnlyMacroF1 *float64 `json:"head_only_macro_f1"`

	// Linear is what a linear model over words comes to on the same test split; nil where the task has none.
	Linear *linear.Score `json:"linear,omitempty"`
	// LinearOf says whose texts it was trained on.
	LinearOf Trained `json:"linear_of,omitempty"`

	EpsilonSimulated *float64 `json:"epsilon_simulated"` // nil in a reproducible run
	EpsilonDelivered *float64 `json:"epsilon_delivered"`
	EpsilonPublic    *float64 `json:"epsilon_public,omitempty"`    // delivered, against the public, if that is not the budget's observer
	EpsilonCoalition *float64 `json:"epsilon_coalition,omitempty"` // against the hostile share, likewise
	EpsilonVisible   *float64 `json:"epsilon_visible,omitempty"`   // against those who see who took part, likewise
	Simulated        string   `json:"guarantee_simulated,omitempty"`
	Delivered        string   `json:"guarantee_delivered,omitempty"`
	Public           string   `json:"guarantee_public,omitempty"`
	Coalition        string   `json:"guarantee_coalition,omitempty"`
	Visible          string   `json:"guarantee_visible,omitempty"`

	// ClipNorm is that after the last round where it adapts; nil if it stays.
	ClipNorm *float64 `json:"clip_norm,omitempty"`

	Arithmetic string `json:"arithmetic"` // of the training programs: exact or fused

	Rounds    int     `json:"rounds"`
	Devices   int     `json:"devices"`
	Dropped   int     `json:"dropped"` // device-rounds lost to devices that left in the middle
	Absent    int     `json:"absent"`  // and to drawn devices that were not there
	BytesUp   float64 `json:"bytes_up_per_device_round"`
	BytesDown float64 `json:"bytes_down_per_device_round"`
	// What does not come again with every round: the base, programs, the page and
	// the job, of all devices.
	BytesOnceUp   int64 `json:"bytes_once_up"`
	BytesOnceDown int64 `json:"bytes_once_down"`
	// Parts divides the bytes of all devices by purpose; nil if they were not counted at sockets.
	Parts *monitor.Parts `json:"parts,omitempty"`

	Seconds    float64 `json:"seconds"`
	Checkpoint string  `json:"checkpoint"`

	method   string  // that has no ranks; "" if it has, or trains the head alone
	majority float64 // share of the commonest label in the test split
	ranks    []int   // in the order of the table
	referred bool    // a linear model was looked for
	writes   bool    // accuracy is of tokens that come next; else of masked ones
	clipNorm float64 // of the first round
}

// Layout is the layout of a job's adapter over a base.
func Layout(job job.Job, b *model.Base) (*model.Layout, error) {
	return model.NewLayout(b.Config, job.Method(), len(job.Labels))
}

// Measure tests the released adapter at the rank that validation chose or at every rank, and the
// untouched base. Validation was scored by the coordinator, at every rank.
func (r *Report) Measure(ctx context.Context, layout *model.Layout, result monitor.Result, test *evaluate.Labelled, everyRank bool) error {
	r.RankAccuracy, r.RankMacroF1, r.Validation = map[string]float64{}, map[string]float64{}, map[string]float64{}
	for _, v := range result.Validation {
		name := strconv.Itoa(v.Rank)
		r.ranks, r.Validation[name] = append(r.ranks, v.Rank), v.Accuracy
		if v.Rank != result.BestRank && !everyRank {
			continue
		}
		tested, err := test.Score(ctx, result.Adapter, v.Rank)
		if err != nil {
			return err
		}
		r.RankAccuracy[name], r.RankMacroF1[name] = tested.Accuracy, tested.MacroF1
		if v.Rank == result.BestRank {
			r.BestRank, r.BestAccuracy, r.BestMacroF1, r.BestPerplexity = v.Rank, tested.Accuracy, tested.MacroF1, tested.Perplexity
			r.BestWordErrors, r.BestCharacterErrors = tested.WordErrors, tested.CharacterErrors
		}
	}
	r.writes = layout.Method.Task == model.TaskCausal
	untouched, err := test.Score(ctx, model.NewAdapter(layout, 0), 0)
	if err != nil {
		return err
	}
	r.BaseAccuracy, r.BasePerplexity, r.majority = untouched.Accuracy, untouched.Perplexity, test.MajorityAccuracy()
	r.BaseWordErrors = untouched.WordErrors
	return nil
}

// Trained says whose texts a linear reference was trained on.
type Trained string

// Whose they are.
const (
	OnDevices    Trained = "devices"    // all devices' texts in one place, which a demonstration alone has
	OnValidation Trained = "validation" // the public validation examples, which a coordinator has without any device
)

// Refer adds the linear reference, if the task has one: a model that is trained on one set, and tested on another.
func (r *Report) Refer(ctx context.Context, layout *model.Layout, of Trained, train, test *dataset.Set) error {
	r.referred = true
	if layout.Method.Task != model.TaskClassify {
		return nil
	}
	score, err := linear.Against(ctx, train, test)
	if err == nil {
		r.Linear, r.LinearOf = score, of
	}
	if errors.Is(err, linear.ErrNone) {
		return nil
	}
	return err
}

// Settle copies the coordinator's result of the job into the report.
func (r *Report) Settle(j job.Job, result monitor.Result) {
	r.Rounds, r.Dropped, r.Absent, r.Checkpoint = result.Rounds, result.Dropped, result.Absent, result.Checkpoint
	r.BytesUp, r.BytesDown = result.BytesUpPerDeviceRound, result.BytesDownPerDeviceRound
	r.BytesOnceUp, r.BytesOnceDown = result.BytesOnceUp, result.BytesOnceDown
	r.Arithmetic = cmp.Or(j.Training.Arithmetic, job.Exact)
	r.NoNoise = j.Privacy.None
	r.Reproducible = !result.Private && !r.NoNoise
	if m := j.Method(); !m.Ranked() && m.Kind != model.MethodHead && !j.Adapter.HeadOnly {
		r.method = string(m.Kind)
	}
	if result.Private {
		r.Simulated, r.EpsilonSimulated = reported(result.Simulated)
		r.Delivered, r.EpsilonDelivered = reported(result.Delivered)
		r.Public, r.EpsilonPublic = reported(result.Public)
		r.Coalition, r.EpsilonCoalition = reported(result.Coalition)
		r.Visible, r.EpsilonVisible = reported(result.Visible)
	}
	if j.Clipping.Adaptive {
		r.ClipNorm = &result.ClipNorm
		r.clipNorm = j.Privacy.ClipNorm
	}
}

// CountTraffic sets the bytes of a device and round, and those of one-time fetches, by the devices' own count.
func (r *Report) CountTraffic(t sim.Traffic) {
	r.BytesUp, r.BytesDown = t.PerDeviceRound.Up, t.PerDeviceRound.Down
	r.BytesOnceUp, r.BytesOnceDown = t.OnceUp, t.OnceDown
}

func reported(g *dp.Guarantee) (string, *float64) {
	if g == nil {
		return "", nil
	}
	return g.String(), &g.Epsilon
}
