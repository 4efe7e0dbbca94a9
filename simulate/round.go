package simulate

import (
	"context"
	"fmt"
	"math"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/protocol/contract"
	"github.com/starling-fl/starling/model/evaluate/metric"
	"github.com/starling-fl/starling/wasm/program"
)

// Round is the outcome of one round.
type Round struct {
	Number  int `json:"round"` // from 1. None is abandoned here: it is the adapter's version, too
	Rank    int `json:"rank"`
	Cohort  int `json:"cohort"`            // drawn
	Empty   int `json:"empty"`             // of them without an example: they count as zero contributions
	Dropped int `json:"dropped,omitempty"` // of them whose update never arrived: zero, too
	// Zeros counts clients whose training came to nothing, by divergence for one, and that sent
	// zeros in its place as devices do. Where clients hold providers it counts none.
	Zeros  int `json:"zeros,omitempty"`
	Values int `json:"values"` // trained, at this rank
	// Reach is how near the round's start came to each bound of the job, by its key: 1 is at the bound,
	// beyond which a device refuses.
	Reach map[string]float64 `json:"reach,omitempty"`

	NoiseOnly bool    `json:"noise_only,omitempty"` // the cohort was below its floor
	ClipNorm  float64 `json:"clip_norm"`
	// SignalNorm is the L2 norm of the exact mean update, NoiseNorm that of what
	// was added to it; their quotient decides a privacy experiment.
	SignalNorm float64 `json:"signal_norm"`
	NoiseNorm  float64 `json:"noise_norm"`
	Clipped    float64 `json:"clipped"`   // share of the units whose norm was above the clip norm
	MeanNorm   float64 `json:"mean_norm"` // mean L2 norm of the units before clipping

	// Bytes of one device: its masked vector, and the adapter's slice.
	BytesUp   int `json:"bytes_up"`
	BytesDown int `json:"bytes_down"`

	Accuracy []RankAccuracy `json:"accuracy,omitempty"` // on validation data, where it was measured
	Fleet    *metric.Fleet  `json:"fleet,omitempty"`    // what the clients found on their own held-out examples
	Epsilon  float64        `json:"epsilon,omitempty"`  // spent until then, by the simulated deployment; 0 without noise
}

// RankAccuracy is the accuracy of the adapter cut to a rank.
type RankAccuracy = metric.RankAccuracy

// start is a drawn round as its clients are given it.
type start struct {
	draw  *core.Draw
	work  *Assignment
	bytes int // of the message that says where they start from
}

// prepare makes what a drawn round's clients are given.
func (r *Run) prepare(d *core.Draw) (start, error) {
	message, values, err := r.core.Slice(d.Rank())
	if err != nil {
		return start{}, err
	}
	code := r.programs[d.Rank()]
	if code == nil { // an accelerator's engine compiles it once more when it first trains
		r.doing("compiling the step of rank %d, and training with it", d.Rank())
	}
	if code == nil {
		if code, err = r.cfg.Compile(r.core.ProgramSpec(d.Rank(), program.Hosts[0])); err != nil {
			return start{}, err
		}
		r.programs[d.Rank()] = code
	}
	base, sum := r.core.Base()
	j := r.job
	return start{draw: d, bytes: len(message), work: &Assignment{
		Plan: Plan{
			Round: d.ID(), Rank: d.Rank(), Uplink: j.Wire.Uplink, Dim: d.Lattice().Dim(), ClipNorm: d.Norm(), Rotation: d.Rotation(),
			Count: d.Count(), Figures: d.Figures(), Training: j.Training.At(int(r.core.Version()), j.Rounds), Sequence: j.Adapter.Sequence,
			Method: j.Method(), Classes: len(j.Labels),
			Providers: j.Providers.Max, ProviderRate: j.Providers.SamplingRate, Groups: j.Privacy.Groups,
		},
		Base: base, BaseSHA256: sum, Program: code, Start: values,
		layout: r.core.Layout(), task: r.task,
		vector: contract.Vector{Lattice: d.Lattice(), Count: d.Count(), Figures: d.Figures(), Groups: j.Privacy.Groups, Own: r.duals.own(d.Own())},
		failed: r.nothing.note,
	}}, nil
}

