package attack

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"
)

// A Log is a coordinator's log of enrolled keys, kept as RFC 6962 writes it down: every
// hash is computed from all leaves below it.
type Log struct {
	Key    ed25519.PrivateKey
	Leaves []Leaf
}

// A Leaf is a key and when it was enrolled, by the log's word.
type Leaf struct {
	Key []byte
	At  int64
}

// NewLog returns an empty log.
func NewLog() *Log {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic(err) // without randomness there is nothing to test
	}
	return &Log{Key: key}
}

// Add appends a key, unless it is there.
func (l *Log) Add(key []byte, at int64) {
	if l.find(key) < 0 {
		l.Leaves = append(l.Leaves, Leaf{slices.Clone(key), at})
	}
}

func (l *Log) find(key []byte) int {
	return slices.IndexFunc(l.Leaves, func(leaf Leaf) bool { return slices.Equal(leaf.Key, key) })
}

// Fork is another log under the same key: the first n leaves of this one.
func (l *Log) Fork(n int) *Log { return &Log{l.Key, slices.Clone(l.Leaves[:n])} }

// mth is the hash of a tree (RFC 6962, section 2.1).
func mth(leaves []Leaf) []byte {
	var text []byte
	switch n := len(leaves); n {
	case 0:
	case 1:
		text = append([]byte{0}, Encode(Array{1, leaves[0].Key, uint64(leaves[0].At)})...)
	default:
		k := split(n)
		text = slices.Concat([]byte{1}, mth(leaves[:k]), mth(leaves[k:]))
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// split is the largest power of two below n.
func split(n int) int { return 1 << (bits.Len(uint(n-1)) - 1) }

// Head is the log's head, signed.
func (l *Log) Head() []byte { return l.HeadOf(len(l.Leaves)) }

// HeadOf is the head of its first n keys.
func (l *Log) HeadOf(n int) []byte { return l.Sign(n, mth(l.Leaves[:n])) }

// Sign signs any head.
func (l *Log) Sign(n int, root []byte) []byte {
	key := public(l.Key)
	name := "starling-log/" + hex.EncodeToString(key[:16])
	text := fmt.Sprintf("%s\n%d\n%s\n", name, n, base64.StdEncoding.EncodeToString(root))
	id := sha256.Sum256(append([]byte(name+"\n\x01"), key...))
	signature := append(id[:4:4], ed25519.Sign(l.Key, []byte(text))...)
	return []byte(text + "\n\u2014 " + name + " " + base64.StdEncoding.EncodeToString(signature) + "\n")
}

// Growth is how the log's first n keys continue from its first m (RFC 6962, section 2.1.2).
func (l *Log) Growth(m, n int) Array {
	if m == 0 || m >= n {
		return Array{m, nil}
	}
	return Array{m, slices.Concat(subproof(m, l.Leaves[:n], true)...)}
}

func subproof(m int, leaves []Leaf, whole bool) [][]byte {
	n := len(leaves)
	switch {
	case m == n && whole:
		return nil
	case m == n:
		return [][]byte{mth(leaves)}
	}
	if k := split(n); m <= k {
		return append(subproof(m, leaves[:k], whole), mth(leaves[k:]))
	} else {
		return append(subproof(m-k, leaves[k:], false), mth(leaves[:k]))
	}
}

// Members is what proves that keys are among the first n of the log (section 6): their
// places, their times, and the hashes of the largest complete subtrees without any of them.
func (l *Log) Members(n int, keys [][]byte) []byte {
	var places, times Array
	in := map[int]bool{}
	for _, key := range keys {
		i := l.find(key)
		if i < 0 || i >= n { // one that the log does not have: any place will do
			i = 0
		}
		in[i] = true
		places, times = append(places, i), append(times, uint64(l.Leaves[i].At))
	}
	var hashes []byte
	for begin := 0; begin < n; {
		size := 1 << (bits.Len(uint(n-begin)) - 1)
		hashes = append(hashes, l.without(in, begin, size)...)
		begin += size
	}
	return Encode(Array{places, times, hashes})
}

func (l *Log) without(in map[int]bool, begin, size int) []byte {
	some := false
	for i := begin; i < begin+size; i++ {
		some = some || in[i]
	}
	switch {
	case !some:
		return mth(l.Leaves[begin : begin+size])
	case size == 1:
		return nil
	}
	return append(l.without(in, begin, size/2), l.without(in, begin+size/2, size/2)...)
}

// checkMembers checks a device's shard against the head that its plan binds.
func checkMembers(head []byte, key []byte, proof []byte, keys [][]byte) error {
	var name, root string
	var n int
	if _, err := fmt.Sscanf(string(head), "%s\n%d\n%s\n", &name, &n, &root); err != nil {
		return fmt.Errorf("attack: head %q: %w", head, err)
	}
	want, err := base64.StdEncoding.DecodeString(root)
	if err != nil {
		return fmt.Errorf("attack: head %q: %w", head, err)
	}
	if !signedHead(head, key, name, n, root) {
		return fmt.Errorf("attack: head %q is not signed by the job's log", head)
	}
	a, err := DecodeArray(proof, 3)
	if err != nil {
		return err
	}
	places, _ := a[0].(Array)
	times, _ := a[1].(Array)
	hashes, _ := a[2].([]byte)
	if len(places) != len(keys) || len(times) != len(keys) {
		return fmt.Errorf("attack: %d places and %d times of %d keys", len(places), len(times), len(keys))
	}
	leaves := map[int][]byte{}
	for i, key := range keys {
		place, _ := places[i].(uint64)
		text := append([]byte{0}, Encode(Array{1, key, times[i]})...)
		sum := sha256.Sum256(text)
		leaves[int(place)] = sum[:]
	}
	var fold func(begin, size int) []byte
	fold = func(begin, size int) []byte {
		some := false
		for i := range leaves {
			some = some || i >= begin && i < begin+size
		}
		switch {
		case !some && len(hashes) >= 32:
			h := hashes[:32]
			hashes = hashes[32:]
			return h
		case !some:
			return nil
		case size == 1:
			return leaves[begin]
		}
		sum := sha256.Sum256(slices.Concat([]byte{1}, fold(begin, size/2), fold(begin+size/2, size/2)))
		return sum[:]
	}
	var roots [][]byte
	for begin := 0; begin < n; {
		size := 1 << (bits.Len(uint(n-begin)) - 1)
		roots = append(roots, fold(begin, size))
		begin += size
	}
	have := roots[len(roots)-1]
	for _, r := range slices.Backward(roots[:len(roots)-1]) {
		sum := sha256.Sum256(slices.Concat([]byte{1}, r, have))
		have = sum[:]
	}
	if !slices.Equal(have, want) || len(hashes) != 0 {
		return fmt.Errorf("attack: the shard's %d devices are not proved to be in the log of %d", len(keys), n)
	}
	return nil
}

// signedHead checks the one signature of a head.
func signedHead(head, key []byte, name string, n int, root string) bool {
	text := fmt.Sprintf("%s\n%d\n%s\n", name, n, root)
	if len(head) <= len(text) || string(head[:len(text)]) != text {
		return false
	}
	var by, signature string
	if _, err := fmt.Sscanf(string(head[len(text):]), "\n\u2014 %s %s\n", &by, &signature); err != nil || by != name {
		return false
	}
	b, err := base64.StdEncoding.DecodeString(signature)
	id := sha256.Sum256(append([]byte(name+"\n\x01"), key...))
	return err == nil && len(b) == 68 && binary.BigEndian.Uint32(b) == binary.BigEndian.Uint32(id[:]) &&
		ed25519.Verify(key, []byte(text), b[4:])
}
