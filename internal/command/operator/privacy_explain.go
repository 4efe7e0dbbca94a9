package operator

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/internal/terminal"
	"github.com/starling-fl/starling/job"
)

// Explained is a job in the terms of its privacy, and what follows from it.
type Explained struct {
	Name            string  `json:"name,omitempty"`
	Population      int     `json:"population"`
	SamplingRate    float64 `json:"sampling_rate"`
	Cohort          int     `json:"cohort,omitempty"` // of a fixed size
	Rounds          int     `json:"rounds"`
	NoiseMultiplier float64 `json:"noise_multiplier"`
	NoiseScale      float64 `json:"noise_scale"` // below 1: a larger cohort's noise is simulated
	SimulatedRate   float64 `json:"simulated_rate,omitempty"`
	SimulatedOf     int     `json:"simulated_population,omitempty"`
	ProviderRate    float64 `json:"provider_rate,omitempty"` // 0: devices are protected
	Hidden          bool    `json:"participation_hidden,omitempty"`
	Providers       float64 `json:"providers,omitempty"`         // expected in a device
	Adaptive        float64 `json:"adaptive_quantile,omitempty"` // of the clip norm; 0: it stays
	Shard           int     `json:"shard,omitempty"`
	// If coins choose the cohort: what is declared of it, and what follows.
	Dropout   float64       `json:"dropout,omitempty"`
	Hostile   float64       `json:"hostile,omitempty"`
	Quorum    int           `json:"quorum,omitempty"`
	Hit       float64       `json:"hit,omitempty"`
	NoiseFree float64       `json:"noise_multiplier_without_hits,omitempty"` // what the noise would be; 0: the same
	Delivered dp.Guarantee  `json:"delivered"`
	Visible   dp.Guarantee  `json:"visible"`
	Simulated *dp.Guarantee `json:"simulated,omitempty"`
	// If devices add the noise: how much each, on how many of them epsilon rests, and
	// what holds against the coordinator itself. Elsewhere against it nothing holds.
	OwnNoise   float64        `json:"own_noise,omitempty"`
	Honest     int            `json:"honest,omitempty"`
	Untrusted  *dp.Guarantee  `json:"untrusted,omitempty"`
	Statements []explainPoint `json:"statements"`

	protected int      // units of a job file; 0 if it was given as flags
	floor     float64  // part of the job's delta that its floors have
	job       *job.Job // of a job file
	quorum    job.Quorum
	cheaper   string // what of a job file would cost less noise
}

// explainPoint answers one question of a reader who has to decide.
type explainPoint struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

func newPrivacyExplainCmd(a *command.App) *cobra.Command {
	var f privacyFlags
	var jobFile string
	var simulatedOf, simulatedCohort int
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say in plain words what a job protects, from whom, and what it does not",
		Example: `  starling privacy explain --job job.yaml
  starling privacy explain --population 1000 --sampling-rate 0.1 --noise-multiplier 1.1 --rounds 200`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var e Explained
			if jobFile != "" {
				job, err := job.Load(jobFile)
				if err != nil {
					return err
				}
				e.job = &job
				e.Name, e.Shard, e.protected, e.floor = job.Name, job.Shard.Size, job.Protected(), job.FloorDelta()
				if err := e.attendance(job, &f); err != nil {
					return err
				}
				f.providerRate, f.hidden = 0, false // the job says it, no flag
				if p := job.Providers; p.Max > 0 {
					e.Providers, f.providerRate, f.hidden = p.Expected, p.SamplingRate, job.Hides()
				}
				e.Cohort = job.Cohort.Size
				if job.Clipping.Adaptive {
					e.Adaptive = job.Clipping.Quantile
				}
				f.rate, f.rounds, f.population = job.Cohort.SamplingRate, job.Rounds, job.Cohort.Population
				f.noise, f.epsilon, f.delta = job.Privacy.NoiseMultiplier, job.Privacy.Epsilon, job.Privacy.Delta
				f.accountant = job.Privacy.Accountant
				simulatedOf, simulatedCohort = job.Privacy.SimulatedPopulation, job.Privacy.SimulatedCohort
			} else {
				for _, name := range []string{"population", "sampling-rate", "rounds"} {
					if !cmd.Flags().Changed(name) {
						return command.Usagef("--job, or --population, --sampling-rate, --rounds and --noise-multiplier or --epsilon are required: --%s is missing", name)
					}
				}
			}
			if err := e.fill(&f, simulatedOf, simulatedCohort); err != nil {
				return err
			}
			return a.Emit(e, e.print)
		},
	}
	cmd.Flags().StringVar(&jobFile, "job", "", "read all of it from a job file")
	f.mechanism(cmd)
	f.noiseFlag(cmd)
	cmd.Flags().Float64Var(&f.epsilon, "epsilon", 0, "calibrate the noise multiplier to this epsilon instead")
	cmd.Flags().IntVar(&simulatedOf, "simulated-population", 0, "population whose noise is simulated")
	cmd.Flags().IntVar(&simulatedCohort, "simulated-cohort", 0, "cohort of that population")
	cmd.Flags().Lookup("curve").Hidden = true
	return cmd
}

