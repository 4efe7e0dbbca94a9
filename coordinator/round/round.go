// Package round is one round of federated training as a pure state machine.
//
// It decides who is waited for, when a state closes, which shards live on, and
// what must be on disk before anything is said. It never sees a tensor, a
// clock, a socket or a key: the coordinator feeds it events and carries out the
// effects that Step returns, in their order. The turns are those of Bonawitz et
// al. (CCS 2017, figure 4) with a gathering state before them and a releasing
// state after them.
//
// Rules the machine holds, whatever the events:
//
//   - Every state has a deadline and a quorum, and never waits for one device:
//     it closes at its deadline or when every device in it is settled (has
//     answered, or is lost), never at a count.
//   - U1 contains U2 contains U3 contains U4: a device that misses a turn is out
//     for the rest of the round.
//   - Survivor sets are stored before they are announced.
//   - The intent to unmask is stored before the first message that lets anyone
//     unmask. Before it, a round may be abandoned and costs no privacy budget;
//     after it, the round is released or charged.
//   - A cohort drawn below the floor goes straight to releasing: noise only.
//   - A shard below its threshold fails alone.
//
// Threat model: devices are hostile and may send any turn at any time, twice or
// never; such a message yields Reject and changes nothing. The coordinator's own
// driver is trusted; driver errors (an effect answered out of order) panic.
package round

import (
	"fmt"
	"slices"
	"time"
)

// Device is the coordinator's handle of an enrolled identity.
type Device int

// State is a state of the round. Gathering to Unmasking name a turn, too: the
// message of a device that the state waits for.
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
	// Timeout after which the state closes with whoever has answered.
	Timeout time.Duration
	// Quorum is the number of devices that must have answered when the state
	// closes; with fewer the round is abandoned.
	Quorum int
}

// Config is the round's data, fixed before it starts.
type Config struct {
	// Cohort is who was drawn, one coin each; nobody is added later.
	Cohort []Device
	// Floor is the least cohort that is asked for updates.
	Floor int
	// Limits of Gathering to Unmasking.
	Limits [Unmasking + 1]Limit
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
	out      bool  // missed a turn
	shard    int   // -1 before the cut
}

type shard struct {
	Shard
	failed bool
}

// Machine is one round. It is not safe for concurrent use: one goroutine owns it.
type Machine struct {
	cfg     Config
	state   State
	started bool
	members map[Device]*member
	order   []Device // cohort, ascending: effects are deterministic
	shards  []shard

	cutting bool // Cut was asked for; waiting for Sharded
	storing bool // a Persist effect was given; waiting for Stored
	charged bool // the intent is stored: the round counts, whatever happens
}

// New checks the configuration and returns a machine that waits for Start.
func New(cfg Config) (*Machine, error) {
	m := &Machine{cfg: cfg, members: make(map[Device]*member, len(cfg.Cohort))}
	for _, d := range cfg.Cohort {
		if m.members[d] != nil {
			return nil, fmt.Errorf("round: device %d is in the cohort twice", d)
		}
		m.members[d] = &member{shard: -1}
		m.order = append(m.order, d)
	}
	slices.Sort(m.order)
	if cfg.Floor < 1 {
		return nil, fmt.Errorf("round: floor is %d, must be at least 1", cfg.Floor)
	}
	for s := Gathering; s <= Unmasking; s++ {
		if l := cfg.Limits[s]; l.Timeout <= 0 || l.Quorum < 1 {
			return nil, fmt.Errorf("round: %v has timeout %v and quorum %d, both must be positive", s, l.Timeout, l.Quorum)
		}
	}
	return m, nil
}

// State is where the round stands.
func (m *Machine) State() State { return m.state }

// Charged reports whether the intent to unmask is stored.
func (m *Machine) Charged() bool { return m.charged }

// Counts returns the devices that are still in the round and the cohort's
// devices that are out or lost.
func (m *Machine) Counts() (in, dropped int) {
	for _, d := range m.order {
		if mb := m.members[d]; mb.out || mb.lost {
			dropped++
		} else {
			in++
		}
	}
	return in, dropped
}

// Shard returns the index of the device's shard, or -1.
func (m *Machine) Shard(d Device) int {
	if mb := m.members[d]; mb != nil {
		return mb.shard
	}
	return -1
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
	Out              // missed an earlier turn, or its shard failed
)

var refusals = [...]string{"accepted", "not in this round's cohort", "too early", "too late", "repeated", "out of the round"}

func (r Refusal) String() string { return refusals[r] }

// Wants tells whether the machine would take the device's answer to a turn, so
// that the driver hands nothing to the secure aggregation that would be refused
// afterwards.
func (m *Machine) Wants(d Device, turn State) Refusal {
	mb := m.members[d]
	switch {
	case mb == nil:
		return Stranger
	case mb.any && turn <= mb.answered:
		return Repeated
	case mb.out, mb.shard >= 0 && m.shards[mb.shard].failed:
		return Out
	case turn > m.state || !turn.Waits() || !m.started:
		return Early
	case turn < m.state || m.storing || m.cutting:
		return Late
	}
	return Accepted
}

// live returns the devices that have answered every turn before the state,
// whose shard lives, ascending.
func (m *Machine) live() []Device {
	var ds []Device
	for _, d := range m.order {
		mb := m.members[d]
		if !mb.out && (mb.shard < 0 || !m.shards[mb.shard].failed) {
			ds = append(ds, d)
		}
	}
	return ds
}

// answered returns who of the shard (-1: of all) has answered the present state.
func (m *Machine) answeredNow(shard int) []Device {
	var ds []Device
	for _, d := range m.live() {
		mb := m.members[d]
		if mb.any && mb.answered == m.state && (shard < 0 || mb.shard == shard) {
			ds = append(ds, d)
		}
	}
	return ds
}

// settled reports whether every live device has answered or is lost.
func (m *Machine) settled() bool {
	for _, d := range m.live() {
		mb := m.members[d]
		if !mb.lost && !(mb.any && mb.answered == m.state) {
			return false
		}
	}
	return true
}
