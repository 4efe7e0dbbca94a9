package log

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/starling-fl/starling/secagg/log/vrf"
)

// numbered is a device's key, and its leaf of a second.
func numbered(n int) (ed25519.PrivateKey, [32]byte) {
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], uint64(n))
	key := ed25519.NewKeyFromSeed(seed[:])
	return key, [32]byte(key.Public().(ed25519.PublicKey))
}

func aDeal(round uint64, root byte) *Deal {
	return &Deal{Task: [32]byte{1}, Round: round, Head: Head{100, Hash{root}}}
}

func group(t testing.TB, d *Deal, n, groups int) int {
	t.Helper()
	key, public := numbered(n)
	proof, err := d.Prove(key)
	if err != nil {
		t.Fatal(err)
	}
	g, err := d.Group(&public, &proof, groups)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestDealIsFair: of 320 devices as many are in each of 8 groups as chance puts there, and
// two deals of the same devices have nothing to do with each other.
func TestDealIsFair(t *testing.T) {
	const groups, devices = 8, 320
	var both [groups][groups]float64
	first, second := aDeal(1, 1), aDeal(2, 1)
	for n := range devices {
		both[group(t, first, n, groups)][group(t, second, n, groups)]++
	}
	off := 0.0
	for _, row := range both {
		for _, n := range row {
			off += (n - devices/(groups*groups)) * (n - devices/(groups*groups)) / (devices / (groups * groups))
		}
	}
	// Chi-square of 63 degrees of freedom: 103.4 is passed once in a thousand times.
	if math.IsNaN(off) || off > 103.4 || off < 33 {
		t.Errorf("chi-square %.1f of pairs of groups", off)
	}
}

// TestForeignProofs: what a device drew once, for another round, head or job, or what another
// drew, places it nowhere; nor does a lie about it.
func TestForeignProofs(t *testing.T) {
	d := aDeal(7, 1)
	key, public := numbered(1)
	proof, err := d.Prove(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Group(&public, &proof, 4); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, d *Deal, public [32]byte, proof [vrf.ProofSize]byte, groups int) {
		t.Helper()
		if g, err := d.Group(&public, &proof, groups); !errors.Is(err, ErrDeal) {
			t.Errorf("%s: group %d, %v", what, g, err)
		}
	}
	refused("an old round's", aDeal(8, 1), public, proof, 4)
	refused("another head's", aDeal(7, 2), public, proof, 4)
	grown := *d
	grown.Head.Size++
	refused("a longer log's", &grown, public, proof, 4)
	job := *d
	job.Task[31] = 1
	refused("another job's", &job, public, proof, 4)
	_, other := numbered(2)
	refused("another device's", d, other, proof, 4)
	for at := range proof {
		lie := proof
		lie[at] ^= 4
		refused("a lie", d, public, lie, 4)
	}
	refused("no groups", d, public, proof, 0)
	refused("too many groups", d, public, proof, MaxGroups+1)
}

// TestGroundHeads: a coordinator enrols twelve keys and tries 64 last leaves before it shows
// the head, which brings many of its keys together in one of four groups. It knows where its
// own will be; where honest devices are it learns when they say so, and what it has tried
// moves none of them: they meet as chance has it.
func TestGroundHeads(t *testing.T) {
	const groups, invented, honest, tries = 4, 12, 64, 64
	best, with := -1, Head{}
	where := 0
	for try := range tries {
		head := grownBy(t, invented, uint64(try))
		d := &Deal{Task: [32]byte{1}, Round: 1, Head: head}
		var in [groups]int
		for n := range invented {
			in[group(t, d, n, groups)]++
		}
		if most := slices.Max(in[:]); most > best {
			best, with, where = most, head, slices.Index(in[:], most)
		}
	}
	if best < 7 {
		t.Fatalf("%d of %d together after %d tries: the test shows nothing", best, invented, tries)
	}
	d := &Deal{Task: [32]byte{1}, Round: 1, Head: with}
	var met [groups]int
	for n := range honest {
		met[group(t, d, 1000+n, groups)]++
	}
	// Binomial(64, 1/4): mean 16, standard deviation 3.5.
	for g, n := range met {
		if n < 4 || n > 28 {
			t.Errorf("%d of %d honest devices are in group %d; the ground one is %d", n, honest, g, where)
		}
	}
}

// TestGrindingBits holds the figures of docs/RATIONALE.md, *Devices are aggregated by masks*: how many
// of a coordinator's own keys it can expect in one of 156 groups after 2^b heads. Each bit
// gives it less than one key; honest devices it does not move.
func TestGrindingBits(t *testing.T) {
	const groups, keys = 156, 9_984
	// atLeast is log2 of the probability that one group has so many of the keys.
	atLeast := func(least int) float64 {
		choose := func(n, k float64) float64 {
			a, _ := math.Lgamma(n + 1)
			b, _ := math.Lgamma(k + 1)
			c, _ := math.Lgamma(n - k + 1)
			return a - b - c
		}
		sum := 0.0
		first := 0.0
		for k := least; k < least+400; k++ {
			term := choose(keys, float64(k)) - float64(k)*math.Log(groups) + (keys-float64(k))*math.Log1p(-1.0/groups)
			if k == least {
				first = term
			}
			sum += math.Exp(term - first)
		}
		return (first + math.Log(sum)) / math.Ln2
	}
	for tried, want := range map[float64]int{0: 86, 20: 115, 40: 136, 60: 152} {
		most := keys / groups
		for math.Log2(groups)+tried+atLeast(most) > 0 {
			most++
		}
		if most != want {
			t.Errorf("2^%v heads: %d keys, want %d", tried, most, want)
		}
	}
}

// grownBy is the head of a log of numbered keys, of which the last was enrolled at a second
// of its keeper's choice.
func grownBy(t *testing.T, keys int, last uint64) Head {
	t.Helper()
	var stored []Hash
	reader := tlog.HashReaderFunc(func(at []int64) (out []Hash, err error) {
		for _, i := range at {
			out = append(out, stored[i])
		}
		return out, nil
	})
	for n := range keys {
		_, public := numbered(n)
		e := Enrolment{Key: public}
		if n == keys-1 {
			e.At = last
		}
		leaf, err := e.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		more, err := tlog.StoredHashes(int64(n), leaf, reader)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, more...)
	}
	head, err := HeadOf(int64(keys), reader)
	if err != nil {
		t.Fatal(err)
	}
	return head
}
