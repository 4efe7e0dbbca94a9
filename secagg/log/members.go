package log

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/starling-fl/starling/internal/protocol/cbor"
)

// MaxMembers is the most keys that one proof is about: a shard's.
const MaxMembers = 1024

// Members prove that some keys are in a log, where, and since when. Audit paths of many leaves have
// most of their upper hashes in common, and hashes that follow from other leaves are left out: for
// 64 keys of a million the proof takes 29 KB instead of 41.
type Members struct {
	Leaves []int64  // numbers in the log, in the order of the keys
	At     []uint64 // when each was enrolled, seconds since 1970
	Hashes []Hash   // of the largest subtrees without any of the leaves, from left to right
}

// leaf is one of a proof's.
type leaf struct {
	n    int64
	hash Hash
}

// fold computes the root of the subtree of 2^level leaves that begins at n<<level from
// those of leaves, sorted, that are in it; other says the root of one in which none lies.
func fold(level int, n int64, leaves []leaf, other func(level int, n int64) (Hash, error)) (Hash, error) {
	switch {
	case len(leaves) == 0:
		return other(level, n)
	case level == 0:
		return leaves[0].hash, nil
	}
	middle, _ := slices.BinarySearchFunc(leaves, (2*n+1)<<(level-1), func(l leaf, at int64) int { return cmp.Compare(l.n, at) })
	left, err := fold(level-1, 2*n, leaves[:middle], other)
	if err != nil {
		return Hash{}, err
	}
	right, err := fold(level-1, 2*n+1, leaves[middle:], other)
	if err != nil {
		return Hash{}, err
	}
	return tlog.NodeHash(left, right), nil
}

// root is the hash of a tree of size leaves, of which some are given, sorted. tlog makes
// it from the roots of the tree's complete subtrees, which fold computes.
func root(size int64, leaves []leaf, other func(level int, n int64) (Hash, error)) (Hash, error) {
	h, err := tlog.TreeHash(size, tlog.HashReaderFunc(func(indexes []int64) (out []Hash, err error) {
		for _, index := range indexes {
			level, n := tlog.SplitStoredHashIndex(index)
			end, _ := slices.BinarySearchFunc(leaves, (n+1)<<level, func(l leaf, at int64) int { return cmp.Compare(l.n, at) })
			h, err := fold(level, n, leaves[:end], other)
			if err != nil {
				return nil, err
			}
			out, leaves = append(out, h), leaves[end:]
		}
		return out, nil
	}))
	if err != nil {
		return Hash{}, fmt.Errorf("log: hash of %d leaves: %w", size, err)
	}
	return h, nil
}

// check refuses what no proof about so many keys can say.
func (m *Members) check(size int64, keys int) error {
	switch {
	case keys < 1 || keys > MaxMembers:
		return fmt.Errorf("%w: of %d keys, must be in 1..%d", ErrProof, keys, MaxMembers)
	case len(m.Leaves) != keys || len(m.At) != keys:
		return fmt.Errorf("%w: it is about %d leaves and %d times, not %d", ErrProof, len(m.Leaves), len(m.At), keys)
	case size < 1 || size > MaxSize:
		return fmt.Errorf("%w: in a log of %d keys, must be in 1..%d", ErrProof, size, int64(MaxSize))
	}
	for _, n := range m.Leaves {
		if n < 0 || n >= size {
			return fmt.Errorf("%w: leaf %d of a log of %d", ErrProof, n, size)
		}
	}
	return nil
}

// sorted are the leaves of keys by their numbers, each once.
func (m *Members) sorted(keys [][32]byte) ([]leaf, error) {
	leaves := make([]leaf, len(keys))
	for i, key := range keys {
		h, err := Enrolment{key, m.At[i]}.Hash()
		if err != nil {
			return nil, err
		}
		leaves[i] = leaf{m.Leaves[i], h}
	}
	slices.SortFunc(leaves, func(a, b leaf) int { return cmp.Compare(a.n, b.n) })
	for i := 1; i < len(leaves); i++ {
		if leaves[i].n == leaves[i-1].n {
			return nil, fmt.Errorf("%w: leaf %d is given to two keys", ErrProof, leaves[i].n)
		}
	}
	return leaves, nil
}

