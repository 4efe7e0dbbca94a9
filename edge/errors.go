package edge

import (
	"errors"
	"fmt"

	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Errors for which Run returns, because trying again cannot help.
var (
	ErrVersion    = errors.New("edge: no common protocol version")
	ErrSecret     = errors.New("edge: the coordinator does not know the enrolment secret")
	ErrJobChanged = errors.New("edge: the coordinator changed the job")
	ErrNotPrivate = errors.New("edge: the job says that it is not private")
	ErrData       = errors.New("edge: local data cannot be used")
	ErrBase       = errors.New("edge: the base model cannot be used")
	ErrJob        = errors.New("edge: the job cannot be joined")
	// ErrUnreachable is an address without a coordinator, or with one whose certificate is not
	// trusted. A device that has joined before keeps trying.
	ErrUnreachable = errors.New("edge: no coordinator can be reached")
	// ErrDuplicate is an identity that is connected already. Run tries again for two minutes,
	// because the device's own dead connection may be held that long.
	ErrDuplicate = errors.New("edge: this identity is connected already")
	ErrPin       = errors.New("edge: the coordinator's certificate is not the one in the join token")
)

// Reasons for which a device declines a round. They are the Cause of a *RefusalError.
var (
	ErrPlan       = errors.New("plan refused")
	ErrReplay     = errors.New("round was answered before")
	ErrShardFloor = errors.New("shard is below this device's floor")
	ErrBlob       = errors.New("blob cannot be had")
	ErrProgram    = errors.New("program does not fit the assignment")
	ErrTraining   = errors.New("training failed")
	ErrSecagg     = errors.New("aggregation refused")
)

// A RefusedError is the coordinator's final refusal of this device.
type RefusedError struct {
	Code uint16
	Text string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("edge: the coordinator refused this device: %s (code %d)", Escape(e.Text, false), e.Code)
}

// A ProtocolError is a message that no honest coordinator sends. The session ends and Run returns
// it.
type ProtocolError struct{ Err error }

func (e *ProtocolError) Error() string {
	return "edge: coordinator broke the protocol: " + e.Err.Error()
}
func (e *ProtocolError) Unwrap() error { return e.Err }

// A RefusalError is this device's refusal to take part in one round. The session continues.
type RefusalError struct {
	Round uint64
	Cause error // one of the causes above
	Err   error
}

func (e *RefusalError) Error() string {
	return fmt.Sprintf("edge: round %d: %v: %v", e.Round, e.Cause, e.Err)
}
func (e *RefusalError) Unwrap() []error { return []error{e.Cause, e.Err} }

// message gives what the coordinator is told: a code and a fixed text, nothing
// that could depend on local data.
func (e *RefusalError) message() *wire.Refuse {
	code := wire.CodePlan
	for cause, c := range map[error]uint16{
		ErrShardFloor: wire.CodeShardFloor,
		ErrBlob:       wire.CodeBlob,
		ErrProgram:    wire.CodeProgram,
		ErrTraining:   wire.CodeTraining,
		ErrSecagg:     wire.CodeSecagg,
	} {
		if errors.Is(e.Cause, cause) {
			code = c
		}
	}
	reason := e.Cause.Error()
	if beyond := new(PolicyError); errors.As(e.Err, &beyond) {
		// What a round asks for follows from job and plan alone, what an owner allows from
		// the owner: neither tells of data.
		reason = "the plan is outside of what this device's owner allows"
		switch code = beyond.code(); code {
		case wire.CodeMemory:
			reason = "the program takes more memory than this device's owner gives"
		case wire.CodeWork:
			reason = "training takes more work than this device's owner gives"
		}
	}
	return &wire.Refuse{Round: e.Round, Code: code, Reason: reason}
}

// Uninvited reports whether the invitation was refused: it is used up, expired or revoked, or its
// secret is not the coordinator's.
func (e *RefusedError) Uninvited() bool { return e.Code == wire.CodeEnrolment }
