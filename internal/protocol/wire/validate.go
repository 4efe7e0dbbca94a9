package wire

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/starling-fl/starling/job/training"
)

func (h *Hello) validate() error {
	return errors.Join(
		within("hello.min_version", h.MinVersion, 1, h.MaxVersion),
		within("hello.agent", len(h.Agent), 0, MaxName))
}

func (w *Welcome) validate() error {
	return within("welcome.version", w.Version, 1, math.MaxUint32)
}

func (e *Enrol) validate() error {
	if n := len(e.Task); n != 0 && n != 32 {
		return &LimitError{Field: "enrol.task", Have: uint64(n), Least: 32, Most: 32}
	}
	return errors.Join(
		within("enrol.session", len(e.Session), 0, MaxSession),
		within("enrol.channel", e.Channel, ChannelPlain, ChannelBrowser),
		within("enrol.held", e.Held, 0, MaxLog))
}

func (g *Growth) validate(field string) error {
	if n := len(g.Hashes); n%32 != 0 {
		return fmt.Errorf("wire: %s.hashes has %d bytes, 32 each expected", field, n)
	}
	return errors.Join(
		within(field+".from", g.From, 0, MaxLog),
		within(field+".hashes", len(g.Hashes), 0, MaxGrowth))
}

func (e *Enrolled) validate() error {
	return errors.Join(
		within("enrolled.session", len(e.Session), 16, MaxSession),
		within("enrolled.head", len(e.Head), 0, MaxHead),
		e.Growth.validate("enrolled.growth"),
		within("enrolled.job", len(e.Job), 0, MaxJob))
}

func (*Ready) validate() error { return nil }

func (w *Wait) validate() error { return within("wait.reason", len(w.Reason), 0, MaxText) }

func (a *Assignment) validate() error {
	if err := errors.Join(
		within("assignment.plan", len(a.Plan), 1, MaxPlan),
		a.Growth.validate("assignment.growth"),
		within("assignment.patches", len(a.Patches), 0, MaxPatches)); err != nil {
		return err
	}
	for i := range a.Patches {
		if err := a.Patches[i].Blob.validate("assignment.patch.blob"); err != nil {
			return err
		}
	}
	return nil
}

func (t *Turn) validate() error {
	return errors.Join(
		within("turn.number", t.Number, 1, 5),
		within("turn.payload", len(t.Payload), 0, MaxTurn))
}

func (u *Update) validate() error {
	if err := errors.Join(
		within("update.total", u.Total, 1, MaxUpdate),
		within("update.offset", u.Offset, 0, u.Total),
		within("update.data", len(u.Data), 1, MaxChunk)); err != nil {
		return err
	}
	return within("update.end", u.Offset+uint64(len(u.Data)), 1, u.Total)
}

func (r *Resume) validate() error {
	return errors.Join(
		within("resume.held", r.Held, 0, 0x1f),
		within("resume.received", r.Received, 0, MaxUpdate))
}

func (o *Outcome) validate() error {
	return errors.Join(
		within("outcome.result", o.Result, OutcomeCommitted, OutcomeDropped),
		within("outcome.reason", len(o.Reason), 0, MaxText))
}

func (r *Refuse) validate() error {
	return errors.Join(
		within("refuse.code", r.Code, 300, 399),
		within("refuse.reason", len(r.Reason), 0, MaxText))
}

func (f *Finished) validate() error {
	err := within("finished.reason", len(f.Reason), 0, MaxText)
	if m := &f.Model; m.Offered() {
		err = errors.Join(err,
			within("finished.model.rank", m.Rank, 0, MaxRank),
			m.Adapter.validate("finished.model.adapter"),
			m.Archive.validate("finished.model.archive"),
			validatePrograms("finished.model.program", m.Programs))
	}
	return err
}

