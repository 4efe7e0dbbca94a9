package card

import (
	"encoding/hex"
	"fmt"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job/statement"
)

// New makes the card of an announced job. task is its TaskID, zero for a job that nobody runs yet; numbers are what its
// accountant says of all its rounds; fleet is what bounds all jobs of the coordinator together, zero if nothing does.
func New(j *wire.Job, task [32]byte, asks statement.Statement, numbers dp.Guarantees, fleet Fleet) Card {
	c := Card{Version: version, Job: j.Name, Mechanism: mechanism(j), Exposure: exposure(j), NotCovered: notCovered(j)}
	if task != [32]byte{} {
		c.ID = hex.EncodeToString(task[:])
	}
	if !asks.IsZero() {
		c.Asks = &asks
	}
	c.Guarantee = guarantee(j, numbers)
	budget := c.Guarantee.budget()
	c.Guarantee.Month = Month{Rounds: c.Guarantee.Rounds, Epsilon: budget.Epsilon, Delta: budget.Delta,
		Why: "The job names no pace, so that all of its rounds may fall into 30 days."}
	if fleet.Why = "The coordinator stops all jobs of a pool when they have cost this together, against a coalition."; fleet.Epsilon == 0 {
		fleet.Why = "The coordinator has no budget over several jobs. A device in two of them spends both, and the limits of its owner bound what all take."
	}
	c.Guarantee.Fleet = fleet
	c.Assumptions = assumptions(&c)
	return c
}

// mechanism copies what is announced.
func mechanism(j *wire.Job) Mechanism {
	p := j.Privacy
	m := Mechanism{
		Name:  "clipped updates, summed by secure aggregation, and discrete Gaussian noise, exact in whole numbers, in every round",
		Noise: p.Noise, NoiseMultiplier: p.NoiseMultiplier, OwnNoise: p.OwnNoise, Honest: p.Honest, ClipNorm: j.ClipNorm,
		SamplingRate: p.SamplingRate, ProviderRate: j.ProviderRate, Providers: j.Providers, Groups: j.Groups,
		Population: p.Population, Rounds: j.Rounds, Budget: p.Budget, Delta: p.Delta, Observer: p.Observer, Accountant: p.Accountant,
		Simulated: p.Simulated, ShardFloor: j.ShardFloor, ShardMax: j.ShardMax, Corrupt: float64(j.CorruptPPM) / 1e6, BreachBits: j.BreachBits,
		SemiHonest: j.SemiHonest, Logged: j.LogKey != [32]byte{},
		Separation: p.Separation, Band: p.Band, Eighths: p.Eighths,
	}
	if m.Separation > 0 {
		m.Name = "clipped updates, summed by secure aggregation, and discrete Gaussian noise, exact in whole numbers, in every round: most of it cancels what earlier rounds added"
	}
	if m.Noise == wire.NoiseCentral {
		m.Noise = "coordinator"
	}
	return m
}

// guarantee lists the observers. dp.Guarantees leaves out what is the same as another's.
func guarantee(j *wire.Job, g dp.Guarantees) Guarantee {
	out := Guarantee{Unit: unit(j), Rounds: int(j.Rounds), Budget: j.Privacy.Budget, Observer: j.Privacy.Observer, Simulated: j.Privacy.Simulated}
	first := func(all ...*dp.Guarantee) *dp.Guarantee {
		for _, g := range all {
			if g != nil {
				return g
			}
		}
		return &dp.Guarantee{}
	}
	delivered := first(g.Delivered)
	out.Adjacency = delivered.Adjacency
	var coalition, visible *dp.Guarantee
	switch delivered.Observer {
	case dp.Colluding:
		coalition = delivered
	case dp.Participants:
		visible = delivered
	}
	public := first(g.Public, delivered)
	coalition = first(g.Coalition, coalition, public)
	visible = first(g.Visible, visible, coalition)
	sees := fmt.Sprintf("the same, and what %.4g %% of the devices tell of the rosters of their shards", float64(j.CorruptPPM)/1e4)
	if j.LogKey == [32]byte{} {
		sees += ", which name nobody"
	}
	for _, o := range []struct {
		who    dp.Observer
		sees   string
		g      *dp.Guarantee
		trusts bool
	}{
		{dp.Public, "all that is released and published, in all rounds", public, true},
		{dp.Colluding, sees, coalition, true},
		{dp.Participants, "the same, and who takes part in each round", visible, true},
		{dp.Untrusting, "the sum of each shard; it may add no noise and draw a device in every round", g.Untrusted, false},
	} {
		e := Epsilon{Observer: string(o.who), Sees: o.sees, Trusts: o.trusts}
		if e.None = o.g == nil; !e.None {
			e.Epsilon, e.Lower, e.Delta = o.g.Epsilon, o.g.EpsilonLower, o.g.Delta
			e.Accountant, e.Sampling, e.Assumes = string(o.g.Accountant), o.g.Sampling, o.g.Assumes
		}
		out.Epsilons = append(out.Epsilons, e)
	}
	return out
}

// unit is whose presence the job hides.
func unit(j *wire.Job) string {
	if j.Providers > 0 {
		return "provider"
	}
	return "device"
}

// budget is what holds against the budget's observer.
func (g *Guarantee) budget() (found Epsilon) {
	for _, e := range g.Epsilons {
		if e.Observer == g.Observer {
			return e
		}
	}
	return found
}

func exposure(j *wire.Job) []string {
	out := []string{
		"One vector a round leaves a device: what training changed, clipped, quantized and masked. No example, label or loss does.",
		fmt.Sprintf("The coordinator sees sums of at least %d devices, who takes part, and when.", j.ShardFloor),
		"Everybody sees the adapter that each round releases.",
	}
	if j.HeldOut > 0 {
		out = append(out, fmt.Sprintf("A share of %.4g of the examples is scored; the scores are part of the same vector and of the same epsilon.", j.HeldOut))
	}
	if j.Privacy.OwnNoise > 0 {
		return append(out, fmt.Sprintf("If everybody else lies, the vector holds the device's own noise, %.4g of the clip norm, and no other.", j.Privacy.OwnNoise))
	}
	return append(out, "If everybody else lies, nothing but clipping and rounding is between the vector and its reader.")
}

func notCovered(j *wire.Job) []string {
	out := []string{
		"facts that many devices share: learning these is the purpose",
		"that a device is enrolled, and when it trains, from the network and the coordinator",
		"what other coordinators' jobs learn of the same data",
		"time: a slow device makes a round longer",
	}
	if j.Privacy.Simulated {
		out = append(out, "the devices of this job, by the budget: it is a larger population's")
	}
	return out
}
