package wire

import "fmt"

// Version is the protocol version that this package speaks. A device offers
// the range it understands in Hello, the coordinator answers with one of it in
// Welcome, or with an Error of code CodeVersion.
const Version = 20

// Path is where the coordinator accepts WebSocket connections; BlobPath is
// followed by the lower-case hexadecimal SHA-256 of an immutable blob.
const (
	Path     = "/v1/join"
	BlobPath = "/blob/"
)

// Sizes: every bound that a decoder applies.
const (
	MaxChunk      = 1 << 20         // bytes of data in one update chunk
	sentChunk     = 1 << 18         // of them that Upload puts into one: 5 s of a line of 50 kB/s
	MaxFrame      = MaxChunk + 1<<8 // bytes of any frame: the transport's read limit
	MaxUpdate     = 1 << 30         // bytes of a whole masked update
	MaxBlob       = 1 << 32         // bytes of a blob that a message may name
	MaxTurn       = 1 << 20         // bytes of secagg's payload in one turn
	MaxJob        = 1 << 18         // bytes of an encoded Job
	MaxPublished  = 200             // bytes of a base's name on a hub
	MaxRecipe     = 1 << 13         // bytes of what a job's programs are made from
	MaxPlan       = 1 << 12         // bytes of an encoded Plan
	MaxHead       = 1 << 10         // bytes of the signed head of a log of enrolled keys
	MaxGrowth     = 82 * 32         // bytes of a proof that such a log goes on from another, of 2^40 keys
	MaxLog        = 1 << 40         // keys of such a log
	MaxLabels     = 4096            // labels of a job
	MaxLabel      = 256             // bytes of a label
	MaxText       = 512             // bytes of a reason or an error text
	MaxName       = 64              // bytes of a scheme, codec, optimizer, host or program name
	MaxBand       = 4096            // rounds that one round's noise is cancelled in
	MaxSeparation = 1 << 30         // releases from one of a device to its next
	MaxPrograms   = 8               // compiled forms of one training step
	MaxPatches    = 8               // ways from a version a device may hold to the assigned one
	MaxRank       = 4096            // LoRA rank
	MaxParams     = 1 << 30         // values in an update
	MaxMethodList = 4096            // bytes of a job's list of names
	MaxShard      = 1 << 14         // devices in a shard
	MaxGroups     = 1 << 24         // groups that a round's devices are dealt into
	MaxProviders  = 1 << 16         // providers that a device may hold
	MaxParts      = 256             // groups that a unit's examples are divided into: Job.Groups
	MaxCount      = 1 << 20         // extra coordinates of the clipping count
	MaxFigures    = 1 << 18         // extra coordinates of each of the four figures
	MaxScored     = 1 << 10         // batches of held-out examples that a round scores
	MaxSession    = 32              // bytes of a session token
	maxArray      = 8192            // elements of any CBOR array
	maxNested     = 8               // nesting of any message
	smallMessage  = 1 << 12         // bytes of a message without bulk
)

// A Kind names a message; it is the first byte of its frame.
type Kind uint8

// The kinds. Up to KindError the order is that in which a session sees
// them first.
const (
	KindHello      Kind = 1 + iota // versions, nonce, session to resume
	KindWelcome                    // version chosen, challenge
	KindEnrol                      // identity, proof of the secret, signature over the challenge
	KindEnrolled                   // session token, the coordinator's proof, the job
	KindWait                       // not this round: come back after
	KindAssignment                 // the plan of a round
	KindTurn                       // one of secagg's five turns
	KindUpdate                     // a chunk of turn 3's masked vector
	KindResume                     // after a reconnect: what the coordinator holds of the round
	KindOutcome                    // how a round ended
	KindRefuse                     // the device leaves the round, with a code
	KindFinished                   // the job is over
	KindError                      // the session ends
	KindReady                      // the device can be assigned: it holds the job's base and its data
	kindEnd
)

// A Direction says who sent a frame.
type Direction uint8

// The two senders.
const (
	FromDevice      Direction = 1
	FromCoordinator Direction = 2
)

// flow is the grammar: what each kind is called, who may send it, how large
// its frame may be and which Go type it decodes to.
//
//	device                                coordinator
//	Hello           ------------------->
//	                <-------------------  Welcome | Error(version)
//	Enrol           ------------------->
//	                <-------------------  Enrolled | Error
//	Ready           ------------------->                     once the base is fetched; again after Outcome(dropped)
//	                <-------------------  Resume             (only where a round is being resumed)
//	                <-------------------  Wait               (not drawn: pace steering)
//	                <-------------------  Assignment
//	Turn 1 | Refuse ------------------->                     two public keys
//	                <-------------------  Turn 1             roster of the shard
//	Turn 2          ------------------->                     sealed shares
//	                <-------------------  Turn 2             shares for this device
//	Update ...      ------------------->                     masked vector, in chunks
//	                <-------------------  Turn 3             survivor set
//	Turn 4          ------------------->                     signature over it
//	                <-------------------  Turn 4             the others' signatures
//	Turn 5          ------------------->                     shares for unmasking
//	                <-------------------  Outcome            committed | abandoned
//	                <-------------------  Finished
//
// A turn that arrives twice with the same bytes is ignored by its receiver; a
// second one with other bytes is an offence.
var flow = [kindEnd]struct {
	name string
	from Direction
	max  int
	make func() Message
}{
	KindHello:      {"hello", FromDevice, smallMessage, func() Message { return new(Hello) }},
	KindWelcome:    {"welcome", FromCoordinator, smallMessage, func() Message { return new(Welcome) }},
	KindEnrol:      {"enrol", FromDevice, smallMessage, func() Message { return new(Enrol) }},
	KindEnrolled:   {"enrolled", FromCoordinator, MaxJob + smallMessage, func() Message { return new(Enrolled) }},
	KindWait:       {"wait", FromCoordinator, smallMessage, func() Message { return new(Wait) }},
	KindAssignment: {"assignment", FromCoordinator, MaxPlan + smallMessage, func() Message { return new(Assignment) }},
	KindTurn:       {"turn", FromDevice | FromCoordinator, MaxTurn + 1<<6, func() Message { return new(Turn) }},
	KindUpdate:     {"update", FromDevice, MaxFrame, func() Message { return new(Update) }},
	KindResume:     {"resume", FromCoordinator, smallMessage, func() Message { return new(Resume) }},
	KindOutcome:    {"outcome", FromCoordinator, smallMessage, func() Message { return new(Outcome) }},
	KindRefuse:     {"refuse", FromDevice, smallMessage, func() Message { return new(Refuse) }},
	KindFinished:   {"finished", FromCoordinator, smallMessage, func() Message { return new(Finished) }},
	KindError:      {"error", FromDevice | FromCoordinator, smallMessage, func() Message { return new(Error) }},
	KindReady:      {"ready", FromDevice, smallMessage, func() Message { return new(Ready) }},
}

// MostBytes is the longest frame of a kind that a side may send: of no kind, or of
// another side's, the least of all, which holds what an error says of it.
func MostBytes(k Kind, from Direction) int {
	if k == 0 || k >= kindEnd || flow[k].from&from == 0 {
		return smallMessage
	}
	return flow[k].max
}

// String returns the kind's name in the protocol document.
func (k Kind) String() string {
	if k == 0 || k >= kindEnd {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return flow[k].name
}
