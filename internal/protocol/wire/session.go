package wire

// A Hello opens a session: the device's range of versions, a fresh nonce, and
// what it calls itself.
type Hello struct {
	_          struct{} `cbor:",toarray"`
	MinVersion uint32
	MaxVersion uint32
	Nonce      [32]byte
	Agent      string // program and host, for the operator's log: "starling/0.1 wazero"; at most MaxName bytes
}

// A Welcome chooses a version and challenges the device.
type Welcome struct {
	_         struct{} `cbor:",toarray"`
	Version   uint32
	Challenge [32]byte
	Task      [32]byte // TaskID of the job that runs here: the device signs it
	TLS       bool     // this coordinator ends TLS itself, so that a device can sign the connection
	LogKey    [32]byte // the job's: a device says what it holds of that log before it has read the job
}

// An Enrol answers the challenge. Proof shows knowledge of the enrolment
// secret (DeviceProof), Signature is Ed25519 by Identity over EnrolBytes.
type Enrol struct {
	_         struct{} `cbor:",toarray"`
	Identity  [32]byte
	Proof     [32]byte
	Signature [64]byte
	Session   []byte // token of the session to resume, or empty
	Task      []byte // TaskID of the job the device holds, or empty
	Channel   uint8  // what Signature says of the connection: ChannelPlain, ChannelTLS or ChannelBrowser
	Fused     bool   // it computes fused multiply-adds at their speed: what jobs of that arithmetic ask for
	Held      uint64 // keys of the log of Welcome.LogKey whose head the device holds; 0: none
}

// An Enrolled opens the session's working part. Proof shows that the
// coordinator knows the enrolment secret too.
type Enrolled struct {
	_       struct{} `cbor:",toarray"`
	Proof   [32]byte
	Session []byte // token to send on a reconnect; 16..32 bytes
	Resumed bool   // the session that Enrol named goes on
	Job     []byte // encoded Job; empty where Enrol.Task named it already
	Head    []byte // of the log of enrolled keys, a signed note; empty if there is none to be shown
	Growth  Growth // from what Enrol.Held says to Head
}

// A Wait tells a device that it is not in this round. It is the same message
// for one that was not drawn, one that came late and one that is one too many.
type Wait struct {
	_           struct{} `cbor:",toarray"`
	RetryMillis uint32   // milliseconds until the next round is expected to gather
	Disconnect  bool     // hang up meanwhile, and come back then
	Reason      string
}

// A Ready says that the device holds what every round needs, the base and its
// own data, and may be assigned. It holds for the session, until an Outcome tells
// the device that it was dropped: then the coordinator has heard nothing from it
// for a state's whole time, and counts it as absent until it says Ready again.
type Ready struct {
	_ struct{} `cbor:",toarray"`
}

// An Assignment puts the device into a round.
type Assignment struct {
	_       struct{} `cbor:",toarray"`
	Plan    []byte   // encoded Plan; turn 1 signs its hash P
	Patches []Patch  // shorter ways to the plan's slice; may be empty
	Millis  uint32   // milliseconds left for turn 1
	Growth  Growth   // from the head that the device was sent last to the plan's
}

// A Patch is the plan's slice as the difference to values that a device may
// still hold: quant's downlink message against them. What it decodes to must
// have the digest that the plan's slice names.
type Patch struct {
	_    struct{} `cbor:",toarray"`
	From [32]byte // quant.Digest of the values held, cut to the plan's rank
	Blob Blob
}

// A Turn carries secagg's own canonical bytes. Number is 1..5; turn 3 from the
// device travels as Update chunks instead, turn 5 from the coordinator is an
// Outcome.
type Turn struct {
	_       struct{} `cbor:",toarray"`
	Round   uint64
	Number  uint8
	Payload []byte
	Millis  uint32 // from the coordinator: milliseconds the device has to answer; from the device 0
}

// A Resume follows Enrolled on a reconnect into a round. The device answers
// with the same bytes of every turn that is due and not held, or with Refuse
// where it holds nothing of the round. With nothing held it follows Assignment.
type Resume struct {
	_        struct{} `cbor:",toarray"`
	Round    uint64
	Held     uint8  // bit i-1: turn i of this device is held
	Received uint64 // bytes of the update held
}

