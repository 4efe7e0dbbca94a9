// Package round implements one round of federated training as a pure state machine.
//
// It decides who is waited for, when a state closes, which shards survive, and what must be on disk
// before anything is said. It never sees a tensor, a clock, a socket or a key. Like raft's Node it
// is driven from outside: the coordinator passes each [Event] to [Machine.Take] and carries out the
// returned [Effect] values in their order, some of which are answered by another event:
//
//	m, err := round.New(cfg)
//	...
//	effects := m.Take(round.Start{})
//	for _, e := range effects {
//		switch e := e.(type) {
//		case round.Await: // arm a timer, which later yields round.Deadline
//		case round.PersistIntent: // write to disk, then m.Take(round.Stored{Shard: round.Whole})
//		}
//	}
//
// The turns are those of Bonawitz et al. (CCS 2017, figure 4), with a gathering state before them
// and a releasing state after them.
//
// Rules that hold whatever the events:
//
//   - Every state has a deadline and never waits for a single device: it closes at its
//     deadline, or when every device in it has answered or is lost, never at a number
//     of devices.
//   - Until the cohort is cut into shards it moves from state to state as a whole and
//     needs a quorum. From then on each shard advances on its own and needs its
//     threshold; no shard waits for another, except in Releasing, which begins when
//     every shard has revealed or failed. Once enough shards have revealed, the others
//     get a grace period for each of their remaining states, so that a slow device
//     harms itself and neither its shard nor the round.
//   - U1 contains U2 contains U3 contains U4: a device that misses a turn is out for
//     the rest of the round.
//   - A shard's survivor set is stored before it is announced.
//   - The intent to unmask is stored once, before the first message of any shard that
//     lets anyone unmask. Before it, a round may be abandoned and costs no privacy
//     budget; after it, the round is released or charged. The cost is fixed before the
//     round starts: noise and denominator do not depend on how many shards are
//     released, so a failing shard never changes the cost.
//   - A cohort drawn below the floor goes straight to releasing: noise only.
//   - If coins drew the cohort (Config.Drawn), the draw is the intent: no end is free
//     of charge, and a cohort of which too few are present or send keys is released as
//     noise only, as if it had been drawn too small. A device lost after Gathering
//     stays lost, and no shard is hurried by others: whether a device is in the sum
//     depends on itself and on its shard's threshold, and on nobody's slowness.
//   - A shard below its threshold fails alone.
//
// Threat model: devices are hostile and may send any turn at any time, twice or never; such a
// message yields Reject and changes nothing. The coordinator's own driver is trusted; driver errors
// (an effect answered out of order) panic.
package round

import (
	"fmt"
	"slices"
	"time"
)

// Device is the coordinator's handle of an enrolled identity.
type Device int

// State is a state of the round, or of a shard in it. Gathering to Unmasking name
// a turn, too: the message of a device that the state waits for.
type State uint8

// The states in their order. Every round ends in Done or Abandoned.
const (
	Gathering  State = iota // waiting for the drawn cohort to be present
	Keying                  // assigned; waiting for turn 1, the round's public keys
	Sharing                 // shards cut; waiting for turn 2, the sealed shares
	Collecting              // devices train; waiting for turn 3, the masked updates
	Confirming              // survivors announced; waiting for turn 4, the signatures
	Unmasking               // intent stored; waiting for turn 5, the revealed shares
	Releasing               // the sum is noised, applied and committed
	Done
	Abandoned
	numStates
)

var stateNames = [numStates]string{
	"gathering", "keying", "sharing", "collecting", "confirming",
	"unmasking", "releasing", "done", "abandoned",
}

