package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/starling-fl/starling/job/training"
)

// A Blob names an immutable byte string served at BlobPath.
type Blob struct {
	_      struct{} `cbor:",toarray"`
	SHA256 [32]byte
	Size   uint64 // bytes
}

// IsZero reports whether the reference names nothing.
func (b Blob) IsZero() bool { return b.Size == 0 && b.SHA256 == [32]byte{} }

// A Job is what stays the same for all rounds. Its hash (TaskID) is the task
// that every plan binds, so that no constant can change in mid-job unseen.
type Job struct {
	_                  struct{} `cbor:",toarray"`
	Instance           [16]byte // drawn when the job is created: two runs of one job file are two tasks
	Name               string
	Labels             []string // class names in the order of the head's outputs
	Task               string   // what is learnt: classify (or empty), or another of package task's
	Base               Blob     // frozen base: model.Base's own encoding
	RankMin            uint16
	RankMax            uint16
	Alpha              float64 // LoRA scale is Alpha/rank,
	Scale              string  // or Alpha/RankMax at every rank where this is constant
	HeadOnly           bool    // every round's rank is 0
	Method             string  // what is trained in addition to the head: lora (or empty), or another of model.MethodNames
	Targets            string  // linear maps that LoRA changes, with commas; empty: query and value
	Also               string  // tensors of the base trained whole, with commas
	Bottleneck         uint32  // columns of adapter's and compacter's; 0 by the base
	Blocks             uint32  // compacter's n; 0 is 8
	Answer             uint32  // most tokens of an answer, its end included; 0: 32
	Sequence           uint32  // tokens of an example
	training.Announced         // local training: its fields stand here
	Rounds             uint64  // rounds that the job means to commit

	Uplink       string  // masked scheme of quant, "nf4"
	Providers    uint32  // most providers that a device may hold, each a unit of privacy; 0: the device is the unit
	ProviderRate float64 // probability of each provider's coin in each round; 0 where Providers is

	ShardMax   uint16   // g_max
	ShardFloor uint16   // smallest shard the coordinator will form
	CorruptPPM uint32   // tolerated corrupted devices per million, from which the threshold follows
	BreachBits uint16   // the chance that a shard is broken is to be below 2^-BreachBits; 0: bare majority
	SemiHonest bool     // the coordinator is presumed to follow the protocol
	Hybrid     bool     // shares are sealed with ML-KEM-768 + X25519
	Identified bool     // rosters carry identity keys; else per-round keys certified by RosterKey
	RosterKey  [32]byte // Ed25519 key that certifies roster entries; zero where Identified

	Privacy   Privacy
	Deadlines Deadlines

	// Recipe is the compiler's input besides the base. A device with the same compiler makes the
	// training programs itself and runs no others. Empty: the job has no programs.
	Recipe []byte

	// LogKey is the Ed25519 key that signs the heads of the log of enrolled keys, which every plan
	// binds and every roster is checked with; zero: there is no log, and rosters name no
	// identities.
	LogKey [32]byte

	Published Published

	// Dealt says that each round's devices are dealt into groups by what they draw
	// themselves, with the keys that the log holds: a shard is of one of Plan.Groups.
	Dealt bool

	// HeldOut is the share of a unit's examples that are not trained on but scored, in Scored
	// batches a round at most; both 0: none.
	HeldOut float64
	Scored  uint32

	Objectives string // of pretraining on documents, with commas; empty: all of them

	// Dual has devices keep a dual variable between rounds: what it divides a device's vector by,
	// the units expected in it; 0: they keep nothing.
	Dual float64

	// Groups is how many groups each unit's examples are divided into on its device: each is trained
	// by itself, clipped to Plan.ClipNorm/Groups and quantized, and their sum is sent. 0 and 1: none.
	Groups uint32

	// Steps are the local steps of a round, at most, and ClipNorm is the clip norm of the first: an
	// owner is asked before the job is joined, and not in its rounds.
	Steps    uint32
	ClipNorm float64
	// Bounds limit what each round begins with.
	Bounds Bounds
}

