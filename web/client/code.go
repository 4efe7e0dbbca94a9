package client

// Code says why taking part has ended, for programs: sentences change, codes do not.
type Code string

// The codes of what ends a device.
const (
	Unreachable Code = "unreachable" // no coordinator answers there
	Version     Code = "version"     // it speaks another version of the protocol
	Secret      Code = "secret"      // the enrolment secret, or the invitation, is not one of its
	Duplicate   Code = "duplicate"   // this identity is connected already
	Excluded    Code = "excluded"    // the coordinator refuses this device
	Job         Code = "job"         // the job cannot be joined: it is not private, changed, or needs what this device does not have
	Policy      Code = "policy"      // it asks for more than the device's owner allows: limits say what
	Data        Code = "data"        // the data cannot be read, or do not fit the job
	Account     Code = "account"     // the account of what the data has given cannot be read or kept
	Promise     Code = "promise"     // the coordinator asks for more rounds, or another program, than it announced
	Protocol    Code = "protocol"    // the coordinator breaks the protocol, or somebody stands in between
	Options     Code = "options"     // what was asked of the package makes no sense
	Failed      Code = "failed"      // anything else; the message says what
)
