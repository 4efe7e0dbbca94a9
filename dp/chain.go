package dp

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrChain reports a ledger that was altered, reordered, cut in the middle or
// belongs to another job.
var ErrChain = errors.New("ledger hash chain broken")

// Entry is one line of the ledger as it is stored.
type Entry struct {
	Seq   uint64 // 0, 1, 2, ... without gaps
	Event Event
	Hash  [32]byte // NextHash of the entry before (GenesisHash for the first), Seq and Event
}

// GenesisHash starts the chain of the ledger of one job, named by any bytes
// that are unique to it (the hash of its configuration).
func GenesisHash(job []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte("starling dp ledger v1\x00"))
	h.Write(job)
	return [32]byte(h.Sum(nil))
}

// NextHash extends the chain by an event at position seq.
func NextHash(prev [32]byte, seq uint64, e Event) ([32]byte, error) {
	b := make([]byte, 0, 64+eventSize)
	b = append(b, "starling dp entry v1\x00"...)
	b = append(b, prev[:]...)
	b = binary.BigEndian.AppendUint64(b, seq)
	b, err := e.AppendBinary(b)
	if err != nil {
		return [32]byte{}, err
	}
	return sha256.Sum256(b), nil
}

// VerifyChain checks every entry and returns the hash of the last one
// (genesis for an empty ledger). A cut at the end shows only against a head
// kept elsewhere: compare the returned hash with it.
func VerifyChain(genesis [32]byte, entries []Entry) (head [32]byte, err error) {
	head = genesis
	for i, e := range entries {
		if e.Seq != uint64(i) {
			return head, fmt.Errorf("dp: ledger entry %d has sequence number %d: %w", i, e.Seq, ErrChain)
		}
		next, err := NextHash(head, e.Seq, e.Event)
		if err != nil {
			return head, fmt.Errorf("dp: ledger entry %d: %w: %w", i, err, ErrChain)
		}
		if next != e.Hash {
			return head, fmt.Errorf("dp: ledger entry %d (round %d): hash %x, want %x: %w", i, e.Event.Round, e.Hash[:8], next[:8], ErrChain)
		}
		head = next
	}
	return head, nil
}
