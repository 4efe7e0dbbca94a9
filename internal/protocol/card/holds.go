package card

import (
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Holds returns what of the card contradicts the announced job, or itself, by the name of the field.
func (c *Card) Holds(j *wire.Job, task [32]byte) error {
	contradicts := func(field string, says, job any) error {
		return fmt.Errorf("%w: it contradicts the job: %s is %v in the card, and %v in the announcement", ErrCard, field, says, job)
	}
	if id := hex.EncodeToString(task[:]); c.ID != id {
		return contradicts("id", c.ID, id)
	}
	if c.Job != j.Name {
		return contradicts("job", c.Job, j.Name)
	}
	want := mechanism(j)
	says, announced := reflect.ValueOf(c.Mechanism), reflect.ValueOf(want)
	for i := range says.NumField() {
		if a, b := says.Field(i).Interface(), announced.Field(i).Interface(); a != b {
			name, _, _ := strings.Cut(says.Type().Field(i).Tag.Get("json"), ",")
			return contradicts("mechanism."+name, a, b)
		}
	}
	return c.Guarantee.holds(j)
}

// leastDelta is the least delta of the job's rounds at eps, against those who see who takes part.
func leastDelta(j *wire.Job, eps float64) float64 {
	p, rounds := j.Privacy, int(min(j.Rounds, dp.MaxRounds))
	if b := mechanism(j).banded(); b != (dp.Banded{}) && rounds > 0 && p.NoiseMultiplier > 0 {
		return gaussianDelta(eps, math.Sqrt(b.Cost(uint32(rounds)))/p.NoiseMultiplier)
	}
	return seenDelta(p.SamplingRate, p.NoiseMultiplier, rounds, eps)
}

// slack is what two accountants' bounds of the same rounds may differ by.
const slack = 1e-2

func (g *Guarantee) holds(j *wire.Job) error {
	wrong := func(field, format string, args ...any) error {
		return fmt.Errorf("%w: it contradicts itself or the job: guarantee.%s %s", ErrCard, field, fmt.Sprintf(format, args...))
	}
	p := j.Privacy
	switch {
	case g.Unit != unit(j):
		return wrong("unit", "is %.40q, the job protects each %s", g.Unit, unit(j))
	case uint64(max(0, g.Rounds)) != j.Rounds:
		return wrong("rounds", "is %d, the job announces %d", g.Rounds, j.Rounds)
	case g.Budget != p.Budget || g.Observer != p.Observer || g.Simulated != p.Simulated:
		return wrong("budget", "is %v against %.40q, simulated: %v; the job's is %v against %q, simulated: %v", g.Budget, g.Observer, g.Simulated, p.Budget, p.Observer, p.Simulated)
	}
	order := []dp.Observer{dp.Public, dp.Colluding, dp.Participants, dp.Untrusting}
	if len(g.Epsilons) != len(order) {
		return wrong("epsilons", "has %d, want one for each of %v", len(g.Epsilons), order)
	}
	for i, e := range g.Epsilons {
		field := fmt.Sprintf("epsilons of %s", order[i])
		last := e.Observer == string(dp.Untrusting)
		switch {
		case e.Observer != string(order[i]):
			return wrong("epsilons", "has %.40q where %q is expected", e.Observer, order[i])
		case e.Trusts == last:
			return wrong(field, "says of trust in the coordinator: %v", e.Trusts)
		case e.None && !last:
			return wrong(field, "says that nothing holds")
		case e.None != (last && !(p.OwnNoise > 0)) && last:
			return wrong(field, "says that nothing holds: %v; devices add noise of %v", e.None, p.OwnNoise)
		case e.None:
		case !(e.Epsilon >= 0 && e.Epsilon < math.MaxFloat64 && e.Lower >= 0 && e.Lower <= e.Epsilon):
			return wrong(field, "is %v, at least %v", e.Epsilon, e.Lower)
		case e.Delta != p.Delta:
			return wrong(field, "is at delta %v, the job's is %v", e.Delta, p.Delta)
		case i > 0 && !last && g.Epsilons[i-1].Epsilon > e.Epsilon*(1+slack):
			return wrong(field, "is %v: less than %v, which holds against who sees less", e.Epsilon, g.Epsilons[i-1].Epsilon)
		}
	}
	if e := g.budget(); !p.Simulated && e.Epsilon > p.Budget*(1+slack) {
		return wrong("epsilons of "+g.Observer, "is %v, above the budget of %v", e.Epsilon, p.Budget)
	}
	// What needs no accountant: with coins that are seen, the rounds of a device are Gaussian.
	if least := g.Epsilons[2].Epsilon; j.Providers == 0 && leastDelta(j, least*(1+slack)) > p.Delta {
		return wrong("epsilons of participants", "is %v: at the announced noise of %v over %d rounds it is more", least, p.NoiseMultiplier, j.Rounds)
	}
	if m := g.Month; m.Rounds < 1 || m.Rounds > g.Rounds || !(m.Epsilon >= 0 && m.Epsilon <= g.budget().Epsilon) {
		return wrong("month", "is %d rounds of epsilon %v", m.Rounds, m.Epsilon)
	}
	if f := g.Fleet; !(f.Epsilon >= 0 && f.Epsilon < math.MaxFloat64 && f.Delta >= 0 && f.Delta < 1) {
		return wrong("fleet", "is epsilon %v at delta %v", f.Epsilon, f.Delta)
	}
	return nil
}
