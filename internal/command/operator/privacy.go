package operator

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/command"
)

// PrivacyReport is what "privacy epsilon" and "privacy noise" print with --json.
// Epsilon is never alone: delta, adjacency, accountant and sampling are in the
// same object.
type PrivacyReport struct {
	dp.Guarantee
	SamplingRate    float64 `json:"sampling_rate"`
	NoiseMultiplier float64 `json:"noise_multiplier"`
	// ProviderRate is the coin of each provider inside its device; 0 where the
	// device is what is protected.
	ProviderRate float64 `json:"provider_rate,omitempty"`
	Hidden       bool    `json:"participation_hidden,omitempty"`
	// Visible is the same job against an adversary who sees who took part in
	// which round: amplification by sampling is gone.
	Visible *dp.Guarantee `json:"visible,omitempty"`
	// Target is the epsilon that was asked for (noise, rounds and rate).
	Target float64 `json:"target_epsilon,omitempty"`
	// RDPNoiseMultiplier is what the Rényi accountant would have asked for.
	RDPNoiseMultiplier float64 `json:"rdp_noise_multiplier,omitempty"`
	Curve              string  `json:"curve,omitempty"` // the file that was written
}

// privacyFlags are the flags that several privacy commands share.
type privacyFlags struct {
	rate, noise, delta, epsilon float64
	rdpNoise                    float64 // what the Rényi accountant would have asked for
	rounds, population          int
	accountant, curve           string
	providerRate                float64 // 0: the device is the unit
	hidden                      bool
	plots                       Plots   // what draws --curve
	hit                         float64 // probability that a coin shows by more than the sum
	fixed                       bool    // cohorts are of a fixed size
}

func newPrivacyCmd(a *command.App, p Plots) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "privacy",
		Short: "Plan, explain and audit differential privacy",
		Long: `Compute what a training run costs in privacy before it starts, say in plain
words what is protected from whom, and print what a run has spent.`,
	}
	cmd.AddCommand(newPrivacyEpsilonCmd(a, p), newPrivacyNoiseCmd(a, p), newPrivacyRoundsCmd(a, p), newPrivacyRateCmd(a, p), newPrivacySearchCmd(a), newPrivacyExplainCmd(a), newPrivacyLedgerCmd(a), newPrivacyAuditCmd(a, p))
	return cmd
}

func (f *privacyFlags) rateFlag(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.rate, "sampling-rate", 0, "probability of each device's coin in each round, over-selection included; 1: no sampling (required)")
	cmd.Flags().Float64Var(&f.providerRate, "provider-rate", 0, "protect each provider in a device, with a coin of this probability inside it, 1 for none; 0: protect devices")
	cmd.Flags().Float64Var(&f.hit, "hit", 0, "probability, in a round, that a device's coin shows by more than the sum: that its shard lacks just one (privacy explain --job computes it)")
	cmd.Flags().BoolVar(&f.hidden, "participation-hidden", false, "with --provider-rate: nothing shows which devices take part, so that their coin amplifies too; true only where each holds one provider at most")
}

func (f *privacyFlags) roundsFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.rounds, "rounds", 0, "number of rounds (required)")
}

func (f *privacyFlags) epsilonFlag(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.epsilon, "epsilon", 0, "target epsilon (required)")
}

func (f *privacyFlags) guaranteeFlags(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.delta, "delta", 0, "delta (default min(1e-6, N^-1.1) with --population, else required)")
	cmd.Flags().IntVar(&f.population, "population", 0, "number of members N, to choose or check delta")
	cmd.Flags().StringVar(&f.accountant, "accountant", "tight", `"tight" (privacy loss distributions, capped by rdp) or "rdp"`)
	cmd.Flags().StringVar(&f.curve, "curve", "", "also write epsilon over the rounds to FILE.svg, FILE.png or FILE.csv")
}

func (f *privacyFlags) noiseFlag(cmd *cobra.Command) {
	cmd.Flags().Float64Var(&f.noise, "noise-multiplier", 0, "noise standard deviation over L2 sensitivity, z (required)")
}

