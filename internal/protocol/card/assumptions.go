package card

import (
	"fmt"
	"strings"

	"github.com/starling-fl/starling/dp"
)

// How an audit's checks run. Their names are dp/audit's, and so are those of the flaws: a test there holds both.
const (
	auditRuns  = "starling privacy audit, by an operator, or by anybody with the job file"
	roundsRuns = "the coordinator, after every round; it pauses the job"
	deviceRuns = "each device, before it joins and in every round"
	testsRuns  = "the program's tests"
)

// audited is a check of an audit with a flaw that it found 300 times of 300.
func audited(test, flaw string) Watch {
	return Watch{Test: test, Runs: auditRuns, Flaw: flaw, Found: tries, Of: tries, Power: power, Note: "in the jobs of the program's tests"}
}

// certain is a check without chance.
func certain(test, flaw string) Watch {
	return Watch{Test: test, Runs: auditRuns, Flaw: flaw, Note: "no chance is in it"}
}

// tries is how often each flaw of an audit was planted (dp/audit, TestPower); power is what 300 of 300 mean: .05^(1/300).
const (
	tries = 300
	power = 0.9900
)

// Audited lists what the cards say of an audit's checks: the name of a check, and that of a flaw planted in a job.
func Audited() (all []Watch) {
	return []Watch{
		audited("noise, in all", "half the noise"),
		audited("noise, in all", "no noise"),
		audited("noise, in all", "noise on every second coordinate"),
		audited("noise, by coordinate", "uneven noise"),
		audited("noise, by coordinate", "no noise in one round"),
		audited("noise, between rounds", "the same noise every round"),
		audited("noise, between rounds", "the noise of ten rounds before"),
		audited("devices' own noise", "no own noise"),
		audited("size of cohorts", "twice the coin rate"),
		audited("members of cohorts", "one member in every round"),
		audited("cohorts, between rounds", "the same cohort every round"),
		audited("cohorts, between rounds", "two cohorts in turn"),
		audited("hits", "uncharged"),
		certain("norm of an extremal device", "B2 halved"),
		certain("rounds charged", "half the rounds uncharged"),
	}
}

// audits are those of some checks.
func audits(checks ...string) (out []Watch) {
	for _, w := range Audited() {
		for _, name := range checks {
			if w.Test == name {
				out = append(out, w)
			}
		}
	}
	return out
}

// assumptions lists what the card's numbers rest on.
func assumptions(c *Card) (out []Assumption) {
	m, amplified := c.Mechanism, c.Mechanism.SamplingRate < 1
	trusting := []string{string(dp.Public), string(dp.Colluding), string(dp.Participants)}
	all := append(append([]string{}, trusting...), string(dp.Untrusting))
	hidden := trusting[:2]
	add := func(of []string, what string, watches ...Watch) {
		out = append(out, Assumption{What: what, Of: of, Watches: append([]Watch{}, watches...)})
	}
	audits := audits
	composed := []Watch{{Test: "ledger, composed again", Runs: auditRuns, Note: "no chance is in it: a second accountant may find the ledger at most 1 % too low"}}
	if m.Separation > 0 {
		audits = func(...string) []Watch {
			return []Watch{{Test: "none", Runs: "nobody", Note: "an audit refuses a job whose noise cancels between rounds"}}
		}
		composed = nil
		add(trusting, "The coordinator adds noise to every sum, made of what it draws anew and of what it added before, before it decodes anything. Nobody outside can check that.", audits()...)
		add(trusting, fmt.Sprintf("A device is in at most one of any %d releases in a row.", m.Separation),
			Watch{Test: "the separation of its own rounds", Runs: deviceRuns, Note: "no chance is in it; a data set that is copied to a second device counts as two"})
		add(trusting, fmt.Sprintf("The noise of the last %d rounds stays secret: with the released adapters it shows their sums. It is in the coordinator's store and its copies.", m.Band-1),
			Watch{Test: "none", Runs: "nobody", Note: "nobody outside sees where it is"})
	} else if m.Noise == "coordinator" {
		add(trusting, "The coordinator adds the announced noise to every sum, anew, before it decodes anything. Nobody outside can check that.",
			append(audits("noise, in all", "noise, by coordinate", "noise, between rounds"),
				Watch{Test: "released after the noise", Runs: auditRuns, Note: "no chance is in it"},
				Watch{Test: "noise, within a round", Runs: auditRuns, Note: "its power was not measured"})...)
	} else {
		add(all, fmt.Sprintf("At least %d honest devices of a sum add their own noise, %.4g of the clip norm each.", m.Honest, m.OwnNoise), audits("devices' own noise")...)
	}
	if amplified {
		add(hidden, "The coordinator draws cohorts by fair coins and keeps them secret. Nobody outside can check that.",
			audits("size of cohorts", "members of cohorts", "cohorts, between rounds")...)
	}
	add(all, "Devices clip each unit's contribution to the announced norm, also of a unit made to be extreme.", audits("norm of an extremal device")...)
	add(trusting, "Every round is charged, what it cost, before anybody sees its release.",
		append(audits("rounds charged"), composed...)...)
	if amplified {
		add(trusting, "No more of a round's honest devices leave than the job declares, also where they leave together. One device's coin then tips no shard more often than is accounted.",
			append(audits("hits"), Watch{Test: "declared dropout", Runs: roundsRuns,
				Note: "it errs with a probability of .001 delta; how many rounds it takes depends on by how much more leave"})...)
	}
	if m.Corrupt > 0 || c.Guarantee.Observer == string(dp.Colluding) {
		add(all, fmt.Sprintf("At most %.4g %% of the devices collude, with the coordinator or among each other.", 100*m.Corrupt),
			Watch{Test: "rosters against the log of enrolled keys", Runs: deviceRuns, Note: "it shows invented devices by their number and age; a device that lies otherwise is not seen"})
	}
	leaving := map[string][]string{} // the observers, by what is assumed of devices that leave
	var said []string
	for _, e := range c.Guarantee.Epsilons {
		if e.Assumes != "" {
			if leaving[e.Assumes] == nil {
				said = append(said, e.Assumes)
			}
			leaving[e.Assumes] = append(leaving[e.Assumes], e.Observer)
		}
	}
	for _, what := range said {
		add(leaving[what], strings.ToUpper(what[:1])+what[1:]+".", Watch{Test: "none", Runs: "nobody", Note: "it hangs on devices' own data, which nobody else sees"})
	}
	add(all, "Noise is drawn as the discrete Gaussian that is accounted, in whole numbers, from a secure source.",
		Watch{Test: "TestSampler, TestMutation and the listed faults of internal/tools/mutants", Runs: testsRuns, Note: "each listed fault is found"})
	return out
}