// fill computes the guarantees of the job.
func (e *Explained) fill(f *privacyFlags, simulatedOf, simulatedCohort int) error {
	acct, err := dp.ParseAccountant(f.accountant)
	if err != nil {
		return command.Usage(err)
	}
	if f.rounds > dp.MaxRounds {
		return command.Usagef("rounds %d, want at most %d", f.rounds, dp.MaxRounds)
	}
	if f.population < 1 || f.rounds < 1 || !(f.rate > 0 && f.rate <= 1) {
		return command.Usagef("population %d, rounds %d, sampling rate %v: want at least 1, at least 1, and in (0, 1]", f.population, f.rounds, f.rate)
	}
	if (simulatedOf > 0) != (simulatedCohort > 0) || simulatedCohort > simulatedOf {
		return command.Usagef("simulated population %d with simulated cohort %d: want both or neither, the cohort the smaller", simulatedOf, simulatedCohort)
	}
	if err := f.checkUnit(); err != nil {
		return err
	}
	e.Population, e.SamplingRate, e.Rounds, e.NoiseScale = f.population, f.rate, f.rounds, 1
	e.ProviderRate, e.Hidden = f.providerRate, f.hidden
	n, rate, budgetHit := f.population, f.rate, f.hit // of the population that the budget is about
	if simulatedOf > 0 {
		n, rate = simulatedOf, float64(simulatedCohort)/float64(simulatedOf)
		e.SimulatedOf, e.SimulatedRate = n, rate
		e.NoiseScale = f.rate * float64(f.population) / float64(simulatedCohort)
		budgetHit = 0 // that population's shards are as large as it takes
		if e.NoiseScale >= 1 {
			return command.Usagef("simulated cohort %d is not above the real one, %v in expectation", simulatedCohort, f.rate*float64(f.population))
		}
	}
	if e.protected > 0 {
		n = e.protected
	}
	if f.delta == 0 {
		f.delta = dp.DefaultDelta(n)
	}
	if _, err := dp.CheckDelta(f.delta, n); err != nil {
		return command.Usage(err)
	}
	e.NoiseMultiplier = f.noise
	if e.NoiseMultiplier == 0 {
		if !(f.epsilon > 0) {
			return command.Usagef("--noise-multiplier or --epsilon is required")
		}
		budget := *f
		budget.rate, budget.delta, budget.hit = rate, f.delta-e.floor, budgetHit
		if e.job != nil && e.job.OwnNoise() {
			e.NoiseMultiplier, err = dp.CalibrateEvent(f.epsilon, budget.delta, acct, e.job.BudgetRounds(e.quorum))
		} else {
			e.NoiseMultiplier, err = budget.calibrate(acct)
		}
		if err != nil {
			return err
		}
		if budget.hit > 0 {
			budget.hit = 0
			if e.NoiseFree, err = budget.calibrate(acct); err != nil {
				return err
			}
		}
		f.noise = e.NoiseMultiplier
	}
	event := f.planned(f.rounds)
	event.NoiseScale, event.SimulatedRate = e.NoiseScale, e.SimulatedRate
	if e.job != nil && e.job.OwnNoise() {
		event.Own = e.job.Own(e.NoiseMultiplier).OwnNoise
		e.OwnNoise, e.Honest = event.Own.Multiplier, int(event.Own.Honest)
	}
	events := []dp.Event{event}
	stated := dp.Budget{Delta: f.delta, Floor: e.floor, Accountant: acct}
	if e.Delivered, err = stated.Guarantee(dp.Epsilon, events); err != nil {
		return err
	}
	if e.Visible, err = stated.Guarantee(dp.VisibleEpsilon, events); err != nil {
		return err
	}
	if simulatedOf > 0 {
		s, err := stated.Guarantee(dp.SimulatedEpsilon, events)
		if err != nil {
			return err
		}
		e.Simulated = &s
	}
	if e.OwnNoise > 0 {
		u, err := stated.Guarantee(dp.UntrustedEpsilon, events)
		if err != nil {
			return err
		}
		e.Untrusted = &u
	}
	e.Statements = e.statements()
	return nil
}

