package log

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A Head is the state of a log: the number of its leaves, and the hash over them.
type Head struct {
	Size int64
	Root Hash
}

// MaxNote bounds a signed head in bytes.
const MaxNote = 1024

// Name is a log's name, which follows from the key that signs its heads. It is the first line of
// each head, and the name of its signature.
func Name(key [32]byte) string { return "starling-log/" + hex.EncodeToString(key[:16]) }

// HeadOf reads the head of a tree of size leaves.
func HeadOf(size int64, r tlog.HashReader) (Head, error) {
	root, err := tlog.TreeHash(size, r)
	if err != nil {
		return Head{}, fmt.Errorf("log: hash of %d leaves: %w", size, err)
	}
	return Head{size, root}, nil
}

// text is what is signed, in the form of a checkpoint (C2SP tlog-checkpoint): the log's
// name, the size, the root.
func (h Head) text(name string) string {
	return fmt.Sprintf("%s\n%d\n%s\n", name, h.Size, base64.StdEncoding.EncodeToString(h.Root[:]))
}

// Sign writes the head as a signed note.
func (h Head) Sign(key ed25519.PrivateKey) ([]byte, error) {
	signer := signer{key: key, name: Name([32]byte(key.Public().(ed25519.PublicKey)))}
	signed, err := note.Sign(&note.Note{Text: h.text(signer.name)}, signer)
	if err != nil {
		return nil, fmt.Errorf("log: signing a head: %w", err)
	}
	return signed, nil
}

// signer is note.Signer for a key that is held already: the library's own wants it as
// text.
type signer struct {
	key  ed25519.PrivateKey
	name string
}

func (s signer) Name() string { return s.name }

func (s signer) KeyHash() uint32 {
	v, err := verifier([32]byte(s.key.Public().(ed25519.PublicKey)))
	if err != nil {
		return 0 // names of ours are valid
	}
	return v.KeyHash()
}

func (s signer) Sign(msg []byte) ([]byte, error) { return ed25519.Sign(s.key, msg), nil }

func verifier(key [32]byte) (note.Verifier, error) {
	text, err := note.NewEd25519VerifierKey(Name(key), key[:])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHead, err)
	}
	v, err := note.NewVerifier(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHead, err)
	}
	return v, nil
}

// ErrUnwitnessed is a head that the owner's witness has not signed. It may be requested again: the
// witness may have been unreachable.
var ErrUnwitnessed = errors.New("log: the owner's witness has not signed the head")

// OpenHead verifies and reads a head signed by the log's key. A head may carry signatures of
// witnesses as well: to require one, pass its key in the form that ParseWitness reads, otherwise
// "". The head is returned with ErrUnwitnessed, too.
func OpenHead(signed []byte, key [32]byte, witness string) (Head, error) {
	if len(signed) > MaxNote {
		return Head{}, fmt.Errorf("%w: %d bytes, limit %d", ErrHead, len(signed), MaxNote)
	}
	own, err := verifier(key)
	if err != nil {
		return Head{}, err
	}
	opened, err := note.Open(signed, note.VerifierList(own))
	if err != nil {
		return Head{}, fmt.Errorf("%w: %w", ErrHead, err)
	}
	h, err := parseHead(opened.Text, own.Name())
	if err != nil || witness == "" {
		return h, err
	}
	other, err := ParseWitness(witness)
	if err != nil {
		return Head{}, err
	}
	if _, err := note.Open(signed, note.VerifierList(other)); err != nil {
		if none := new(note.UnverifiedNoteError); errors.As(err, &none) {
			return h, fmt.Errorf("%w: %q: %w", ErrUnwitnessed, other.Name(), err)
		}
		return Head{}, fmt.Errorf("%w: %q has not signed it: %w", ErrHead, other.Name(), err)
	}
	return h, nil
}

// parseHead reads exactly what text writes.
func parseHead(text, name string) (h Head, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return h, fmt.Errorf("%w: %d lines, 3 expected", ErrHead, len(lines)-1)
	}
	if lines[0] != name {
		return h, fmt.Errorf("%w: it is of the log %.80q, not %q", ErrHead, lines[0], name)
	}
	if h.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || h.Size < 0 || h.Size > MaxSize {
		return Head{}, fmt.Errorf("%w: size %.20q, must be in 0..%d", ErrHead, lines[1], int64(MaxSize))
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return Head{}, errors.Join(fmt.Errorf("%w: root %.60q is not a hash", ErrHead, lines[2]), err)
	}
	h.Root = Hash(root)
	if h.text(name) != text {
		return Head{}, fmt.Errorf("%w: not in its one form", ErrHead)
	}
	return h, nil
}

// MaxConsistency is the most hashes that a proof of consistency has.
const MaxConsistency = 2*40 + 2

// ProveConsistency proves that the log of size leaves extends the one of from leaves.
func ProveConsistency(from, size int64, r tlog.HashReader) ([]Hash, error) {
	if from == 0 || from == size {
		return nil, nil
	}
	proof, err := tlog.ProveTree(size, from, r)
	if err != nil {
		return nil, fmt.Errorf("log: consistency of %d leaves with %d: %w", size, from, err)
	}
	return proof, nil
}

// CheckConsistency returns an error unless the log of head to extends that of head from. Every log
// extends an empty one.
func CheckConsistency(proof []Hash, from, to Head) error {
	switch {
	case len(proof) > MaxConsistency:
		return fmt.Errorf("%w: %d hashes, limit %d", ErrProof, len(proof), MaxConsistency)
	case from.Size == 0:
		return nil
	case to.Size < from.Size:
		return fmt.Errorf("%w: the log has %d keys and had %d", ErrProof, to.Size, from.Size)
	case to.Size == from.Size && to.Root != from.Root:
		return fmt.Errorf("%w: two logs of %d keys", ErrProof, to.Size)
	case to.Size == from.Size:
		return nil
	}
	if err := tlog.CheckTree(proof, to.Size, to.Root, from.Size, from.Root); err != nil {
		return fmt.Errorf("%w: the log of %d keys does not begin with the %d that it had: %w", ErrProof, to.Size, from.Size, err)
	}
	return nil
}
