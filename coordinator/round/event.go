package round

import "time"

// Whole is the shard number of the whole cohort in an event or an effect.
const Whole = -1

// Event is an input of the machine. The set is closed.
type Event interface{ event() }

type (
	// Start begins the round.
	Start struct{}
	// Received is a device's answer to a turn, already checked by the secure
	// aggregation; Turn Gathering is the device being present.
	Received struct {
		Device Device
		Turn   State
	}
	// Lost reports that a device is disconnected: nothing waits for it. It may come back as long as
	// it has missed no turn.
	Lost struct{ Device Device }
	// Expelled reports that a device was thrown out, or left for good: nothing waits for it,
	// nothing more is taken from it, and it does not come back. What it has answered counts.
	Expelled struct{ Device Device }
	// Back reports that a lost device is connected again.
	Back struct{ Device Device }
	// Deadline reports that the timeout of a state has passed for a shard, or for the Whole cohort
	// before there are shards. The deadline of another state is stale and ignored.
	Deadline struct {
		Shard int
		State State
	}
	// Sharded answers Cut. Left are devices for which no shard had room, or whose
	// shard would have been too small.
	Sharded struct {
		Shards []Shard
		Left   []Device
	}
	// Stored answers PersistSurvivors with its shard, PersistIntent with Whole.
	Stored struct{ Shard int }
	// ShardFailed reports that a shard cannot be used, which was found outside of the machine.
	ShardFailed struct {
		Shard  int
		Reason string
	}
	// Released answers Release: the round is committed.
	Released struct{}
	// ReleaseFailed answers Release: nothing was released, the round was charged.
	ReleaseFailed struct{ Reason string }
	// Abort ends the round from outside, because the coordinator is stopping.
	Abort struct{ Reason string }
)

func (Start) event()         {}
func (Received) event()      {}
func (Lost) event()          {}
func (Expelled) event()      {}
func (Back) event()          {}
func (Deadline) event()      {}
func (Sharded) event()       {}
func (Stored) event()        {}
func (ShardFailed) event()   {}
func (Released) event()      {}
func (ReleaseFailed) event() {}
func (Abort) event()         {}

// Effect is an action that the driver carries out, in the order given. The set is closed.
type Effect interface{ effect() }

type (
	// Await arms the deadline of a shard's state, or of the Whole cohort's, and cancels that of its
	// previous state. Two deadlines of one state are armed if the round hurries: the earlier one
	// counts.
	Await struct {
		Shard   int
		State   State
		Timeout time.Duration
	}
	// Assign sends the assignment to the devices that are present.
	Assign struct{ Devices []Device }
	// Cut asks for a random cut into shards, answered by Sharded.
	Cut struct{ Devices []Device }
	// SendRoster sends a shard its roster, U1.
	SendRoster struct{ Shard int }
	// DeliverShares sends the members of a shard the shares meant for them, and U2.
	DeliverShares struct {
		Shard   int
		Members []Device
	}
	// PersistSurvivors stores a shard's U3. It is answered by Stored, now or later: meanwhile the
	// other shards continue.
	PersistSurvivors struct {
		Shard   int
		Members []Device
	}
	// AnnounceSurvivors sends U3.
	AnnounceSurvivors struct {
		Shard   int
		Members []Device
	}
	// PersistIntent stores that unmasking begins. It is answered by Stored, once a round, before
	// the first shard's signatures are sent. From then on the round is committed or charged.
	PersistIntent struct{}
	// SendSignatures sends a shard the signatures over its survivors; U4.
	SendSignatures struct {
		Shard   int
		Members []Device
	}
	// FailShard leaves a shard out.
	FailShard struct {
		Shard  int
		Reason string
	}
	// Drop tells devices that the round goes on without them: they did not answer in
	// the state.
	Drop struct {
		Devices []Device
		State   State
	}
	// Reject tells a device that its message was not taken.
	Reject struct {
		Device  Device
		Turn    State
		Refusal Refusal
	}
	// Release unmasks the live shards, adds noise and commits, answered by
	// Released or ReleaseFailed. With NoiseOnly there is no sum: noise alone.
	Release struct {
		Shards    []int
		NoiseOnly bool
	}
	// Charge writes the round's cost to the ledger without a release.
	Charge struct{ Reason string }
	// Finish ends the round; no effect follows it.
	Finish struct {
		State   State // Done or Abandoned
		Reason  string
		Charged bool
	}
)

func (Await) effect()             {}
func (Assign) effect()            {}
func (Cut) effect()               {}
func (SendRoster) effect()        {}
func (DeliverShares) effect()     {}
func (PersistSurvivors) effect()  {}
func (AnnounceSurvivors) effect() {}
func (PersistIntent) effect()     {}
func (SendSignatures) effect()    {}
func (FailShard) effect()         {}
func (Drop) effect()              {}
func (Reject) effect()            {}
func (Release) effect()           {}
func (Charge) effect()            {}
func (Finish) effect()            {}