// How a round ended for the devices in it.
const (
	OutcomeCommitted uint8 = 1 // a new adapter was released
	OutcomeAbandoned uint8 = 2 // nothing was released
	OutcomeDropped   uint8 = 3 // the round went on without this device
)

// An Outcome ends a round. It says nothing of who took part.
type Outcome struct {
	_           struct{} `cbor:",toarray"`
	Round       uint64
	Result      uint8
	Reason      string
	RetryMillis uint32 // milliseconds until the next round is expected to gather
}

// A Refuse is a device's leave from a round: it declines the plan or cannot go
// on. Reason must not depend on the device's data; edge sends fixed texts.
type Refuse struct {
	_      struct{} `cbor:",toarray"`
	Round  uint64
	Code   uint16
	Reason string
}

// A Finished ends the job.
type Finished struct {
	_       struct{} `cbor:",toarray"`
	Version uint64   // last released adapter version
	Reason  string
	Model   Model // to take along; see Model.Offered
}

// A Model is the released adapter at a rank, for a device that has the job's base.
type Model struct {
	_        struct{} `cbor:",toarray"`
	Rank     uint16
	Adapter  Blob      // quant's whole update, of as many values as the layout has at Rank
	Programs []Program // the forward pass of one text: its tokens and the adapter's tensors in, logits out
	Archive  Blob      // a zip of the adapter for other software, with a README.md
}

// Offered reports whether there is a model to take along.
func (m *Model) Offered() bool { return len(m.Programs) > 0 }

// Codes of Error and Refuse. 1xx: the session cannot be; 2xx: try later; 3xx:
// the round cannot be.
const (
	CodeVersion    uint16 = 100 // no common protocol version
	CodeEnrolment  uint16 = 101 // wrong enrolment secret
	CodeIdentity   uint16 = 102 // signature over the challenge is wrong
	CodeDuplicate  uint16 = 103 // the identity is connected already, or enrolled twice
	CodeProtocol   uint16 = 104 // malformed, oversize or out of turn
	CodeArithmetic uint16 = 105 // the job's training needs arithmetic that the device does not have
	CodeBusy       uint16 = 200 // too many devices
	CodeShutdown   uint16 = 201 // the coordinator is stopping
	CodeInternal   uint16 = 202 // the coordinator failed; nothing the device did
	CodePlan       uint16 = 300 // plan refused
	CodeShardFloor uint16 = 301 // shard below the device's floor
	CodeBlob       uint16 = 302 // a blob is missing or has another hash
	CodeProgram    uint16 = 303 // program does not fit the plan
	CodeData       uint16 = 304 // no usable local data
	CodeTraining   uint16 = 305 // training failed
	CodeSecagg     uint16 = 306 // the aggregation protocol was violated
	CodeTooSlow    uint16 = 307 // a deadline has passed
	CodeMemory     uint16 = 308 // the program takes more memory than the device's owner gives
	CodeWork       uint16 = 309 // training takes more work than the device's owner gives
	CodePolicy     uint16 = 310 // another limit of the device's owner: clip norm, steps, epsilon
)

// Limit says what of its owner's limits has a device decline a round with this code;
// ok is false for codes that are about none.
func Limit(code uint16) (what string, ok bool) {
	switch code {
	case CodeMemory:
		return "memory", true
	case CodeWork:
		return "work", true
	case CodePolicy:
		return "policy", true
	}
	return "", false
}

// An Error ends the session.
type Error struct {
	_           struct{} `cbor:",toarray"`
	Code        uint16
	Text        string
	RetryMillis uint32 // 0: do not come back with this configuration; else wait so long
}

func (e *Error) Error() string { return "peer: " + e.Text }

func (*Hello) Kind() Kind      { return KindHello }
func (*Welcome) Kind() Kind    { return KindWelcome }
func (*Enrol) Kind() Kind      { return KindEnrol }
func (*Enrolled) Kind() Kind   { return KindEnrolled }
func (*Wait) Kind() Kind       { return KindWait }
func (*Assignment) Kind() Kind { return KindAssignment }
func (*Turn) Kind() Kind       { return KindTurn }
func (*Resume) Kind() Kind     { return KindResume }
func (*Outcome) Kind() Kind    { return KindOutcome }
func (*Refuse) Kind() Kind     { return KindRefuse }
func (*Finished) Kind() Kind   { return KindFinished }
func (*Error) Kind() Kind      { return KindError }
func (*Ready) Kind() Kind      { return KindReady }