func (s State) String() string {
	if s < numStates {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Waits reports whether s waits for devices.
func (s State) Waits() bool { return s <= Unmasking }

// Limit bounds a waiting state.
type Limit struct {
	// Timeout after which the state closes with those that have answered.
	Timeout time.Duration
	// Quorum is the number of devices that must have answered when the cohort's
	// Gathering or Keying closes; with fewer the round is abandoned. From Sharing on
	// the shards' thresholds decide.
	Quorum int
}

// Config is the round's data, fixed before it starts.
type Config struct {
	// Cohort lists the drawn devices, one coin each; none is added later.
	Cohort []Device
	// Floor is the least cohort that is asked for updates.
	Floor int
	// Drawn says that coins chose the cohort, and that the round's cost was stored with the draw.
	// If such a round could be dropped and drawn again, released cohorts would contain more often a
	// device that made them large enough.
	Drawn bool
	// Limits are the deadlines of Gathering to Unmasking.
	Limits [Unmasking + 1]Limit
	// Enough is the fraction of the shards that have not failed, in (0, 1], that must have revealed
	// before the others are hurried; with 1 none is.
	Enough float64
	// Grace is the time left to a shard's state once the round hurries.
	Grace time.Duration
}

// Shard is a group that masks among itself.
type Shard struct {
	Members   []Device
	Threshold int // answers needed in each turn from Sharing on
}

type member struct {
	answered State // the last turn answered; valid if any
	any      bool  // whether a turn was answered
	lost     bool  // not connected: does not hold a state open
	expelled bool  // lost for good
	out      bool  // missed a turn
	excused  bool  // its shard failed while it was there
	group    *group
}

// gone reports whether a device is missing.
func (mb *member) gone() bool { return mb.out || mb.lost }

// group is who goes from state to state together: the cohort, then each shard.
type group struct {
	index     int
	order     []Device // ascending: effects are deterministic
	threshold int
	state     State // Releasing: has revealed
	failed    bool
	storing   bool // a Persist effect was given; waiting for Stored

	// Of the members that are not out: how many have answered the present state, and
	// how many hold it open, having neither answered nor been lost.
	answered, open int
}

// Machine is one round. It is not safe for concurrent use: one goroutine owns it.
type Machine struct {
	cfg     Config
	started bool
	end     State // Done or Abandoned, once it is
	members map[Device]*member
	cohort  group
	shards  []*group
	at      [numStates]int // shards that have not failed, by state
	gone    int            // members that are out or lost
	absent  int            // of them, those that never were present
	failure string         // why a shard failed last

	cutting bool // Cut was asked for; waiting for Sharded
	asked   bool // PersistIntent was given: the round counts, whatever happens
	charged bool // the intent is stored
	hurried bool // enough shards have revealed
}

// New checks the configuration and returns a machine that waits for Start.
func New(cfg Config) (*Machine, error) {
	m := &Machine{cfg: cfg, members: make(map[Device]*member, len(cfg.Cohort))}
	m.cohort = group{index: Whole, order: slices.Sorted(slices.Values(cfg.Cohort)), open: len(cfg.Cohort)}
	for _, d := range cfg.Cohort {
		if m.members[d] != nil {
			return nil, fmt.Errorf("round: device %d is in the cohort twice", d)
		}
		m.members[d] = &member{group: &m.cohort}
	}
	if cfg.Floor < 1 {
		return nil, fmt.Errorf("round: floor is %d, must be at least 1", cfg.Floor)
	}
	for s := Gathering; s <= Unmasking; s++ {
		if l := cfg.Limits[s]; l.Timeout <= 0 || l.Quorum < 1 && s < Sharing {
			return nil, fmt.Errorf("round: %v has timeout %v and quorum %d, both must be positive", s, l.Timeout, l.Quorum)
		}
	}
	if !(cfg.Enough > 0 && cfg.Enough <= 1) {
		return nil, fmt.Errorf("round: enough is %v, must be in (0, 1]", cfg.Enough)
	}
	if cfg.Drawn && cfg.Enough < 1 {
		return nil, fmt.Errorf("round: enough is %v in a drawn round, must be 1: one device's shard would decide when others are hurried", cfg.Enough)
	}
	if cfg.Grace <= 0 && cfg.Enough < 1 {
		return nil, fmt.Errorf("round: grace is %v, must be positive", cfg.Grace)
	}
	return m, nil
}

// State returns the state of the slowest shard.
func (m *Machine) State() State {
	switch {
	case m.end != 0:
		return m.end
	case m.shards == nil:
		return m.cohort.state
	}
	for s, n := range m.at {
		if n > 0 {
			return State(s)
		}
	}
	return Releasing // no shard lives; seen only within Take
}

// Charged reports whether the round must be paid for: its intent is stored, or was stored with the
// draw.
func (m *Machine) Charged() bool { return m.charged || m.cfg.Drawn }

// Counts returns the number of devices that are still in the round, of those that were in it and
// are out or lost, and of those that never were in it: a device that has left for good is drawn all
// the same.
func (m *Machine) Counts() (in, dropped, absent int) {
	return len(m.members) - m.gone, m.gone - m.absent, m.absent
}

// Shard returns the index of the device's shard, or Whole.
func (m *Machine) Shard(d Device) int {
	if mb := m.members[d]; mb != nil {
		return mb.group.index
	}
	return Whole
}

// Left reports whether a device did not stay to the end of the round: it missed a turn, or was lost
// before its last turn and before its shard failed.
func (m *Machine) Left(d Device) bool {
	mb := m.members[d]
	return mb != nil && mb.gone() && !mb.excused && !(mb.any && mb.answered == Unmasking)
}

// Answered is the last turn that a device has answered; Gathering if it has answered none of secure
// aggregation's. Turns are answered in order, so it has answered all turns before that one, too.
func (m *Machine) Answered(d Device) State {
	if mb := m.members[d]; mb != nil && mb.any {
		return mb.answered
	}
	return Gathering
}

// Joined reports whether a device has ever been in the round.
func (m *Machine) Joined(d Device) bool { mb := m.members[d]; return mb != nil && mb.any }

// Missing describes the group (shard or cohort) of a device: whether its state waits for this
// device, connected or not; for how many that are not lost it waits; and whether as many as needed
// have answered.
func (m *Machine) Missing(d Device) (holds bool, open int, enough bool) {
	mb := m.members[d]
	if mb == nil || mb.group.failed || !m.waits(mb.group) {
		return false, 0, false
	}
	g := mb.group
	need := g.threshold
	if g == &m.cohort {
		need = m.cfg.Limits[g.state].Quorum
	}
	return !mb.gone() && !mb.has(), g.open, g.answered >= need
}

// Refusal is why a message is not taken.
type Refusal uint8

// Accepted is the absence of a refusal.
const (
	Accepted Refusal = iota
	Stranger         // not in the cohort
	Early            // the state waits for an earlier turn
	Late             // the turn's state has closed
	Repeated         // already answered
	Out              // missed an earlier turn, was expelled, or its shard failed
)

var refusals = [...]string{"accepted", "not in this round's cohort", "too early", "too late", "repeated", "out of the round"}

func (r Refusal) String() string { return refusals[r] }

// Wants returns Accepted if the machine would take the device's answer to a turn now, and otherwise
// why not. The driver asks before it gives a message to secure aggregation.
func (m *Machine) Wants(d Device, turn State) Refusal {
	mb := m.members[d]
	switch {
	case mb == nil:
		return Stranger
	case mb.any && turn <= mb.answered:
		return Repeated
	case mb.out, mb.expelled, mb.group.failed:
		return Out
	case m.end != 0:
		return Late
	case turn > mb.group.state || !turn.Waits() || !m.started:
		return Early
	case turn < mb.group.state || m.busy(mb.group):
		return Late
	}
	return Accepted
}

// busy reports whether a group's state has closed and the driver has not answered.
func (m *Machine) busy(g *group) bool { return g.storing || g == &m.cohort && m.cutting }

// has reports whether a device has answered its group's present state.
func (mb *member) has() bool { return mb.any && mb.answered == mb.group.state }

// set changes what a device is and keeps the counts that say who is waited for,
// so that no event costs a walk over the cohort.
func (m *Machine) set(mb *member, change func()) {
	count := func(by int) {
		if mb.gone() {
			m.gone += by
			if !mb.any {
				m.absent += by
			}
		}
		switch {
		case mb.out:
		case mb.has():
			mb.group.answered += by
		case !mb.lost:
			mb.group.open += by
		}
	}
	count(-1)
	change()
	count(1)
}

// enter puts a group into a state and counts anew who is waited for.
func (m *Machine) enter(g *group, s State) {
	if g != &m.cohort {
		m.at[g.state]--
		m.at[s]++
	}
	g.state, g.answered, g.open = s, 0, 0
	for _, d := range g.order {
		if !m.members[d].gone() {
			g.open++ // nobody has answered yet
		}
	}
}

// present returns who of a group has answered its state, ascending.
func (m *Machine) present(g *group) []Device {
	var ds []Device
	for _, d := range g.order {
		if mb := m.members[d]; !mb.out && mb.has() {
			ds = append(ds, d)
		}
	}
	return ds
}