// mechanism adds the flags of a planned number of rounds.
func (f *privacyFlags) mechanism(cmd *cobra.Command) {
	f.rateFlag(cmd)
	f.roundsFlag(cmd)
	f.guaranteeFlags(cmd)
}

// check validates what the flags share and fills in delta.
func (f *privacyFlags) check(cmd *cobra.Command, a *command.App, required ...string) (dp.Accountant, error) {
	for _, name := range required {
		if !cmd.Flags().Changed(name) {
			return "", command.Usagef("--%s is required", name)
		}
	}
	acct, err := dp.ParseAccountant(f.accountant)
	if err != nil {
		return "", command.Usage(err)
	}
	if f.population < 0 {
		return "", command.Usagef("--population %d, want at least 1", f.population)
	}
	if !cmd.Flags().Changed("delta") {
		if f.population == 0 {
			return "", command.Usagef("--delta or --population is required")
		}
		f.delta = dp.DefaultDelta(f.population)
	}
	warning, err := dp.CheckDelta(f.delta, f.population)
	if err != nil {
		return "", command.Usage(err)
	}
	if warning != "" {
		fmt.Fprintln(a.Stderr, "warning:", warning)
	}
	for _, name := range required { // what is not required is the answer
		switch {
		case name == "rounds" && (f.rounds < 1 || f.rounds > dp.MaxRounds):
			return "", command.Usagef("--rounds %d, want 1 to %d", f.rounds, dp.MaxRounds)
		case name == "sampling-rate" && !(f.rate > 0 && f.rate <= 1):
			return "", command.Usagef("--sampling-rate %v, want in (0, 1]", f.rate)
		case name == "noise-multiplier" && !(f.noise > 0 && f.noise <= math.MaxFloat64):
			return "", command.Usagef("--noise-multiplier %v, want positive", f.noise)
		case name == "epsilon" && !(f.epsilon > 0 && f.epsilon <= math.MaxFloat64):
			return "", command.Usagef("--epsilon %v, want positive", f.epsilon)
		}
	}
	if err := f.checkUnit(); err != nil {
		return "", err
	}
	if f.curve != "" {
		if err := checkPlotName(f.plots, "curve", f.curve, "svg", "png", "csv"); err != nil {
			return "", err
		}
	}
	return acct, nil
}

func (f *privacyFlags) checkUnit() error {
	if !(f.providerRate >= 0 && f.providerRate <= 1) {
		return command.Usagef("--provider-rate %v, want in [0, 1]", f.providerRate)
	}
	if f.hidden && f.providerRate == 0 {
		return command.Usagef("--participation-hidden is about providers: give --provider-rate")
	}
	return nil
}

// group is how providers are sampled; only where providerRate is set.
func (f *privacyFlags) group() dp.GroupSampling {
	return dp.GroupSampling{ClientRate: f.rate, ProviderRate: f.providerRate, Hidden: f.hidden}
}

// planned is a number of rounds of the flags' job.
func (f *privacyFlags) planned(rounds int) dp.Event {
	e := dp.Rounds(dp.Mechanism{SamplingRate: f.rate, NoiseMultiplier: f.noise}, rounds)
	if f.providerRate > 0 {
		e = f.group().Rounds(f.noise, rounds)
	}
	e.Hit, e.Fixed = f.hit, f.fixed
	return e
}

// account fills a report for the flags' job.
func (f *privacyFlags) account(acct dp.Accountant) (PrivacyReport, error) {
	r := PrivacyReport{SamplingRate: f.rate, NoiseMultiplier: f.noise, ProviderRate: f.providerRate, Hidden: f.hidden,
		Target: f.epsilon, RDPNoiseMultiplier: f.rdpNoise}
	events := []dp.Event{f.planned(f.rounds)}
	var err error
	if r.Guarantee, err = dp.Epsilon(events, f.delta, acct); err != nil {
		if errors.Is(err, dp.ErrEvent) {
			return r, command.Usage(err)
		}
		return r, err
	}
	if f.rate < 1 && r.Sampling != dp.SamplingVisible {
		v, err := dp.VisibleEpsilon(events, f.delta, acct)
		if err != nil {
			return r, err
		}
		r.Visible = &v
	}
	return r, nil
}

