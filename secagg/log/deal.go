package log

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/starling-fl/starling/secagg/log/vrf"
)

// A Deal divides a round's devices into groups. A device's group follows, through a verifiable
// random function, from its enrolled key and from the fields below. Nobody can predict another
// device's group, and nobody, the coordinator included, can choose the group of a device or of an
// invented key: a key must be in the log before the head that it draws with exists.
type Deal struct {
	Task  [32]byte // of the job
	Round uint64
	Head  Head // of the log, as the round's plan binds it
}

// ErrDeal is a proof that does not place its device in any group of the deal.
var ErrDeal = errors.New("log: the deal does not follow from the device's key")

// dealLabel separates these draws from all others of the same keys.
const dealLabel = "starling/1 deal\x00"

// input is what all devices of the round draw with. Nothing else of a plan is in it: whatever
// the coordinator could vary there would be one more try for a deal that suits it.
func (d *Deal) input() []byte {
	b := append(make([]byte, 0, len(dealLabel)+32+8+8+len(d.Head.Root)), dealLabel...)
	b = append(b, d.Task[:]...)
	b = binary.BigEndian.AppendUint64(b, d.Round)
	b = binary.BigEndian.AppendUint64(b, uint64(d.Head.Size))
	return append(b, d.Head.Root[:]...)
}

// Prove draws for the device with that key. The proof shows its group, for any number of groups.
func (d *Deal) Prove(key ed25519.PrivateKey) ([vrf.ProofSize]byte, error) {
	proof, err := vrf.Prove(key, d.input())
	if err != nil {
		return proof, fmt.Errorf("log: deal of round %d: %w", d.Round, err)
	}
	return proof, nil
}

// MaxGroups is the most groups of a deal.
const MaxGroups = 1 << 24

// Group verifies a device's proof and returns its group in 0..groups-1. The error wraps ErrDeal if
// the proof is for another key, job, round or head. The probabilities of groups differ by less than
// MaxGroups in 2^64.
func (d *Deal) Group(key *[32]byte, proof *[vrf.ProofSize]byte, groups int) (int, error) {
	if groups < 1 || groups > MaxGroups {
		return 0, fmt.Errorf("%w: %d groups, must be in 1..%d", ErrDeal, groups, MaxGroups)
	}
	output, err := vrf.Verify(key, d.input(), proof)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrDeal, err)
	}
	group, _ := bits.Mul64(binary.BigEndian.Uint64(output[:]), uint64(groups))
	return int(group), nil
}