// Bounds say how far the tensors that a round begins with may be from a fresh adapter's, as L2
// norms; 0 is the published bound (contract.StartBounds).
type Bounds struct {
	_       struct{} `cbor:",toarray"`
	A       float64  // each row of a LoRA factor A
	B       float64  // a LoRA factor B, times the scale at rank_max where that is above 1
	Head    float64  // each row of a map of the head
	Bias    float64  // each value of a vector of the head
	Whole   float64  // a tensor of the base that is trained whole: its difference
	Modules float64  // each row of a bottleneck's map, or one of its vectors
}

// Published says where everybody can have the base of a job. It is the coordinator's word:
// what a device gets, from wherever, it holds against Job.Base.
type Published struct {
	_         struct{} `cbor:",toarray"`
	Name      string   // on a hub, owner/name, or that of one that the programs embed; empty: nowhere
	Revision  string   // the commit there, hexadecimal; empty: it has none
	Tokenizer [32]byte // SHA-256 of the tokenizer within the base
}

// Privacy is what the coordinator claims about the released adapters. A device
// shows it to its owner; it cannot check the noise.
type Privacy struct {
	_               struct{} `cbor:",toarray"`
	Private         bool     // false: every secret is seeded, or there is no noise
	SamplingRate    float64
	NoiseMultiplier float64 // delivered; 0: no noise, then neither private nor with a budget
	Delta           float64
	Budget          float64 // epsilon at which the job stops
	Population      uint64  // devices the budget is stated for
	Simulated       bool    // the budget is for a simulated population, not for those enrolled
	Accountant      string  // what the budget is kept with: "tight" or "rdp"; empty if it is not said

	// Noise says whose noise the budget counts: the coordinator's (empty), "devices" for
	// that of the honest devices of a round together, "silo" for that of each by itself.
	// OwnNoise is what each device adds to its vector before it masks it, a standard
	// deviation over the vector's norm bound; 0: none. Honest is the least number of honest
	// devices whose noise is counted on, 0 if the coordinator's is.
	Noise    string
	OwnNoise float64
	Honest   uint32

	// Observer says who the budget holds against: "public", "coalition" (a share masking.corrupt of
	// the devices, who see their shards' rosters) or "participants"; empty if nothing is private.
	Observer string

	// Separation is how many releases later than one that a device is in another may be, at the
	// least, with noise that cancels between releases; Band and Eighths are dp.Banded's. All are 0
	// where each round's noise is its own. A device's account holds the coordinator to Separation.
	Separation uint32
	Band       uint32
	Eighths    uint8
}

// Kinds of Privacy.Observer.
const (
	ObserverPublic       = "public"
	ObserverCoalition    = "coalition"
	ObserverParticipants = "participants"
)

// Kinds of Privacy.Noise.
const (
	NoiseCentral = ""
	NoiseDevices = "devices"
	NoiseSilo    = "silo"
)

// Deadlines are the longest durations of a round's states, milliseconds.
type Deadlines struct {
	_       struct{} `cbor:",toarray"`
	Gather  uint32
	Key     uint32
	Share   uint32
	Collect uint32
	Confirm uint32
	Unmask  uint32
}