// client puts a member's part together.
func (r *Run) client(round uint64, member int) (Client, error) {
	n := r.order(member)
	var set *dataset.Set
	var err error
	if r.drops(round, n) {
		set = &dataset.Set{Labels: r.job.Labels} // what never arrives adds what nobody's examples do
	} else {
		set, err = r.cfg.Population.Client(n)
	}
	if err == nil && len(set.Examples) > 0 {
		set, err = set.Relabel(r.job.Labels)
	}
	if err != nil {
		return Client{}, fmt.Errorf("simulate: client %d: %w", n, err)
	}
	seed, _ := edge.Reproducible(r.cfg.Seed, n)
	return Client{Number: n, Seed: seed, Set: set, Dual: r.duals.client(n)}, nil
}

// reach is how near a round's start came to the bounds that devices hold it to.
func (r *Run) reach(s start) map[string]float64 {
	shares := contract.Reach(r.core.Layout(), s.draw.Rank(), s.work.Start, r.core.StartBounds())
	of := map[string]float64{}
	for _, part := range contract.PartsOf(&shares) {
		if *part.Most > 0 {
			of[part.Key] = *part.Most
		}
	}
	return of
}

// release adds the noise, takes the optimizer's step and says what it came to.
func (r *Run) release(ctx context.Context, s start, t *Tally) (Round, error) {
	d := s.draw
	lattice := d.Lattice()
	out := Round{
		Rank: d.Rank(), Cohort: len(d.Cohort()), Empty: t.Empty, ClipNorm: d.Norm(),
		Values:    r.core.Layout().Size(d.Rank()),
		NoiseOnly: len(d.Cohort()) < r.job.Cohort.Floor,
		BytesUp:   (d.Size()*r.core.UplinkBits() + 7) / 8, BytesDown: s.bytes,
		Reach: r.reach(s),
	}
	if out.NoiseOnly {
		clear(t.Sum)
	}
	units, above := 0, 0
	if out.Zeros = -t.Empty; r.job.Providers.Max > 0 {
		out.Zeros = 0 // their coins may leave all of a client's out
	}
	for _, norms := range t.Norms {
		if len(norms) == 0 && r.job.Providers.Max == 0 {
			out.Zeros++
		}
		for _, n := range norms {
			units++
			out.MeanNorm += n
			if n > lattice.Clip() {
				above++
			}
		}
	}
	if r.cfg.Unclipped && above > 0 {
		return out, fmt.Errorf("%w: round %d: %d updates have a norm beyond %.3g, the limit without clipping: training diverges; lower training.learning_rate, or clip",
			ErrConfig, d.ID(), above, lattice.Clip())
	}
	if units > 0 {
		out.MeanNorm /= float64(units)
		out.Clipped = float64(above) / float64(units)
	}
	exact, err := lattice.DecodeMean(t.Sum[:lattice.D()], r.core.Denominator())
	if err != nil {
		return out, err
	}
	var noise dp.Noise // none of a job without privacy
	devices := r.devices(d)
	if d.Own() != (dp.Variance{}) {
		noise = dp.NewSampler(r.core.Noise(d))
		if !out.NoiseOnly {
			if err := r.addOwn(d, t.Sum); err != nil {
				return out, err
			}
		}
	} else if !r.job.Privacy.None {
		pool, err := dp.NewPool(ctx, d.Variance(), d.Size(), r.core.Noise(d))
		if err != nil {
			return out, err
		}
		defer pool.Close()
		noise = pool
	}
	event, clip, err := r.core.Release(d, t.Sum, devices, out.NoiseOnly, noise)
	if err != nil {
		return out, err
	}
	noisy, err := lattice.DecodeMean(t.Sum[:lattice.D()], r.core.Denominator())
	if err != nil {
		return out, err
	}
	for i, v := range exact {
		out.SignalNorm += float64(v) * float64(v)
		out.NoiseNorm += (float64(noisy[i]) - float64(v)) * (float64(noisy[i]) - float64(v))
	}
	out.SignalNorm, out.NoiseNorm = math.Sqrt(out.SignalNorm), math.Sqrt(out.NoiseNorm)
	out.Fleet = d.Fleet()
	r.core.Commit(clip)
	r.rest(d.Cohort())
	r.events = append(r.events, event)
	out.Number = int(r.core.Version())
	return out, nil
}
