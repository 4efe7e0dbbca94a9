package log

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// memory is a log in memory, for tests.
type memory struct {
	leaves []Enrolment
	hashes []Hash
}

func (m *memory) ReadHashes(indexes []int64) (out []Hash, err error) {
	for _, i := range indexes {
		out = append(out, m.hashes[i])
	}
	return out, nil
}

func (m *memory) add(t testing.TB, e Enrolment) {
	h, err := e.Hash()
	if err != nil {
		t.Fatal(err)
	}
	more, err := tlog.StoredHashesForRecordHash(int64(len(m.leaves)), h, m)
	if err != nil {
		t.Fatal(err)
	}
	m.leaves, m.hashes = append(m.leaves, e), append(m.hashes, more...)
}

func (m *memory) head(t testing.TB, size int) Head {
	h, err := HeadOf(int64(size), m)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (m *memory) members(t testing.TB, size int, picks ...int) (Members, [][32]byte) {
	var of Members
	var keys [][32]byte
	for _, n := range picks {
		of.Leaves, of.At, keys = append(of.Leaves, int64(n)), append(of.At, m.leaves[n].At), append(keys, m.leaves[n].Key)
	}
	if err := of.Prove(int64(size), keys, m); err != nil {
		t.Fatal(err)
	}
	return of, keys
}

func key(n int) [32]byte { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n))) }

func filled(t testing.TB, n int) *memory {
	m := new(memory)
	for i := range n {
		m.add(t, Enrolment{key(i), 1_700_000_000 + uint64(i)/7})
	}
	return m
}

// mth is the tree's hash as RFC 6962, section 2.1, writes it down, of leaves in full.
func mth(leaves []Enrolment) Hash {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		b, _ := leaves[0].AppendBinary([]byte{0})
		return sha256.Sum256(b)
	}
	k := 1 << (bits.Len(uint(len(leaves)-1)) - 1)
	l, r := mth(leaves[:k]), mth(leaves[k:])
	return sha256.Sum256(append(append([]byte{1}, l[:]...), r[:]...))
}

func TestHeadsAreThoseOfTheStandard(t *testing.T) {
	m := filled(t, 70)
	for size := range 71 {
		if have, want := m.head(t, size).Root, mth(m.leaves[:size]); have != want {
			t.Fatalf("root of %d leaves is %v, RFC 6962 says %v", size, have, want)
		}
		if size > 0 {
			if have := Sizes(tlog.StoredHashCount(int64(size))); have != int64(size) {
				t.Fatalf("%d leaves counted as %d", size, have)
			}
		}
	}
}

