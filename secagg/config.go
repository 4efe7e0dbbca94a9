package secagg

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/bits"

	"github.com/starling-fl/starling/secagg/internal/tail"
)

// Turn numbers the five exchanges of a round.
type Turn int

// The five turns.
const (
	TurnAdvertise Turn = 1 + iota
	TurnShare
	TurnMask
	TurnConfirm
	TurnReveal
	TurnDone // nothing is next
)

func (t Turn) String() string {
	switch t {
	case TurnAdvertise:
		return "advertise"
	case TurnShare:
		return "share"
	case TurnMask:
		return "mask"
	case TurnConfirm:
		return "confirm"
	case TurnReveal:
		return "reveal"
	case TurnDone:
		return "done"
	}
	return "none"
}

// Hash is a SHA-256 value: the plan hash P or the roster hash R.
type Hash [sha256.Size]byte

// ID is a device's identity: its Ed25519 public key.
type ID [ed25519.PublicKeySize]byte

// Suite names how shares are sealed.
type Suite uint8

const (
	// SuiteX25519 seals with AES-128-GCM under a key from X25519 between the
	// per-round sealing keys. Deterministic given the injected randomness.
	SuiteX25519 Suite = 1
	// SuiteHybrid seals with HPKE, ML-KEM-768 + X25519 (X-Wing). Costs 1,120
	// bytes more per peer. Encapsulation draws from crypto/rand: crypto/hpke
	// takes no reader.
	SuiteHybrid Suite = 2
)

// Hard limits. A Config cannot exceed them, nor can a decoded message.
const (
	MaxShard = 1024    // devices in a shard
	MaxDim   = 1 << 26 // symbols in a vector
	MaxWidth = 32      // bits of the ring Z/2^b
)

// Config holds what a round's devices and server agree on. It is public, and the plan hash binds it.
type Config struct {
	Dim       int // symbols per vector, 1..MaxDim
	Width     int // b: the ring is Z/2^b, 1..32
	MaxSymbol int // Q: every honest symbol is in -Q..Q, at least 1
	// MaxSum bounds what the honest symbols of a whole shard add up to in one coordinate. It may be
	// less than ShardMax*MaxSymbol, as it is if symbols contain noise. 0 means that bound.
	MaxSum int

	ShardMax int // g_max: no shard is larger, 2..MaxShard
	ShardMin int // floor: a device refuses a smaller shard, 2..ShardMax

	CorruptPPM uint32 // corrupted devices to withstand, parts per million
	BreachBits int    // per shard: breach probability at most 2^-BreachBits, 0..128
	SemiHonest bool   // the server follows the protocol; only t > corrupted is asked

	Suite      Suite
	Identified bool     // rosters carry identities instead of certified per-round keys
	Authority  [32]byte // Ed25519 key that certifies per-round keys; zero if Identified
	// Logged rosters show each member's identity, its signature over the round's keys, and one
	// proof that all members were enrolled.
	Logged bool
	// Dealt rounds are Logged, and each device's group follows from its lot: see [Entry.Lot].
	Dealt bool
}

