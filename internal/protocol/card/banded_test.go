package card

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/dp/accounting"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job/statement"
)

// inTurn is a job whose noise cancels between releases, and what its accountant says of it.
func inTurn(t *testing.T) (*wire.Job, Card) {
	t.Helper()
	j, _ := announced()
	j.CorruptPPM = 0
	j.Privacy.SamplingRate, j.Privacy.Separation, j.Privacy.Band, j.Privacy.Eighths, j.Privacy.NoiseMultiplier = 1, 50, 50, 4, 8
	j.Privacy.Observer = wire.ObserverParticipants
	e := dp.Rounds(dp.Mechanism{SamplingRate: 1, NoiseMultiplier: 8}, 200)
	e.Fixed, e.Banded = true, dp.Banded{Band: 50, Separation: 50, Eighths: 4, Row: 1}
	g, err := accounting.VisibleEpsilon([]dp.Event{e}, 1e-6, dp.Tight)
	if err != nil {
		t.Fatal(err)
	}
	j.Privacy.Budget = g.Epsilon
	return j, New(j, [32]byte{7}, statement.Statement{}, dp.Guarantees{Delivered: &g}, Fleet{})
}

// A card of noise that cancels holds where the accountant's number does, and no smaller one; it names
// what such noise rests on, and no audit, since none takes such a job.
func TestBandedCard(t *testing.T) {
	j, c := inTurn(t)
	if err := c.Holds(j, [32]byte{7}); err != nil {
		t.Fatal(err)
	}
	if rows := (dp.Banded{Band: 50, Separation: 50, Eighths: 4, Row: 1}); math.Sqrt(rows.Cost(200))/8 > 0.5 {
		t.Fatalf("mu is %v", math.Sqrt(rows.Cost(200))/8)
	}
	low, _ := inTurn(t)
	small := c
	small.Guarantee.Epsilons = slices.Clone(c.Guarantee.Epsilons)
	for i := range small.Guarantee.Epsilons {
		e := &small.Guarantee.Epsilons[i]
		e.Epsilon, e.Lower = e.Epsilon*.95, 0
	}
	small.Guarantee.Month.Epsilon *= .95
	if err := small.Holds(low, [32]byte{7}); err == nil || !strings.Contains(err.Error(), "epsilons of participants") {
		t.Errorf("5 %% less: %v", err)
	}
	for name, change := range map[string]func(*wire.Privacy){
		"mechanism.separation": func(p *wire.Privacy) { p.Separation = 49 },
		"mechanism.band":       func(p *wire.Privacy) { p.Band = 49 },
		"mechanism.eighths":    func(p *wire.Privacy) { p.Eighths = 5 },
	} {
		other := *j
		change(&other.Privacy)
		if err := c.Holds(&other, [32]byte{7}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var text strings.Builder
	if err := c.Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"at most one of any 50 releases", "last 49 rounds stays secret", "cancels what earlier rounds added"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "starling privacy audit") || strings.Contains(text.String(), "coin") {
		t.Errorf("it names an audit, or coins:\n%s", text.String())
	}
}