// validatePrograms checks a list of compiled forms that may be empty.
func validatePrograms(field string, programs []Program) error {
	if err := within(field+"s", len(programs), 0, MaxPrograms); err != nil {
		return err
	}
	for _, g := range programs {
		if err := errors.Join(
			within(field+".host", len(g.Host), 1, MaxName),
			g.Blob.validate(field+".blob")); err != nil {
			return err
		}
	}
	return nil
}

func (e *Error) validate() error {
	return errors.Join(
		within("error.code", e.Code, 100, 399),
		within("error.text", len(e.Text), 0, MaxText))
}

func (b Blob) validate(field string) error { return within(field+".size", b.Size, 1, MaxBlob) }

func (j *Job) validate() error {
	if err := errors.Join(
		within("job.name", len(j.Name), 1, MaxLabel),
		within("job.labels", len(j.Labels), 0, MaxLabels), // how many a task has, the layout knows
		within("job.task", len(j.Task), 0, MaxName),
		j.Base.validate("job.base"),
		within("job.rank_max", j.RankMax, 1, MaxRank),
		within("job.rank_min", j.RankMin, 0, j.RankMax),
		within("job.answer", j.Answer, 0, 1<<16),
		within("job.sequence", j.Sequence, 1, 1<<16),
		bounded("job.", j.Announced.Bounds()),
		within("job.rounds", j.Rounds, 1, 1<<40),
		within("job.recipe", len(j.Recipe), 0, MaxRecipe),
		within("job.steps", j.Steps, 0, 1<<20),
		nonNegative("job.clip_norm", j.ClipNorm),
		j.Bounds.validate(),
		within("job.scored", j.Scored, 0, MaxScored),
		within("job.uplink", len(j.Uplink), 1, MaxName),
		within("job.shard_max", j.ShardMax, 2, MaxShard),
		within("job.shard_floor", j.ShardFloor, 2, j.ShardMax),
		within("job.corrupt_ppm", j.CorruptPPM, 0, 1_000_000),
		positive("job.alpha", j.Alpha),
		oneOf("job.scale", j.Scale, "", "constant"),
		within("job.method", len(j.Method), 0, MaxName),
		within("job.targets", len(j.Targets), 0, MaxMethodList),
		within("job.also", len(j.Also), 0, MaxMethodList),
		within("job.objectives", len(j.Objectives), 0, MaxMethodList),
		within("job.bottleneck", j.Bottleneck, 0, 1<<16),
		within("job.blocks", j.Blocks, 0, 1<<16),
		within("job.providers", j.Providers, 0, MaxProviders),
		within("job.groups", j.Groups, 0, MaxParts),
		unit("job.provider_rate", j.ProviderRate),
		unit("job.privacy.sampling_rate", j.Privacy.SamplingRate),
		unit("job.privacy.delta", j.Privacy.Delta),
		nonNegative("job.privacy.noise_multiplier", j.Privacy.NoiseMultiplier),
		nonNegative("job.privacy.budget", j.Privacy.Budget),
		oneOf("job.privacy.accountant", j.Privacy.Accountant, "", "tight", "rdp"),
		oneOf("job.privacy.observer", j.Privacy.Observer, "", ObserverPublic, ObserverCoalition, ObserverParticipants),
		oneOf("job.privacy.noise", j.Privacy.Noise, NoiseCentral, NoiseDevices, NoiseSilo),
		nonNegative("job.privacy.own_noise", j.Privacy.OwnNoise),
		within("job.privacy.honest", j.Privacy.Honest, 0, math.MaxInt32),
		j.Published.validate(),
	); err != nil {
		return err
	}
	if !(j.HeldOut >= 0 && j.HeldOut <= training.MaxHeldOut) || (j.HeldOut == 0) != (j.Scored == 0) {
		return fmt.Errorf("wire: job.held_out is %v and job.scored %d: the share must be in 0..%v, and both or neither be set", j.HeldOut, j.Scored, training.MaxHeldOut)
	}
	if !(j.Dual >= 0 && j.Dual <= MaxProviders) || j.Dual != 0 && j.Dual < 1.0/MaxProviders || j.Providers == 0 && j.Dual > 0 && j.Dual != 1 {
		return fmt.Errorf("wire: job.dual is %v, must be 0, or the units of a device's vector: 1 without job.providers, else %.3g..%d", j.Dual, 1.0/MaxProviders, MaxProviders)
	}
	if j.Dual != 0 && j.Groups > 1 && j.Privacy.Noise != NoiseSilo {
		return fmt.Errorf("wire: job.dual with job.groups, and job.privacy.noise is %q: a group's data would move the other groups' later vectors by more than that hides", j.Privacy.Noise)
	}
	if j.Dual != 0 && j.Providers > 0 && j.Privacy.Noise != NoiseSilo {
		return fmt.Errorf("wire: job.dual with job.providers, and job.privacy.noise is %q: a provider's data would move the others' vectors by more than that hides", j.Privacy.Noise)
	}
	if j.Dealt && j.LogKey == [32]byte{} {
		return errors.New("wire: job.dealt without job.log_key: devices draw with the keys of a log")
	}
	if p := j.Privacy; p.NoiseMultiplier == 0 && (p.Private || p.Budget != 0) {
		return fmt.Errorf("wire: job.privacy claims to be private or a budget of %v without any noise", p.Budget)
	}
	if err := errors.Join(j.Privacy.validateOwn(), j.validateBanded()); err != nil {
		return err
	}
	if (j.Providers == 0) != (j.ProviderRate == 0) {
		return fmt.Errorf("wire: job.providers is %d and job.provider_rate %v: both or neither", j.Providers, j.ProviderRate)
	}
	seen := make(map[string]bool, len(j.Labels))
	for _, l := range j.Labels {
		if err := within("job.label", len(l), 1, MaxLabel); err != nil {
			return err
		}
		if seen[l] {
			return fmt.Errorf("wire: job.labels: %q is there twice", l)
		}
		seen[l] = true
	}
	return nil
}

