package dp

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPopulation: keys by their runs, made one by one, have the roll that all of them have at
// once, which is what docs/privacy/proofs.md says it is; a key more, fewer or at another place is
// another roll.
func TestPopulation(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	nonce := [32]byte{5}
	for range 50 {
		var keys [][]byte
		for range 1 + rnd.IntN(60) {
			key := make([]byte, 1+rnd.IntN(5))
			for i := range key {
				key[i] = byte(rnd.IntN(3))
			}
			keys = append(keys, key)
		}
		slices.SortFunc(keys, bytes.Compare)
		keys = slices.CompactFunc(keys, bytes.Equal)
		all, err := Keys(keys)
		if err != nil {
			t.Fatal(err)
		}
		// By the definition, with a walk that knows nothing of the code's.
		byFirst, order := map[[2]byte][]byte{}, [][2]byte{}
		counts := map[[2]byte]uint64{}
		for _, k := range keys {
			first := [2]byte(append(bytes.Clone(k), 0, 0))
			if counts[first]++; counts[first] == 1 {
				order = append(order, first)
			}
			byFirst[first] = append(binary.BigEndian.AppendUint64(byFirst[first], uint64(len(k))), k...)
		}
		said := []byte("starling dp roll v3\x00")
		for _, first := range order {
			sum := sha256.Sum256(append([]byte("starling dp run v1\x00"), byFirst[first]...))
			said = append(binary.BigEndian.AppendUint64(said, counts[first]), sum[:]...)
		}
		mac := hmac.New(sha256.New, nonce[:])
		mac.Write(said)
		want := rollMAC(nonce, all.runs)
		if !bytes.Equal(mac.Sum(nil), want[:]) || all.Len() != len(keys) {
			t.Fatalf("%x: the roll is %x, by its definition %x", keys, want, mac.Sum(nil))
		}
		var runs []Run
		for at := 0; at < len(keys); {
			end := at + int(counts[[2]byte(append(bytes.Clone(keys[at]), 0, 0))])
			run, err := NewRun(keys[at:end])
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
			at = end
		}
		parts, err := Runs(runs)
		if err != nil || parts.Len() != len(keys) || rollMAC(nonce, parts.runs) != want {
			t.Fatalf("by runs: %d of %d, %v", parts.Len(), len(keys), err)
		}
		i := rnd.IntN(len(keys))
		others := [][][]byte{slices.Delete(slices.Clone(keys), i, i+1), append(slices.Clone(keys), []byte{9})}
		if i > 0 {
			swapped := slices.Clone(keys)
			swapped[i], swapped[i-1] = swapped[i-1], swapped[i]
			others = append(others, swapped)
		}
		for _, other := range others {
			if p, err := Keys(other); err != nil || rollMAC(nonce, p.runs) == want {
				t.Fatalf("%x has the roll of %x, %v", other, keys, err)
			}
		}
	}
}

// TestPopulationRefuses: one identity has one coin, whoever keeps the runs.
func TestPopulationRefuses(t *testing.T) {
	run := func(keys ...[]byte) error { _, err := NewRun(keys); return err }
	one, err := NewRun([][]byte{{1, 2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	two, err := NewRun([][]byte{{1, 3}})
	if err != nil {
		t.Fatal(err)
	}
	population := func(runs ...Run) error { _, err := Runs(runs); return err }
	keys := func(keys ...[]byte) error { _, err := Keys(keys); return err }
	for name, err := range map[string]error{
		"nobody": run(), "an empty key": run([]byte{}), "an empty key behind": run([]byte{0}, []byte{}),
		"twice": run([]byte{1, 2, 3}, []byte{1, 2, 3}), "descending": run([]byte{1, 2, 4}, []byte{1, 2, 3}),
		"another beginning": run([]byte{1, 2}, []byte{1, 3}), "a run twice": population(one, one),
		"runs that descend": population(two, one), "a run without keys": population(Run{}),
		"a key twice": keys([]byte{1}, []byte{2}, []byte{1}), "a key of nothing": keys([]byte{1}, []byte{}),
	} {
		if !errors.Is(err, ErrCertificate) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := population(one, two); err != nil {
		t.Error(err)
	}
}