func (e *Explained) statements() []explainPoint {
	shard := "its shard"
	if e.Shard > 0 {
		shard = fmt.Sprintf("its shard of up to %d", e.Shard)
	}
	sampled := fmt.Sprintf("Each of the %d enrolled devices is in a round with probability %.4g, by a coin of its own.", e.Population, e.SamplingRate)
	if e.SamplingRate == 1 {
		sampled = fmt.Sprintf("All %d enrolled devices are asked in every round: there is no amplification by sampling.", e.Population)
	}
	if e.Cohort > 0 {
		sampled = fmt.Sprintf("%d of the %d enrolled devices in every round, drawn among those that are there. Accounts have each of them in every round: there is no amplification by sampling.", e.Cohort, e.Population)
	}
	protected := "The presence of one whole device with all of its data: the released models are almost as likely with it as without it. Not single facts that many devices share, and not statistics of the population: learning those is the purpose."
	if e.ProviderRate > 0 {
		protected = "The presence of one provider (whoever a device's documents come from) with all its documents in one device: the released models are almost as likely with it as without it. A provider whose documents lie in several devices is protected less, a device with several providers less than each of them. Not facts that many providers share: learning those is the purpose."
		if e.ProviderRate == 1 {
			sampled += " With it, all its providers are in."
		} else {
			sampled += fmt.Sprintf(" In it, each provider is in with probability %.4g, by a coin that the device flips and shows nobody.", e.ProviderRate)
		}
	}
	if e.Cohort > 0 {
		protected += " Of a device that is drawn another one is not: that it is enrolled, and when it was asked, is not hidden, only what it sent."
	}
	points := []explainPoint{
		{"What is protected?", protected},
		{"From whom?", "From everyone who sees released adapters, every round's of them, now or later, with any other knowledge and any computing power. The guarantee is: " + e.Delivered.String() + "."},
		{"How much is that?", odds(e.Delivered)},
		{"Who takes part?", sampled},
	}
	switch {
	case e.SamplingRate < 1 && e.ProviderRate > 0 && !e.Hidden:
		points = append(points, explainPoint{
			"And from someone who sees which devices took part?",
			"The same: the guarantee takes it that they are seen. All providers of a device share its coin, and the contribution of the others can show how it fell even in the released models; only the coins inside the device leave anybody in doubt. A round without the device costs its providers nothing.",
		})
	case e.SamplingRate < 1:
		sampling := "sampling does"
		if e.ProviderRate > 0 {
			sampling = "the device's coin does"
		}
		points = append(points, explainPoint{
			"And from someone who sees who took part?",
			"Less. Shard peers, the coordinator and whoever watches the network see it, and against them " + sampling + " nothing: " + e.Visible.String() + ".",
		})
	}
	if e.Quorum > 0 {
		points = append(points, explainPoint{"And when devices drop out?", e.staying()})
	}
	points = append(points,
		explainPoint{"And from the coordinator?", e.coordinator(shard)},
		explainPoint{"How is one contribution bounded?", e.bound()},
		explainPoint{"What is assumed?", "That the coordinator " + e.adds() + "draws the cohorts as it says (its ledger records both, nobody can prove it). That devices clip as they should: one that does not hurts the model or itself, and one that sends values out of range can enlarge a peer's effect; an alarm shows that, the round is charged. That a device's dropping out does not change who else drops out."},
		explainPoint{"What else leaves a device?", "No plain metric. The coordinator counts who was asked and who answered. Losses and accuracies are measured on data of the operator."},
		explainPoint{"When does it end?", fmt.Sprintf("After %d rounds. Every round is charged in the ledger in the transaction that commits the model, before anyone sees it; a round that would pass the budget is not started.", e.Rounds)},
	)
	if e.Simulated != nil {
		points = append(points, explainPoint{
			"What is simulated?",
			fmt.Sprintf("The noise is that of a cohort %.4g times as large, out of a population of %d. Models are as good as they would be there, and such a population would have: %s. Nobody who takes part in this run has that: theirs is the delivered guarantee above.", 1/e.NoiseScale, e.SimulatedOf, e.Simulated.String()),
		})
	}
	return points
}

// coordinator says what holds against the coordinator itself.
func (e *Explained) coordinator(shard string) string {
	sums := "Secure aggregation keeps single updates from the coordinator, which sees only the sum over " + shard + ". A sum over few devices, or over devices of which all but one collude with it, is no protection."
	if e.OwnNoise == 0 {
		return "Differential privacy does not protect from the coordinator: it sees the exact sum of each shard before it adds the noise, and whether it adds any rests on its word: without trust in it no epsilon holds. " + sums
	}
	return fmt.Sprintf("Each device adds noise itself, before it masks: %.4g of the clip norm. The guarantee above counts that of %d honest devices and none of the coordinator's. "+
		"Against the coordinator, which sees each shard's sum and may take a device into every round, holds: %s. If everybody else lies one update shows at most %.4g bits. ",
		e.OwnNoise, e.Honest, e.Untrusted.String(), ownBits(e.OwnNoise)) + sums
}

