package guarantee

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

func (e *Explained) statements() []Statement {
	shard := "its shard"
	if e.Shard > 0 {
		shard = fmt.Sprintf("its shard of up to %d", e.Shard)
	}
	sampled := fmt.Sprintf("Each of the %d enrolled devices is in a round with probability %.4g, by a coin of its own.", e.Population, e.SamplingRate)
	if e.SamplingRate == 1 {
		sampled = fmt.Sprintf("All %d enrolled devices are asked in every round: sampling does not amplify.", e.Population)
	}
	if e.Cohort > 0 {
		sampled = fmt.Sprintf("%d of the %d enrolled devices in every round, drawn among those that are there. Accounts have each of them in every round: sampling does not amplify.", e.Cohort, e.Population)
	}
	if e.Separation > 0 {
		sampled = e.inTurn()
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
	points := []Statement{
		{"What is protected?", protected},
		{"From whom?", "From " + e.whom() + ", with any other knowledge and any computing power. The guarantee is: " + e.Delivered.String() + "."},
		{"How much is that?", odds(e.Delivered)},
		{"Who takes part?", sampled},
	}
	switch {
	case e.SamplingRate < 1 && e.ProviderRate > 0 && !e.Hidden:
		points = append(points, Statement{
			"And from someone who sees which devices took part?",
			"The same: the guarantee takes it that they are seen. All providers of a device share its coin, and the contribution of the others can show how it fell even in the released models; only the coins inside the device leave anybody in doubt. A round without the device costs its providers nothing.",
		})
	case e.SamplingRate < 1:
		points = append(points, e.others()...)
	}
	if e.Quorum > 0 {
		points = append(points, Statement{"And when devices drop out?", e.staying()})
	}
	points = append(points,
		Statement{"And from the coordinator?", e.coordinator(shard)},
		Statement{"How is one contribution bounded?", e.bound()},
		Statement{"What is assumed?", "That the coordinator " + e.adds() + "draws the cohorts as it says (its ledger records both, nobody can prove it). " + e.apart() + "That devices clip as they should: one that does not hurts the model or itself, and one that sends values out of range can enlarge a peer's effect; an alarm shows that, the round is charged. That a device's dropping out does not change who else drops out" + e.leaving() + "."},
		Statement{"What else leaves a device?", "No plain metric. The coordinator counts who was asked and who answered. Losses and accuracies are measured on data of the operator."},
		Statement{"When does it end?", fmt.Sprintf("After %d rounds. Every round is charged in the ledger in the transaction that commits the model, before anyone sees it; a round that would pass the budget is not started.", e.Rounds)},
	)
	if e.Simulated != nil {
		points = append(points, Statement{
			"What is simulated?",
			fmt.Sprintf("The noise is that of a cohort %.4g times as large, out of a population of %d. Models are as good as they would be there, and such a population would have: %s. Nobody who takes part in this run has that: theirs is the delivered guarantee above.", 1/e.NoiseScale, e.SimulatedOf, e.Simulated.String()),
		})
	}
	return points
}

// inTurn says how often a device takes part where noise is banded.
func (e *Explained) inTurn() string {
	who := fmt.Sprintf("%d enrolled devices", e.Population)
	if e.Cohort > 0 {
		who = fmt.Sprintf("%d of the %d enrolled devices in every round", e.Cohort, e.Population)
	}
	return fmt.Sprintf("%s, and each in at most one of any %d rounds in a row: in %d of %d rounds at most. The noise of a round cancels most of what those before it added, "+
		"as far as %d rounds reach, so that nothing hangs on hiding who takes part.", who, e.Separation, (e.Rounds+e.Separation-1)/e.Separation, e.Rounds, e.Band)
}

// apart is what is assumed of the rounds of one device where noise is banded.
func (e *Explained) apart() string {
	if e.Separation == 0 {
		return ""
	}
	return fmt.Sprintf("That no device is in two of any %d rounds in a row. That the noise of the last %d rounds stays secret: it hides what they summed. ",
		e.Separation, e.Band-1)
}

// whom says in words who the budget's observer is.
func (e *Explained) whom() string { return Whom(e.Observer, e.Delivered.Coalition) }

// Whom says in words who an observer is, of a coalition with its share of the devices.
func Whom(o dp.Observer, coalition float64) string {
	s := "everyone who sees released adapters, every round's of them, now or later"
	switch o {
	case dp.Colluding:
		return s + fmt.Sprintf(", also if %.4g %% of the devices tell whom they saw in their shards", 100*coalition)
	case dp.Participants:
		return s + ", also if they see who takes part in every round"
	}
	return s
}

// others says what holds against other observers than the budget's, and what the budget's costs.
func (e *Explained) others() []Statement {
	var out []Statement
	coin := "sampling"
	if e.ProviderRate > 0 {
		coin = "the device's coin"
	}
	if e.ForPublic > 0 {
		out = append(out, Statement{"What does it cost that coins are seen?", fmt.Sprintf(
			"The noise is %.3g times what it would be if nobody saw whose coins fell on in (%.6g instead of %.6g). "+
				"Rosters show a shard's members to each other, and in a round one of the %.4g %% that may collude is in a given device's shard with probability %.3g. "+
				"To avoid it: shard.anonymous, with which devices cannot check their shards against the log of enrolled keys; "+
				"or cohort.sampling_rate 1 with fewer rounds; or privacy.observer: public, if no coalition is feared.",
			e.NoiseMultiplier/e.ForPublic, e.NoiseMultiplier, e.ForPublic, 100*e.Hostile, e.Sees)})
	}
	if e.Observer != dp.Public {
		out = append(out, Statement{"And from those who see the releases alone?", "More: " + e.Public.String() + "."})
	}
	if e.Coalition != nil && e.Observer != dp.Colluding {
		out = append(out, Statement{"And if devices tell whom they saw in their shards?", "Less: " + e.Coalition.String() + "."})
	}
	if e.Observer != dp.Participants {
		out = append(out, Statement{"And from someone who sees who took part?",
			"Less. Shard peers, the coordinator and observers of the network see it, and against them " + coin + " does nothing: " + e.Visible.String() + "."})
	}
	return out
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

// leaving says what is assumed of a device that leaves rounds because of its data.
func (e *Explained) leaving() string {
	switch g := e.Delivered; {
	case g.LeavingDelta > 0:
		return fmt.Sprintf(", and does not depend on its own data: if it does, delta grows by %.2g, the chance that a round of this job hangs on just that device", g.LeavingDelta)
	case g.Assumes != "":
		return ", and does not depend on its own data"
	}
	return ""
}

// odds puts an epsilon into words that need no logarithm.
func odds(g dp.Guarantee) string {
	if g.Epsilon > 20 {
		return fmt.Sprintf("Next to nothing: an epsilon of %s lets an observer become certain of the presence of %s. Treat this job as one without differential privacy.", inWords(g.Epsilon), protectedUnit(g.Adjacency))
	}
	return fmt.Sprintf("An observer who thought the presence of %s as likely as not becomes at most %.4g %% sure, unless an event of probability %.3g happens.", protectedUnit(g.Adjacency), 100*belief(g.Epsilon), g.Delta)
}

func inWords(epsilon float64) string {
	if epsilon > 1000 {
		return "more than 1000"
	}
	return fmt.Sprintf("%.4g", epsilon)
}

// belief is the most that an even prior can become.
func belief(epsilon float64) float64 { return 1 / (1 + math.Exp(-epsilon)) }

// Print writes questions and answers in lines for people.
func (e *Explained) Print(w io.Writer) error {
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
