package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/starling-fl/starling/dp"
)

// genesisHash starts the chain of a ledger that is named by any bytes that are unique to it.
func genesisHash(ledger []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte("starling dp ledger v1\x00"))
	h.Write(ledger)
	return [32]byte(h.Sum(nil))
}

// nextHash extends the chain by an event at position seq.
func nextHash(prev [32]byte, seq uint64, e dp.Event) ([32]byte, error) {
	b := append(make([]byte, 0, 256), "starling dp entry v1\x00"...)
	b = append(b, prev[:]...)
	b = binary.BigEndian.AppendUint64(b, seq)
	b, err := e.AppendBinary(b)
	if err != nil {
		return [32]byte{}, err
	}
	return sha256.Sum256(b), nil
}

// verifyChain checks every entry and returns the hash of the last one (genesis for an empty
// ledger), or a LedgerError. A cut at the end shows only against a head kept elsewhere: compare the
// returned hash with it.
func verifyChain(genesis [32]byte, entries []Entry) (head [32]byte, err error) {
	head = genesis
	for i, e := range entries {
		if e.Seq != uint64(i) {
			return head, &LedgerError{uint64(i), fmt.Sprintf("its sequence number is %d", e.Seq)}
		}
		next, err := nextHash(head, e.Seq, e.Event)
		if err != nil {
			return head, &LedgerError{uint64(i), err.Error()}
		}
		if next != e.Hash {
			return head, &LedgerError{uint64(i), fmt.Sprintf("round %d has hash %x, want %x", e.Event.Round, e.Hash[:8], next[:8])}
		}
		head = next
	}
	return head, nil
}