func newPrivacyEpsilonCmd(a *command.App, p Plots) *cobra.Command {
	f := privacyFlags{plots: p}
	cmd := &cobra.Command{
		Use:   "epsilon",
		Short: "The epsilon of a number of rounds",
		Example: `  starling privacy epsilon --sampling-rate 0.01 --noise-multiplier 1 --rounds 2000 --delta 1e-6
  starling privacy epsilon --sampling-rate 0.01 --noise-multiplier 1 --rounds 2000 --population 1000000 --curve epsilon.svg
  starling privacy epsilon --sampling-rate 0.2 --provider-rate 0.5 --noise-multiplier 1 --rounds 100 --delta 1e-5`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			acct, err := f.check(cmd, a, "sampling-rate", "noise-multiplier", "rounds")
			if err != nil {
				return err
			}
			return f.report(a, acct, "")
		},
	}
	f.mechanism(cmd)
	f.noiseFlag(cmd)
	return cmd
}

// report prints an answer, where one was looked for, and the guarantee that goes
// with it.
func (f *privacyFlags) report(a *command.App, acct dp.Accountant, answer string) error {
	r, err := f.account(acct)
	if err != nil {
		return err
	}
	if err := f.writeCurve(&r, acct); err != nil {
		return err
	}
	return a.Emit(r, func(w io.Writer) error {
		if _, err := io.WriteString(w, answer); err != nil {
			return err
		}
		return printPrivacy(w, r)
	})
}

// protectedUnit is what the worlds that a guarantee compares differ in.
func protectedUnit(adjacency string) string {
	if adjacency == dp.AdjacencyProvider {
		return "one provider in a device"
	}
	return "one device"
}

// printPrivacy prints the guarantee, and what becomes of it where who took
// part is seen.
func printPrivacy(w io.Writer, r PrivacyReport) error {
	fmt.Fprintf(w, "epsilon           %.6g\n", r.Epsilon)
	if r.Accountant == dp.Tight {
		fmt.Fprintf(w, "  at least        %.6g (lower bound of the same accountant)\n", r.EpsilonLower)
	}
	if r.Accountant == dp.Tight && r.Epsilon > 1.001*r.EpsilonLower {
		fmt.Fprintf(w, "  note            the bounds are %.2g %% apart: rates this small are not resolved further;\n                  the truth may be lower by that much, never higher\n", 100*(r.Epsilon/r.EpsilonLower-1))
	}
	fmt.Fprintf(w, "delta             %.3g\n", r.Delta)
	fmt.Fprintf(w, "adjacency         %s\n", r.Adjacency)
	fmt.Fprintf(w, "accountant        %s (rdp alone: %.6g at order %.5g)\n", r.Accountant, r.RDPEpsilon, r.RDPOrder)
	fmt.Fprintf(w, "sampling          %s\n", r.Sampling)
	fmt.Fprintf(w, "rounds            %d\n", r.Rounds)
	if r.Visible != nil {
		sampling := "sampling"
		if r.ProviderRate > 0 {
			sampling = "the device's coin"
		}
		fmt.Fprintf(w, "\nAgainst someone who sees who took part in which round (shard peers, the\nnetwork), %s protects nobody and the same job is\n", sampling)
		fmt.Fprintf(w, "epsilon           %.6g at delta %.3g, %s adjacency, %s accountant\n", r.Visible.Epsilon, r.Visible.Delta, r.Visible.Adjacency, r.Visible.Accountant)
	}
	if r.Hidden {
		fmt.Fprint(w, "\n--participation-hidden holds only where each device has one provider at most: the\nsum of its others shows in the released model that a device took part.\n")
	}
	fmt.Fprintf(w, "\nProtected: the presence of %s, from whoever sees released models. Not from\nthe coordinator, which sees exact sums. \"starling privacy explain\" says more.\n", protectedUnit(r.Adjacency))
	if r.Curve != "" {
		fmt.Fprintf(w, "curve             %s\n", r.Curve)
	}
	return nil
}