// validateOwn checks a claim about devices' noise against that noise: what is promised
// for the noise of so many devices is not more than so many add.
func (p Privacy) validateOwn() error {
	if (p.Noise == NoiseCentral) != (p.Honest == 0) {
		return fmt.Errorf("wire: job.privacy.noise is %q and job.privacy.honest %d: the one counts the other's noise", p.Noise, p.Honest)
	}
	const rounding = 1 + 1e-9
	if have := p.OwnNoise * math.Sqrt(float64(p.Honest)) * rounding; p.Noise != NoiseCentral && have < p.NoiseMultiplier {
		return fmt.Errorf("wire: job.privacy.noise_multiplier is %v, but %d devices of own_noise %v add %v together", p.NoiseMultiplier, p.Honest, p.OwnNoise, have)
	}
	return nil
}

// validateBanded checks what is announced of noise that cancels between releases.
func (j *Job) validateBanded() error {
	p := j.Privacy
	if p.Separation == 0 && p.Band == 0 && p.Eighths == 0 {
		return nil
	}
	if p.Noise != NoiseCentral || p.SamplingRate != 1 || j.Providers > 0 {
		return fmt.Errorf("wire: job.privacy.separation is %d, with job.privacy.noise %q, sampling_rate %v and %d providers: it is for "+
			"the coordinator's noise, without coins, and whole devices", p.Separation, p.Noise, p.SamplingRate, j.Providers)
	}
	return errors.Join(
		within("job.privacy.separation", p.Separation, p.Band, MaxSeparation),
		within("job.privacy.band", p.Band, 1, MaxBand),
		within("job.privacy.eighths", p.Eighths, 1, 7))
}

func (b Bounds) validate() error {
	return errors.Join(
		nonNegative("job.bounds.a", b.A),
		nonNegative("job.bounds.b", b.B),
		nonNegative("job.bounds.head", b.Head),
		nonNegative("job.bounds.bias", b.Bias),
		nonNegative("job.bounds.whole", b.Whole),
		nonNegative("job.bounds.modules", b.Modules))
}

