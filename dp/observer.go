package dp

import (
	"errors"
	"fmt"
	"math"
)

// Observer says who an epsilon holds against. Each sees all releases, now or later, and knows
// anything else; they differ in what they see of who takes part.
type Observer string

// The observers, ordered by how much they see.
const (
	// Public sees the releases, and all else that the coordinator publishes.
	Public Observer = "public"
	// Colluding is a declared share of the devices that tell each other what they see: the rosters
	// of the shards that they are in. See [Coalition].
	Colluding Observer = "coalition"
	// Participants observe participation in every round.
	Participants Observer = "participants"
	// Untrusting is the coordinator itself, which may add no noise, draw whom it wants, and sees the
	// sum of each shard. It is no budget's observer: see [OwnNoise].
	Untrusting Observer = "coordinator"
)

// ErrObserver reports an observer that does not exist.
var ErrObserver = errors.New("unknown observer")

// ParseObserver maps the name of a budget's observer to it.
func ParseObserver(name string) (Observer, error) {
	switch o := Observer(name); o {
	case Public, Colluding, Participants:
		return o, nil
	}
	return "", fmt.Errorf("dp: observer %.40q, want %q, %q or %q: %w", name, Public, Colluding, Participants, ErrObserver)
}

// Coalition is what colluding devices see of the others' coins. The zero value sees nothing.
type Coalition struct {
	Share float64 `json:"share"` // of the devices, in [0, 1)
	// Sees bounds the probability that one of them is in a given device's shard, and so learns that
	// the device's coin fell on in; in [0, 1].
	Sees float64 `json:"sees"`
}

// check holds a coalition to an event.
func (c Coalition) check(e Event) error {
	if c == (Coalition{}) {
		return nil
	}
	if !(c.Share > 0 && c.Share < 1) || !(c.Sees > 0 && c.Sees <= 1) || e.SamplingRate == 1 {
		return fmt.Errorf("dp: event of round %d: a coalition of %v that sees a coin of rate %v with probability %v: "+
			"want a share and a probability above 0, the coin below 1: %w", e.Round, c.Share, e.SamplingRate, c.Sees, ErrEvent)
	}
	return nil
}

// shows bounds the probability that an observer is shown how a member's coin fell: by a hit, or by
// a member of a coalition in its shard. The two may exclude each other: the fewer devices are drawn,
// the more likely a cohort is below its floor, and the less likely a hostile one is among them.
func (o Observer) shows(hit float64, c Coalition) float64 {
	if o != Colluding || c.Sees == 0 {
		return hit
	}
	return min(1, math.Nextafter(hit+c.Sees, 2))
}

// against says in words who an observer is, for a guarantee's text.
func (g Guarantee) against() string {
	switch g.Observer {
	case Colluding:
		return fmt.Sprintf("a coalition of %.4g %% of the devices", 100*g.Coalition)
	case Participants:
		return "those who see who takes part"
	case Untrusting:
		return "the coordinator"
	}
	return "the public"
}