// adds is what is assumed of the coordinator's noise.
func (e *Explained) adds() string {
	if e.OwnNoise == 0 {
		return "adds the noise and "
	}
	return ""
}

// ownBits is the capacity of one round's update of a device that is alone with its own
// noise: that of a Gaussian channel.
func ownBits(v float64) float64 { return 1 / (2 * v * v * math.Ln2) }

// bound says how the norm of one contribution is kept and chosen.
func (e *Explained) bound() string {
	what, who := "Each device's update", "devices"
	if e.ProviderRate > 0 {
		what, who = "The update of each provider, by itself,", "providers"
	}
	s := what + " is clipped to a norm before it is masked."
	if e.Adaptive > 0 {
		s += fmt.Sprintf(" The norm follows the updates: each contribution adds one bit, whether it was within the norm, to its masked vector, and the noisy count moves the norm towards the one that %.4g %% of the %s keep to. The bit is part of the same release and of the same epsilon.", 100*e.Adaptive, who)
	}
	return s
}

// attendance takes over what a job declares of who comes and stays, and what that costs.
func (e *Explained) attendance(j job.Job, f *privacyFlags) error {
	if f.hit, f.fixed = 0, j.Fixed(); !j.Sampled() {
		return nil
	}
	q, err := j.Quorum()
	if err != nil {
		return err
	}
	e.quorum = q
	e.Dropout, e.Hostile, e.Quorum, e.Hit, f.hit = j.Cohort.Dropout, j.Shard.Corrupt, q.Ready, q.Hit, q.Hit
	if shard, with, ok := j.Cheaper(); ok {
		profile := ""
		if shard.SemiHonest && !j.Shard.SemiHonest {
			profile = ", shard.semi_honest: true, where the coordinator is trusted to follow the protocol,"
		}
		cost := "costs no noise"
		if with.Hit > 0 {
			cost = fmt.Sprintf("brings that probability to %.3g", with.Hit)
		}
		e.cheaper = fmt.Sprintf(" So does shard.size: %d%s with %d devices there: that %s.", shard.Size, profile, with.Ready, cost)
	}
	return nil
}

// staying says for which dropouts the guarantee holds, and what that costs.
func (e *Explained) staying() string {
	s := fmt.Sprintf("The guarantee holds while at most %.4g %% of a round's honest devices leave before it is over, whenever and in whatever company, and at most %.4g %% of all devices are hostile. "+
		"A shard is released where its threshold of devices stays, and if exactly one were missing, one device's coin would show. No round is drawn before %d of the %d devices are there; ",
		100*e.Dropout, 100*e.Hostile, e.Quorum, e.Population)
	if e.Hit == 0 {
		s += "then that is so unlikely that a hundredth of delta covers it."
	} else {
		s += fmt.Sprintf("then it happens in a round with probability %.3g at most, which every round is accounted with", e.Hit)
		if e.NoiseFree > 0 {
			s += fmt.Sprintf(": the noise is %.4g %% larger for it (%.6g instead of %.6g)", 100*(e.NoiseMultiplier/e.NoiseFree-1), e.NoiseMultiplier, e.NoiseFree)
		}
		s += ". A larger cohort.quorum or a smaller cohort.dropout need less." + e.cheaper
	}
	return s + " If more devices leave than that, which is tested after every round, the job pauses."
}

// odds puts an epsilon into words that need no logarithm.
func odds(g dp.Guarantee) string {
	if g.Epsilon > 20 {
		return fmt.Sprintf("Next to nothing: an epsilon of %.4g lets an observer become certain of the presence of %s. Treat this job as one without differential privacy.", g.Epsilon, protectedUnit(g.Adjacency))
	}
	return fmt.Sprintf("Whoever thought the presence of %s as likely as not can come to believe in it with at most %.4g %%, unless an event of probability %.3g happens.", protectedUnit(g.Adjacency), 100*belief(g.Epsilon), g.Delta)
}

func (e *Explained) print(w io.Writer) error {
	if e.Name != "" {
		fmt.Fprintf(w, "Job %s\n\n", e.Name)
	}
	for _, s := range e.Statements {
		fmt.Fprintf(w, "%s\n", s.Question)
		for _, line := range strings.Split(terminal.Wrap(s.Answer, 77, ""), "\n") {
			fmt.Fprintf(w, "    %s\n", line)
		}
		fmt.Fprintln(w)
	}
	return nil
}
