// Package log implements the log of enrolled keys: an append-only Merkle tree (RFC 6962, section 2) of who
// was enrolled and when. It makes invented devices visible. Anyone who runs the coordinator can enrol
// any number of keys and can state any time for them. It cannot show a key to one device alone, nor
// enrol one after a device has seen the log's head, nor in a past during which the device already
// saw the log.
//
//	head, err := log.OpenHead(signed, key, "")
//	...
//	err = log.CheckConsistency(proof, kept, head)
//
// A device keeps the last [Head] that it saw, opened by [OpenHead] and checked by
// [CheckConsistency]; [Members.Check] verifies that a shard's keys are in the log. [Deal] derives
// groups of devices from their keys.
//
// The tree, its proofs and the signed heads are those of golang.org/x/mod/sumdb/tlog and note,
// which the Go checksum database uses. This package adds what a leaf contains, how a head is
// written, one proof for all members of a shard, and what a device keeps of a log.
//
// Threat model: the coordinator, which keeps the log and signs its heads, lies. Two signed heads
// that cannot belong to one log prove that to anybody.
package log

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/starling-fl/starling/internal/protocol/cbor"
)

var (
	// ErrEncoding is a proof or a leaf that is not the deterministic encoding of one.
	ErrEncoding = errors.New("log: bad encoding")
	// ErrHead is a head that is not a note, is another log's, or is not signed by the log's key.
	ErrHead = errors.New("log: bad head")
	// ErrProof is a proof that does not prove what it should.
	ErrProof = errors.New("log: the proof does not hold")
)

// MaxSize is the most leaves that a log may have.
const MaxSize = 1 << 40

// A Hash is of a leaf, of a subtree, or of the tree.
type Hash = tlog.Hash

// An Enrolment is a leaf: a key that was enrolled, and when, according to the log's keeper.
type Enrolment struct {
	Key [32]byte // Ed25519: the device's identity
	At  uint64   // seconds since 1970
}

// kindEnrolment is the first element of a leaf, so that a leaf of another kind can follow.
const kindEnrolment = 1

// mostAt is the last second that a leaf can hold: of the year 9999.
const mostAt = 253402300799

// AppendBinary appends the leaf's bytes: in CDDL [1, key: bstr .size 32, at: uint].
func (e Enrolment) AppendBinary(b []byte) ([]byte, error) {
	if e.At > mostAt {
		return b, fmt.Errorf("%w: enrolled at second %d, limit %d", ErrEncoding, e.At, uint64(mostAt))
	}
	b = cbor.AppendUint(cbor.AppendArray(b, 3), kindEnrolment)
	return cbor.AppendUint(cbor.AppendBytes(b, e.Key[:]), e.At), nil
}

// Hash is the leaf's hash.
func (e Enrolment) Hash() (Hash, error) {
	b, err := e.AppendBinary(make([]byte, 0, 64))
	return tlog.RecordHash(b), err
}

// Sizes returns the number of leaves of a tree of which the given number of hashes is stored, in
// the order of tlog.StoredHashIndex.
func Sizes(stored int64) (leaves int64) {
	if stored == 0 {
		return 0
	}
	level, n := tlog.SplitStoredHashIndex(stored - 1)
	return (n + 1) << level
}