// Prove fills in the hashes that prove the leaves and times of keys in the log of size leaves.
func (m *Members) Prove(size int64, keys [][32]byte, r tlog.HashReader) error {
	if err := m.check(size, len(keys)); err != nil {
		return err
	}
	leaves, err := m.sorted(keys)
	if err != nil {
		return err
	}
	var need []int64
	_, err = root(size, leaves, func(level int, n int64) (Hash, error) {
		need = append(need, tlog.StoredHashIndex(level, n))
		return Hash{}, nil
	})
	if err != nil {
		return err
	}
	if m.Hashes, err = r.ReadHashes(need); err != nil {
		return fmt.Errorf("log: reading %d hashes: %w", len(need), err)
	}
	return nil
}

// Check returns an error unless each key is the leaf that m says, enrolled when m says, in the log
// of that head.
func (m *Members) Check(head Head, keys [][32]byte) error {
	if err := m.check(head.Size, len(keys)); err != nil {
		return err
	}
	leaves, err := m.sorted(keys)
	if err != nil {
		return err
	}
	rest := m.Hashes
	have, err := root(head.Size, leaves, func(level int, n int64) (Hash, error) {
		if len(rest) == 0 {
			return Hash{}, fmt.Errorf("%w: hashes are missing", ErrProof)
		}
		h := rest[0]
		rest = rest[1:]
		return h, nil
	})
	switch {
	case err != nil:
		return err
	case len(rest) != 0:
		return fmt.Errorf("%w: %d hashes too many", ErrProof, len(rest))
	case have != head.Root:
		return fmt.Errorf("%w: not all of %d keys are in the log of %d", ErrProof, len(keys), head.Size)
	}
	return nil
}

// mostHashes bounds those of a proof: a path of each leaf, and the roots of subtrees.
const mostHashes = (MaxMembers + 1) * 40

// MaxEncoded bounds the encoding of Members in bytes.
const MaxEncoded = mostHashes*tlog.HashSize + MaxMembers*(9+9) + 64

// AppendBinary appends the canonical encoding: in CDDL
// [leaves: [1*1024 uint], at: [1*1024 uint], hashes: bstr].
func (m *Members) AppendBinary(b []byte) ([]byte, error) {
	b = cbor.AppendArray(slices.Grow(b, 64+18*len(m.Leaves)+tlog.HashSize*len(m.Hashes)), 3)
	b = cbor.AppendArray(b, len(m.Leaves))
	for _, n := range m.Leaves {
		b = cbor.AppendUint(b, uint64(n))
	}
	b = cbor.AppendArray(b, len(m.At))
	for _, at := range m.At {
		b = cbor.AppendUint(b, at)
	}
	all := make([]byte, 0, tlog.HashSize*len(m.Hashes))
	for _, h := range m.Hashes {
		all = append(all, h[:]...)
	}
	return cbor.AppendBytes(b, all), nil
}

// UnmarshalBinary decodes a canonical encoding, or wraps ErrEncoding.
func (m *Members) UnmarshalBinary(data []byte) error {
	var v Members
	r := cbor.NewReader(data)
	r.Array(3, 3, "members")
	v.Leaves = make([]int64, r.Array(1, MaxMembers, "leaves"))
	for i := range v.Leaves {
		v.Leaves[i] = int64(r.Uint(MaxSize-1, "leaf"))
	}
	v.At = make([]uint64, r.Array(1, MaxMembers, "times"))
	for i := range v.At {
		v.At[i] = r.Uint(mostAt, "time")
	}
	hashes := r.Bytes(0, mostHashes*tlog.HashSize, "hashes")
	if err := r.Done(); err != nil {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	if len(hashes)%tlog.HashSize != 0 {
		return fmt.Errorf("%w: %d bytes of hashes, %d each", ErrEncoding, len(hashes), tlog.HashSize)
	}
	v.Hashes = make([]Hash, len(hashes)/tlog.HashSize)
	for i := range v.Hashes {
		copy(v.Hashes[i][:], hashes[i*tlog.HashSize:])
	}
	*m = v
	return nil
}
