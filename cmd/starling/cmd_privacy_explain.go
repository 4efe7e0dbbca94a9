package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dp"
)

// explained is a job in the terms of its privacy, and what follows from it.
type explained struct {
	Name            string         `json:"name,omitempty"`
	Population      int            `json:"population"`
	SamplingRate    float64        `json:"sampling_rate"`
	Rounds          int            `json:"rounds"`
	NoiseMultiplier float64        `json:"noise_multiplier"`
	NoiseScale      float64        `json:"noise_scale"` // below 1: a larger cohort's noise is simulated
	SimulatedRate   float64        `json:"simulated_rate,omitempty"`
	SimulatedOf     int            `json:"simulated_population,omitempty"`
	Shard           int            `json:"shard,omitempty"`
	Delivered       dp.Guarantee   `json:"delivered"`
	Visible         dp.Guarantee   `json:"visible"`
	Simulated       *dp.Guarantee  `json:"simulated,omitempty"`
	Statements      []explainPoint `json:"statements"`
}

// explainPoint answers one question of a reader who has to decide.
type explainPoint struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

func newPrivacyExplainCmd(a *app) *cobra.Command {
	var f privacyFlags
	var jobFile string
	var simulatedOf, simulatedCohort int
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say in plain words what a job protects, from whom, and what it does not",
		Example: `  starling privacy explain --job job.yaml
  starling privacy explain --population 1000 --sampling-rate 0.1 --noise-multiplier 1.1 --rounds 200`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var e explained
			if jobFile != "" {
				job, err := coordinator.LoadJob(jobFile)
				if err != nil {
					return err
				}
				e.Name, e.Shard = job.Name, job.Shard.Size
				f.rate, f.rounds, f.population = job.Cohort.SamplingRate, job.Rounds, job.Cohort.Population
				f.noise, f.epsilon, f.delta = job.Privacy.NoiseMultiplier, job.Privacy.Epsilon, job.Privacy.Delta
				f.accountant = job.Privacy.Accountant
				simulatedOf, simulatedCohort = job.Privacy.SimulatedPopulation, job.Privacy.SimulatedCohort
			} else {
				for _, name := range []string{"population", "sampling-rate", "rounds"} {
					if !cmd.Flags().Changed(name) {
						return usagef("--job, or --population, --sampling-rate, --rounds and --noise-multiplier or --epsilon are required: --%s is missing", name)
					}
				}
			}
			if err := e.fill(&f, simulatedOf, simulatedCohort); err != nil {
				return err
			}
			return a.emit(e, e.print)
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
func (e *explained) fill(f *privacyFlags, simulatedOf, simulatedCohort int) error {
	acct, err := dp.ParseAccountant(f.accountant)
	if err != nil {
		return usageError{err}
	}
	if f.population < 1 || f.rounds < 1 || !(f.rate > 0 && f.rate <= 1) {
		return usagef("population %d, rounds %d, sampling rate %v: want at least 1, at least 1, and in (0, 1]", f.population, f.rounds, f.rate)
	}
	if (simulatedOf > 0) != (simulatedCohort > 0) || simulatedCohort > simulatedOf {
		return usagef("simulated population %d with simulated cohort %d: want both or neither, the cohort the smaller", simulatedOf, simulatedCohort)
	}
	e.Population, e.SamplingRate, e.Rounds, e.NoiseScale = f.population, f.rate, f.rounds, 1
	n, rate := f.population, f.rate // of the population that the budget is about
	if simulatedOf > 0 {
		n, rate = simulatedOf, float64(simulatedCohort)/float64(simulatedOf)
		e.SimulatedOf, e.SimulatedRate = n, rate
		e.NoiseScale = f.rate * float64(f.population) / float64(simulatedCohort)
		if e.NoiseScale >= 1 {
			return usagef("simulated cohort %d is not above the real one, %v in expectation", simulatedCohort, f.rate*float64(f.population))
		}
	}
	delta := f.delta
	if delta == 0 {
		delta = dp.DefaultDelta(n)
	}
	if _, err := dp.CheckDelta(delta, n); err != nil {
		return usageError{err}
	}
	e.NoiseMultiplier = f.noise
	if e.NoiseMultiplier == 0 {
		if !(f.epsilon > 0) {
			return usagef("--noise-multiplier or --epsilon is required")
		}
		if e.NoiseMultiplier, err = dp.CalibrateNoise(f.epsilon, delta, rate, f.rounds, acct); err != nil {
			return err
		}
	}
	event := dp.Rounds(dp.Mechanism{SamplingRate: f.rate, NoiseMultiplier: e.NoiseMultiplier}, f.rounds)
	event.NoiseScale, event.SimulatedRate = e.NoiseScale, e.SimulatedRate
	events := []dp.Event{event}
	if e.Delivered, err = dp.Epsilon(events, delta, acct); err != nil {
		return err
	}
	if e.Visible, err = dp.VisibleEpsilon(events, delta, acct); err != nil {
		return err
	}
	if simulatedOf > 0 {
		s, err := dp.SimulatedEpsilon(events, delta, acct)
		if err != nil {
			return err
		}
		e.Simulated = &s
	}
	e.Statements = e.statements()
	return nil
}

func (e *explained) statements() []explainPoint {
	shard := "its shard"
	if e.Shard > 0 {
		shard = fmt.Sprintf("its shard of up to %d", e.Shard)
	}
	sampled := fmt.Sprintf("Each of the %d enrolled devices is in a round with probability %.4g, by a coin of its own.", e.Population, e.SamplingRate)
	if e.SamplingRate == 1 {
		sampled = fmt.Sprintf("All %d enrolled devices are asked in every round: there is no amplification by sampling.", e.Population)
	}
	points := []explainPoint{
		{"What is protected?", "The presence of one whole device with all of its data: the released models are almost as likely with it as without it. Not single facts that many devices share, and not statistics of the population: learning those is the purpose."},
		{"From whom?", "From everyone who sees released adapters, every round's of them, now or later, with any other knowledge and any computing power. The guarantee is: " + e.Delivered.String() + "."},
		{"How much is that?", odds(e.Delivered)},
		{"Who takes part?", sampled},
	}
	if e.SamplingRate < 1 {
		points = append(points, explainPoint{
			"And from someone who sees who took part?",
			"Less. Shard peers, the coordinator and whoever watches the network see it, and against them sampling does nothing: " + e.Visible.String() + ".",
		})
	}
	points = append(points,
		explainPoint{"And from the coordinator?", "Differential privacy does not protect from the coordinator: it sees the exact sum of each shard before it adds the noise. Secure aggregation does: it keeps single updates from the coordinator, which sees only the sum over " + shard + ". A sum over few devices, or over devices of which all but one collude with it, is no protection."},
		explainPoint{"What is assumed?", "That the coordinator adds the noise and draws the cohorts as it says (its ledger records both, nobody can prove it). That devices clip as they should: one that does not hurts the model or itself, and one that sends values out of range can enlarge a peer's effect; an alarm shows that, the round is charged. That a device's dropping out does not change who else drops out."},
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

// odds puts an epsilon into words that need no logarithm.
func odds(g dp.Guarantee) string {
	if g.Epsilon > 20 {
		return fmt.Sprintf("Next to nothing: an epsilon of %.4g lets an observer become certain of a device's presence. Treat this job as one without differential privacy.", g.Epsilon)
	}
	return fmt.Sprintf("Whoever thought a device's presence as likely as not can come to believe in it with at most %.4g %%, unless an event of probability %.3g happens.", 100*belief(g.Epsilon), g.Delta)
}

func (e *explained) print(w io.Writer) error {
	if e.Name != "" {
		fmt.Fprintf(w, "Job %s\n\n", e.Name)
	}
	for _, s := range e.Statements {
		fmt.Fprintf(w, "%s\n", s.Question)
		for _, line := range wrapText(s.Answer, 76) {
			fmt.Fprintf(w, "    %s\n", line)
		}
		fmt.Fprintln(w)
	}
	return nil
}