// A Plan is one round's assignment without the roster. All devices of a round
// see the same bytes; P is secagg's hash over them, the task (in hexadecimal),
// the round and the parameters of masking, which both sides derive from the job
// and from Values.
type Plan struct {
	_        struct{} `cbor:",toarray"`
	Task     [32]byte // TaskID of the job
	Round    uint64   // its number: counts abandoned ones, too, never reused, not even after a crash
	Version  uint64   // of the released adapter it begins with: rounds committed before this one
	Rank     uint16   // 0: the head alone
	Values   uint32   // length of the update: adapter slices at Rank and the head
	Seed     []byte   // 8 bytes, little-endian: model.NewAdapter's seed (nothing released yet); else empty
	Slice    Slice    // the adapter's values at Rank where Seed is empty
	Rotation [32]byte
	ClipNorm float64 // L2 bound on the update of a device, or of each of its providers
	// The clipping count: extra coordinates behind the lattice's (0: none), and what
	// they hold, plus it where the update was within ClipNorm, else minus it.
	CountCoordinates, CountSymbol uint32
	// OwnNoise and Honest are the job's, bound here into what every device signs: each adds
	// noise of this standard deviation, over the vector's norm bound, to what it masks.
	OwnNoise float64
	Honest   uint32

	Steps    uint32  // local steps
	Rate     float64 // local learning rate
	Programs []Program

	// Head is the head of the log of enrolled keys, a signed note: all who take part in the
	// round were enrolled before it. Empty where the job has no log.
	Head []byte
	// Groups is how many the round's devices are dealt into, 1..MaxGroups, each by its own
	// key and Head; 0 if the job is not Dealt.
	Groups uint32

	// The figures of what is held out: four of so many coordinates behind the count's, each
	// within FigureSymbol; 0: none.
	FigureCoordinates, FigureSymbol uint32
}

// A Growth proves that a log of enrolled keys extends the one that the device holds.
type Growth struct {
	_      struct{} `cbor:",toarray"`
	From   uint64   // keys of the log that the device holds; 0: none, which every log goes on from
	Hashes []byte   // of tlog's proof, 32 bytes each
}

// AdapterSeed is the seed of a fresh adapter, false if the plan has a slice.
func (p *Plan) AdapterSeed() (uint64, bool) {
	if len(p.Seed) != 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(p.Seed), true
}

// A Slice is the downlink: Plan.Values values as quant's downlink message for
// a device that holds nothing. Digest is quant.Digest of the values that it
// decodes to; a Patch must lead to the same.
type Slice struct {
	_      struct{} `cbor:",toarray"`
	Blob   Blob
	Digest [32]byte
	Format string // quant's unmasked scheme, "bf16"
	Codec  string // byte codec, "zstd"
}

// A Program is one compiled form of the round's training step.
type Program struct {
	_    struct{} `cbor:",toarray"`
	Host string   // shape of code: "wazero", "v8"; results are equal
	Blob Blob
}

// taskLabel separates the hash of a job from every other hash.
const taskLabel = "starling/1 task\x00"

// AppendBinary encodes the job canonically behind dst.
func (j *Job) AppendBinary(dst []byte) ([]byte, error) { return appendValue(dst, j, "job", MaxJob) }

// AppendBinary encodes the plan canonically behind dst.
func (p *Plan) AppendBinary(dst []byte) ([]byte, error) { return appendValue(dst, p, "plan", MaxPlan) }

// ParseJob decodes a job and refuses values out of range.
func ParseJob(b []byte) (*Job, error) { j := new(Job); return j, parseValue(b, j, "job", MaxJob) }

// ParsePlan decodes a plan and refuses values out of range.
func ParsePlan(b []byte) (*Plan, error) { p := new(Plan); return p, parseValue(b, p, "plan", MaxPlan) }

// TaskID hashes an encoded job.
func TaskID(job []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte(taskLabel))
	h.Write(job)
	return [32]byte(h.Sum(nil))
}

func appendValue(dst []byte, v interface{ validate() error }, name string, most int) ([]byte, error) {
	if err := v.validate(); err != nil {
		return dst, err
	}
	b, err := code.Append(nil, v)
	if err != nil {
		return dst, fmt.Errorf("wire: %s: %w", name, err)
	}
	if err := within(name, len(b), 1, most); err != nil {
		return dst, err
	}
	return append(dst, b...), nil
}

func parseValue(b []byte, v interface{ validate() error }, name string, most int) error {
	if err := within(name, len(b), 1, most); err != nil {
		return err
	}
	if err := decodeBody(b, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return v.validate()
}