func (p *Published) validate() error {
	return errors.Join(
		within("job.published.name", len(p.Name), 0, MaxPublished),
		within("job.published.revision", len(p.Revision), 0, MaxName),
		characters("job.published.name", p.Name, "._-/"),
		characters("job.published.revision", p.Revision, ""))
}

// characters refuses what a name on a hub has not: it is shown to people, and becomes part
// of an address.
func characters(field, v, also string) error {
	for _, r := range v {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(also, r) {
			return fmt.Errorf("wire: %s is %.80q: want letters, digits and %q", field, v, also)
		}
	}
	return nil
}

func (p *Plan) validate() error {
	if err := errors.Join(
		within("plan.round", p.Round, 1, 1<<62),
		within("plan.rank", p.Rank, 0, MaxRank),
		within("plan.values", p.Values, 1, MaxParams),
		within("plan.steps", p.Steps, 1, 1<<20),
		validatePrograms("plan.program", p.Programs),
		positive("plan.rate", p.Rate),
		positive("plan.clip_norm", p.ClipNorm),
		within("plan.head", len(p.Head), 0, MaxHead),
		within("plan.count_coordinates", p.CountCoordinates, 0, MaxCount),
		within("plan.count_symbol", p.CountSymbol, 0, math.MaxInt32),
		nonNegative("plan.own_noise", p.OwnNoise),
		within("plan.honest", p.Honest, 0, math.MaxInt32),
		within("plan.groups", p.Groups, 0, MaxGroups),
		within("plan.figure_coordinates", p.FigureCoordinates, 0, MaxFigures),
		within("plan.figure_symbol", p.FigureSymbol, 0, math.MaxInt32),
	); err != nil {
		return err
	}
	if (p.CountCoordinates == 0) != (p.CountSymbol == 0) {
		return fmt.Errorf("wire: plan.count_coordinates is %d and plan.count_symbol %d: both or neither", p.CountCoordinates, p.CountSymbol)
	}
	if (p.FigureCoordinates == 0) != (p.FigureSymbol == 0) {
		return fmt.Errorf("wire: plan.figure_coordinates is %d and plan.figure_symbol %d: both or neither", p.FigureCoordinates, p.FigureSymbol)
	}
	switch len(p.Seed) {
	case 8:
		if p.Slice != (Slice{}) {
			return errors.New("wire: plan has both seed and slice")
		}
		return nil
	case 0:
		return errors.Join(
			p.Slice.Blob.validate("plan.slice.blob"),
			within("plan.slice.format", len(p.Slice.Format), 1, MaxName),
			within("plan.slice.codec", len(p.Slice.Codec), 1, MaxName))
	default:
		return &LimitError{Field: "plan.seed", Have: uint64(len(p.Seed)), Least: 8, Most: 8}
	}
}

func positive(field string, v float64) error {
	if !(v > 0) || math.IsInf(v, 0) {
		return fmt.Errorf("wire: %s is %v, must be positive", field, v)
	}
	return nil
}

func nonNegative(field string, v float64) error {
	if !(v >= 0) || math.IsInf(v, 0) {
		return fmt.Errorf("wire: %s is %v, must not be negative", field, v)
	}
	return nil
}

func oneOf(field, v string, names ...string) error {
	if !slices.Contains(names, v) {
		return fmt.Errorf("wire: %s is %.32q, must be one of %q", field, v, names)
	}
	return nil
}

func unit(field string, v float64) error {
	if !(v >= 0 && v <= 1) {
		return fmt.Errorf("wire: %s is %v, must be in 0..1", field, v)
	}
	return nil
}

// bounded holds a part that another package states to its limits.
func bounded(prefix string, bounds []training.Bound) error {
	for _, b := range bounds {
		if err := within(prefix+b.Field, b.Have, b.Min, b.Max); err != nil {
			return err
		}
	}
	return nil
}