// Validate returns an error that names the first contradiction. It also refuses a ring that is too
// narrow: 2*ShardMax*MaxSymbol+1 values must fit, or 2*MaxSum+1 if MaxSum is set.
func (c Config) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case c.Dim < 1 || c.Dim > MaxDim:
		return bad("Dim %d not in 1..%d", c.Dim, MaxDim)
	case c.Width < 1 || c.Width > MaxWidth:
		return bad("Width %d not in 1..%d", c.Width, MaxWidth)
	case c.MaxSymbol < 1 || int64(c.MaxSymbol) > 1<<31-1:
		return bad("MaxSymbol %d not in 1..%d", c.MaxSymbol, int64(1<<31-1))
	case c.ShardMax < 2 || c.ShardMax > MaxShard:
		return bad("ShardMax %d not in 2..%d", c.ShardMax, MaxShard)
	case c.ShardMin < 2 || c.ShardMin > c.ShardMax:
		return bad("ShardMin %d not in 2..ShardMax=%d", c.ShardMin, c.ShardMax)
	case c.CorruptPPM >= 1000000:
		return bad("CorruptPPM %d not below 1000000", c.CorruptPPM)
	case c.BreachBits < 0 || c.BreachBits > 128:
		return bad("BreachBits %d not in 0..128", c.BreachBits)
	case c.Suite != SuiteX25519 && c.Suite != SuiteHybrid:
		return bad("Suite %d unknown", c.Suite)
	case c.Suite == SuiteHybrid && !hybridOffered:
		return bad("Suite %d is not in this build", c.Suite)
	case c.Identified && c.Authority != [32]byte{}:
		return bad("Authority given though Identified")
	case !c.Identified && c.Authority == [32]byte{}:
		return bad("Authority missing")
	case c.Dealt && !c.Logged:
		return bad("Dealt requires Logged")
	}
	if c.MaxSum != 0 {
		if c.MaxSum < c.MaxSymbol || int64(c.MaxSum) > 1<<31-1 {
			return bad("MaxSum %d not in MaxSymbol=%d..%d", c.MaxSum, c.MaxSymbol, int64(1<<31-1))
		}
		if need := RingWidth(1, c.MaxSum); need > c.Width {
			return fmt.Errorf("%w: Width %d, but sums of -%d..%d need %d bits", ErrOverflow, c.Width, c.MaxSum, c.MaxSum, need)
		}
	} else if need := RingWidth(c.ShardMax, c.MaxSymbol); need > c.Width {
		return fmt.Errorf("%w: Width %d, but %d symbols of -%d..%d need %d bits",
			ErrOverflow, c.Width, c.ShardMax, c.MaxSymbol, c.MaxSymbol, need)
	}
	for _, n := range []int{c.ShardMin, c.ShardMax} {
		if _, err := c.Threshold(n); err != nil {
			return err
		}
	}
	return nil
}

// MaxMessage is the largest encoding, in bytes, of a device's message of a turn in a shard of
// ShardMax devices. It is 0 for anything that is not a turn.
func (c Config) MaxMessage(t Turn) int {
	n := c.ShardMax
	switch t {
	case TurnAdvertise:
		return headRoom + 2*32 + c.Suite.sealKeySize() + 2*sigSize + len(ID{}) + c.lotSize()
	case TurnShare:
		return headRoom + 2*n*pointSize + (n-1)*c.Suite.sealedSize() // the threshold is n at most
	case TurnMask:
		return headRoom + (c.Dim*c.Width+7)/8
	case TurnConfirm:
		return headRoom + sigSize
	case TurnReveal:
		return headRoom + (n+7)/8 + n*scalarSize
	}
	return 0
}

// lotSize is the length of a lot's encoding in an advertisement.
func (c Config) lotSize() int {
	if c.Dealt {
		return 2 + LotSize
	}
	return 0
}

// RingWidth is the least b with 2*shard*maxSymbol+1 <= 2^b.
func RingWidth(shard, maxSymbol int) int {
	return bits.Len64(2 * uint64(shard) * uint64(maxSymbol))
}

// PlanHash is P: the hash of everything a device is asked to do in a round,
// the roster excepted. assignment is the canonical encoding of the rest of the
// plan (slices, hyperparameters, scheme, clip norm, program and base hashes).
func PlanHash(task string, round uint64, cfg Config, assignment []byte) Hash {
	b := []byte(labelPlan)
	b = binary.BigEndian.AppendUint64(b, uint64(len(task)))
	b = append(b, task...)
	b = binary.BigEndian.AppendUint64(b, round)
	enc, _ := cfg.AppendBinary(nil)
	b = binary.BigEndian.AppendUint64(b, uint64(len(enc)))
	b = append(b, enc...)
	b = binary.BigEndian.AppendUint64(b, uint64(len(assignment)))
	b = append(b, assignment...)
	return sha256.Sum256(b)
}

// Threshold is t for a shard of n devices: the least t with which the shard is broken with
// probability at most 2^-BreachBits, if each device is corrupted independently with probability
// CorruptPPM/1e6. The arithmetic is exact, so that every implementation gets the same t. The error
// wraps ErrConfig if even t = n is not enough.
func (c Config) Threshold(n int) (int, error) {
	if n < 2 || n > MaxShard {
		return 0, fmt.Errorf("%w: shard of %d devices", ErrConfig, n)
	}
	p := big.NewRat(int64(c.CorruptPPM), 1000000)
	t, ok := tail.ChooseThreshold(n, c.SemiHonest, c.BreachBits, tail.BinomialFunc(n, p))
	if !ok {
		return 0, fmt.Errorf("%w: a shard of %d cannot withstand %d ppm corrupted devices to 2^-%d with any threshold",
			ErrConfig, n, c.CorruptPPM, c.BreachBits)
	}
	return t, nil
}
