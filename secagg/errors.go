package secagg

import (
	"errors"
	"fmt"
)

// Causes. Every error of this package wraps exactly one of them, or is a
// configuration error from Config.Validate (ErrConfig).
var (
	// ErrConfig: the parameters of a round contradict each other.
	ErrConfig = errors.New("secagg: bad configuration")
	// ErrOverflow: the ring cannot hold the sum of a full shard.
	ErrOverflow = errors.New("secagg: ring too narrow for the sum")
	// ErrEncoding: bytes are not the canonical encoding of a message.
	ErrEncoding = errors.New("secagg: bad encoding")
	// ErrOutOfTurn: the message or call belongs to a turn that has not begun.
	ErrOutOfTurn = errors.New("secagg: out of turn")
	// ErrLate: the message belongs to a turn that is closed.
	ErrLate = errors.New("secagg: turn is closed")
	// ErrRepeated: the very same message was received before. Harmless: a
	// device resends after a reconnect. Acknowledge it again.
	ErrRepeated = errors.New("secagg: message repeated")
	// ErrConflict: a second, different message where only one may exist.
	ErrConflict = errors.New("secagg: conflicting second message")
	// ErrStranger: the sender is not a member of this round, shard or set.
	ErrStranger = errors.New("secagg: stranger")
	// ErrBinding: the message belongs to another plan, roster or shard.
	ErrBinding = errors.New("secagg: bound to another plan or roster")
	// ErrSignature: an identity, round or authority signature does not verify.
	ErrSignature = errors.New("secagg: bad signature")
	// ErrKey: a public key is malformed or of low order.
	ErrKey = errors.New("secagg: bad public key")
	// ErrLength: a vector, list or field has the wrong length.
	ErrLength = errors.New("secagg: wrong length")
	// ErrRange: a symbol or a packed value is out of its range.
	ErrRange = errors.New("secagg: value out of range")
	// ErrRoster: the roster is unsorted, has duplicates, or lacks this device.
	ErrRoster = errors.New("secagg: bad roster")
	// ErrBelowFloor: the shard is smaller than the device accepts.
	ErrBelowFloor = errors.New("secagg: shard below its floor")
	// ErrBelowThreshold: fewer than t devices are left, or consent.
	ErrBelowThreshold = errors.New("secagg: below the threshold")
	// ErrSet: U1, U2, U3, U4 are not nested, or leave this device out.
	ErrSet = errors.New("secagg: bad device set")
	// ErrShare: too few valid shares of a secret can be found.
	ErrShare = errors.New("secagg: secret cannot be rebuilt")
	// ErrCommitment: a commitment does not decode to points of the group, or
	// does not belong to the keys in the roster.
	ErrCommitment = errors.New("secagg: bad commitment")
	// ErrLot: a device's lot is missing, is not its own, or is there although the round is not dealt.
	ErrLot = errors.New("secagg: bad lot")
	// ErrErased: the machine has been aborted and its secrets erased.
	ErrErased = errors.New("secagg: round left, secrets erased")
)

// A DeviceError blames one device for a message. The server's state is as it was before that
// message. If it wraps ErrRepeated, acknowledge the message again; if ErrLate, the device has
// already been left out; otherwise drop the device from the round.
type DeviceError struct {
	Device ID
	Turn   Turn
	Err    error
}

func (e *DeviceError) Error() string {
	return fmt.Sprintf("device %x, turn %d (%s): %v", e.Device[:4], int(e.Turn), e.Turn, e.Err)
}
func (e *DeviceError) Unwrap() error { return e.Err }

// A ShardError ends one shard: leave it out of the round's sum and continue with the others.
type ShardError struct {
	Shard  int
	Turn   Turn
	Err    error
	Faults []Fault // of Unmask: who is to blame
}

func (e *ShardError) Error() string {
	return fmt.Sprintf("shard %d, turn %d (%s): %v", e.Shard, int(e.Turn), e.Turn, e.Err)
}
func (e *ShardError) Unwrap() error { return e.Err }

// A RefusalError is a client's refusal to answer the server's message, because the answer could
// expose its vector or because the message is invalid. The client's state is as it was. The device
// should call Abort and leave the round.
type RefusalError struct {
	Turn Turn
	Err  error
}

func (e *RefusalError) Error() string {
	return fmt.Sprintf("refused in turn %d (%s): %v", int(e.Turn), e.Turn, e.Err)
}
func (e *RefusalError) Unwrap() error { return e.Err }

// A StateError is a call that comes out of turn: a programming error or, on a client, a server
// message that came early, late or twice.
type StateError struct {
	Call string // the method
	Turn Turn   // the turn that is next
	Err  error  // ErrOutOfTurn, ErrLate, ErrRepeated, ErrConflict or ErrErased
}

func (e *StateError) Error() string {
	return fmt.Sprintf("%s while turn %d (%s) is next: %v", e.Call, int(e.Turn), e.Turn, e.Err)
}
func (e *StateError) Unwrap() error { return e.Err }

func refuse(t Turn, err error) error { return &RefusalError{Turn: t, Err: err} }