// The proof of one leaf is the library's audit path but for the order and what the path
// folds of the right edge: whatever either accepts is in the tree.
func TestMembersOfAllShapes(t *testing.T) {
	m := filled(t, 40)
	rnd := rand.New(rand.NewPCG(1, 2))
	for size := 1; size <= 40; size++ {
		head := m.head(t, size)
		for picks := 1; picks <= size; picks++ {
			of, keys := m.members(t, size, rnd.Perm(size)[:picks]...)
			if err := of.Check(head, keys); err != nil {
				t.Fatalf("%d of %d: %v", picks, size, err)
			}
			for i, n := range of.Leaves { // the library agrees, leaf by leaf
				p, err := tlog.ProveRecord(int64(size), n, m)
				if err != nil {
					t.Fatal(err)
				}
				h, _ := Enrolment{keys[i], of.At[i]}.Hash()
				if err := tlog.CheckRecord(p, int64(size), head.Root, n, h); err != nil {
					t.Fatal(err)
				}
			}
			b, _ := of.AppendBinary(nil)
			var back Members
			if err := back.UnmarshalBinary(b); err != nil {
				t.Fatal(err)
			}
			if err := back.Check(head, keys); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestMembersThatLie(t *testing.T) {
	m := filled(t, 100)
	const size = 90
	head := m.head(t, size)
	lies := map[string]func(of *Members, keys [][32]byte) [][32]byte{
		"a key that is not in the log":   func(_ *Members, k [][32]byte) [][32]byte { k[1] = key(1000); return k },
		"a key that came after the head": func(of *Members, k [][32]byte) [][32]byte { k[1], of.At[1] = key(95), m.leaves[95].At; return k },
		"a leaf beyond the head":         func(of *Members, k [][32]byte) [][32]byte { of.Leaves[1] = 95; return k },
		"a leaf below nothing":           func(of *Members, k [][32]byte) [][32]byte { of.Leaves[1] = -1; return k },
		"another time":                   func(of *Members, k [][32]byte) [][32]byte { of.At[2] -= 3600; return k },
		"a time beyond all":              func(of *Members, k [][32]byte) [][32]byte { of.At[2] = 1 << 63; return k },
		"another leaf's number":          func(of *Members, k [][32]byte) [][32]byte { of.Leaves[0]++; return k },
		"two keys exchanged":             func(_ *Members, k [][32]byte) [][32]byte { k[0], k[1] = k[1], k[0]; return k },
		"one key twice": func(of *Members, k [][32]byte) [][32]byte {
			k[1], of.Leaves[1], of.At[1] = k[0], of.Leaves[0], of.At[0]
			return k
		},
		"a hash too few":                  func(of *Members, k [][32]byte) [][32]byte { of.Hashes = of.Hashes[1:]; return k },
		"a hash too many":                 func(of *Members, k [][32]byte) [][32]byte { of.Hashes = append(of.Hashes, Hash{}); return k },
		"no hashes":                       func(of *Members, k [][32]byte) [][32]byte { of.Hashes = nil; return k },
		"another hash":                    func(of *Members, k [][32]byte) [][32]byte { of.Hashes[3][5] ^= 1; return k },
		"fewer leaves than keys":          func(of *Members, k [][32]byte) [][32]byte { of.Leaves = of.Leaves[1:]; return k },
		"fewer times than keys":           func(of *Members, k [][32]byte) [][32]byte { of.At = of.At[1:]; return k },
		"no keys":                         func(of *Members, k [][32]byte) [][32]byte { of.Leaves, of.At = nil, nil; return nil },
		"an inner node in a leaf's stead": func(of *Members, k [][32]byte) [][32]byte { k[0] = m.hashes[2]; return k },
	}
	for name, lie := range lies {
		of, keys := m.members(t, size, 5, 17, 42, 88)
		if err := of.Check(head, keys); err != nil {
			t.Fatal(err)
		}
		if err := of.Check(head, lie(&of, keys)); !errors.Is(err, ErrProof) && !errors.Is(err, ErrEncoding) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A key that is in no log, beside one whose leaf it names.
	for _, first := range []bool{false, true} {
		of, keys := m.members(t, size, 5, 17, 42, 88)
		at, leaves := of.At[0], of.Leaves[0]
		if first {
			of.Leaves, of.At, keys = slices.Insert(of.Leaves, 0, leaves), slices.Insert(of.At, 0, at), slices.Insert(keys, 0, key(1000))
		} else {
			of.Leaves, of.At, keys = append(of.Leaves, leaves), append(of.At, at), append(keys, key(1000))
		}
		if err := of.Check(head, keys); !errors.Is(err, ErrProof) {
			t.Errorf("a key that names another's leaf: %v", err)
		}
	}
	of, keys := m.members(t, size, 5, 17)
	for _, other := range []Head{m.head(t, size-1), m.head(t, size+1), {size, Hash{}}, {0, head.Root}, {-1, head.Root}, {MaxSize + 1, head.Root}} {
		if err := of.Check(other, keys); !errors.Is(err, ErrProof) {
			t.Errorf("against the head of %d keys: %v", other.Size, err)
		}
	}
}

func TestConsistency(t *testing.T) {
	m, fork := filled(t, 40), filled(t, 20)
	fork.add(t, Enrolment{Key: key(999)})
	for i := 21; i < 40; i++ {
		fork.add(t, m.leaves[i])
	}
	for size := int64(0); size <= 40; size++ {
		for from := int64(0); from <= size; from++ {
			proof, err := ProveConsistency(from, size, m)
			if err != nil {
				t.Fatal(err)
			}
			a, b := m.head(t, int(from)), m.head(t, int(size))
			if err := CheckConsistency(proof, a, b); err != nil {
				t.Fatalf("%d to %d: %v", from, size, err)
			}
			if from < size {
				if err := CheckConsistency(proof, b, a); !errors.Is(err, ErrProof) {
					t.Fatalf("back from %d to %d: %v", size, from, err)
				}
			}
			// Behind the twentieth leaf the two logs differ: neither goes on where the other ended.
			if from > 20 {
				other := fork.head(t, int(size))
				forged, err := ProveConsistency(from, size, fork)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range [][]Hash{proof, forged} {
					if err := CheckConsistency(p, a, other); !errors.Is(err, ErrProof) {
						t.Fatalf("a fork at 20 is consistent from %d to %d: %v", from, size, err)
					}
				}
			}
		}
	}
	if err := CheckConsistency(make([]Hash, MaxConsistency+1), m.head(t, 3), m.head(t, 9)); !errors.Is(err, ErrProof) {
		t.Errorf("a proof of wild size: %v", err)
	}
}

func TestHeadsAreSigned(t *testing.T) {
	seed := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	log := [32]byte(seed.Public().(ed25519.PublicKey))
	m := filled(t, 9)
	head := m.head(t, 9)
	signed, err := head.Sign(seed)
	if err != nil {
		t.Fatal(err)
	}
	if have, err := OpenHead(signed, log, ""); err != nil || have != head {
		t.Fatalf("%v, %v", have, err)
	}
	wit, vkey, err := note.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{3}, 64)), "witness.example")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenHead(signed, log, vkey); !errors.Is(err, ErrUnwitnessed) {
		t.Errorf("a head that the witness has not signed: %v", err)
	}
	if _, err := OpenHead(signed, log, "nobody"); !errors.Is(err, ErrHead) {
		t.Errorf("a witness that is not a key: %v", err)
	}
	w, err := note.NewSigner(wit)
	if err != nil {
		t.Fatal(err)
	}
	cosigned, err := note.Sign(&note.Note{Text: head.text(Name(log))}, signer{seed, Name(log)}, w)
	if err != nil {
		t.Fatal(err)
	}
	if have, err := OpenHead(cosigned, log, vkey); err != nil || have != head {
		t.Errorf("a head that the witness has signed: %v, %v", have, err)
	}
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, 32))
	for name, b := range map[string][]byte{
		"nothing":          nil,
		"another key's":    must(head.Sign(other)),
		"another size":     bytes.Replace(signed, []byte("\n9\n"), []byte("\n8\n"), 1),
		"a size with zero": must(note.Sign(&note.Note{Text: strings.Replace(head.text(Name(log)), "\n9\n", "\n09\n", 1)}, signer{seed, Name(log)})),
		"a size below":     must(note.Sign(&note.Note{Text: strings.Replace(head.text(Name(log)), "\n9\n", "\n-9\n", 1)}, signer{seed, Name(log)})),
		"a wild size":      must(note.Sign(&note.Note{Text: strings.Replace(head.text(Name(log)), "\n9\n", "\n9999999999999999999\n", 1)}, signer{seed, Name(log)})),
		"a root too short": must(note.Sign(&note.Note{Text: Name(log) + "\n9\nAAAA\n"}, signer{seed, Name(log)})),
		"another name":     must(note.Sign(&note.Note{Text: head.text("starling-log/0")}, signer{seed, Name(log)})),
		"another line":     must(note.Sign(&note.Note{Text: head.text(Name(log)) + "more\n"}, signer{seed, Name(log)})),
		"too long":         append(bytes.Repeat([]byte("a"), MaxNote), signed...),
	} {
		if _, err := OpenHead(b, log, ""); !errors.Is(err, ErrHead) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The cosignature was made by github.com/transparency-dev/formats v0.1.1, of a head with 9
// keys of the log whose seed is 32 sevens.
func TestWitnessesSignWithTheTime(t *testing.T) {
	const text = "starling-log/ea4a6c63e29c520abef5507b132ec5f9\n9\nCXZ4bIYbUEnzHbQ5hFhKTDLBkpnzjkk9e4k9qDzdrKM=\n"
	const line = "— witness.example reJIigAAAABrBBpa2pu0GvEBvX8KtKLt4cuuh54mUweVjOprqVbye44OZwpafjLHqpPT9VTTzCgM6FjxZMXtrvhTBMENDFzkUjpeBA==\n"
	const witness = "witness.example+ade2488a+BO1JKMYo0cLG6ukDOJBZlWEpWSc6XGP5NjbBRhSshzfR"
	seed := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	log := [32]byte(seed.Public().(ed25519.PublicKey))
	signed := must(note.Sign(&note.Note{Text: text}, signer{seed, Name(log)}))
	both, err := Cosigned(signed, []byte(line), log)
	if err != nil {
		t.Fatal(err)
	}
	if head, err := OpenHead(both, log, witness); err != nil || head.Size != 9 {
		t.Errorf("%v, %v", head, err)
	}
	if _, err := OpenHead(bytes.Replace(both, []byte("AAAABrBB"), []byte("AAAABrBC"), 1), log, witness); !errors.Is(err, ErrHead) {
		t.Errorf("another time: %v", err)
	}
	for _, bad := range []string{"", "no line", line[:40], strings.Repeat(line, 20)} {
		if both, err := Cosigned(signed, []byte(bad), log); bad != "" && !errors.Is(err, ErrHead) {
			t.Errorf("%q behind a head: %q, %v", bad, both, err)
		}
	}
	for _, bad := range []string{"witness.example+ade2488b" + witness[24:], "other.example" + witness[15:], "+ade2488a" + witness[24:], witness[:30]} {
		if v, err := ParseWitness(bad); !errors.Is(err, ErrHead) {
			t.Errorf("%q is taken for a key: %v, %v", bad, v, err)
		}
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func FuzzMembers(f *testing.F) {
	m := filled(f, 30)
	for _, picks := range [][]int{{0}, {29}, {3, 9, 27}} {
		of, _ := m.members(f, 30, picks...)
		b, _ := of.AppendBinary(nil)
		f.Add(b)
	}
	head := m.head(f, 30)
	f.Fuzz(func(t *testing.T, b []byte) {
		var of Members
		if of.UnmarshalBinary(b) != nil {
			return
		}
		again, err := of.AppendBinary(nil)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x decodes and encodes as %x", b, again)
		}
		keys := make([][32]byte, len(of.Leaves))
		for i, n := range of.Leaves {
			keys[i] = key(int(n))
		}
		if of.Check(head, keys) == nil { // then each is the leaf that it says it is
			for i, n := range of.Leaves {
				if m.leaves[n].Key != keys[i] || m.leaves[n].At != of.At[i] {
					t.Fatalf("leaf %d is proved to be what it is not", n)
				}
			}
		}
	})
}

func FuzzOpenHead(f *testing.F) {
	seed := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	log := [32]byte(seed.Public().(ed25519.PublicKey))
	f.Add(must(filled(f, 5).head(f, 5).Sign(seed)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := OpenHead(b, log, ""); err == nil {
			if !bytes.HasPrefix(b, []byte(h.text(Name(log)))) {
				t.Fatalf("%q is read as %v", b, h)
			}
		}
	})
}
