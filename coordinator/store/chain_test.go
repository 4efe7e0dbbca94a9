package store

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-fl/starling/dp"
)

func chainEvent(t testing.TB, round uint64) dp.Event {
	t.Helper()
	e, err := dp.ReleaseSpec{Round: round, SamplingRate: 0.01, B2: 2_936_012, NoiseMultiplier: 1.2457365, NoiseScale: 1, Certificate: [32]byte{1, 2, 3}}.Event(135_680)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func testChain(t testing.TB, n int) ([32]byte, []Entry) {
	t.Helper()
	genesis := genesisHash([]byte("job"))
	head := genesis
	var entries []Entry
	for i := range n {
		e := Entry{Seq: uint64(i), Event: chainEvent(t, uint64(i+1))}
		var err error
		if e.Hash, err = nextHash(head, e.Seq, e.Event); err != nil {
			t.Fatal(err)
		}
		head = e.Hash
		entries = append(entries, e)
	}
	return genesis, entries
}

func TestChainShowsEveryChange(t *testing.T) {
	genesis, good := testChain(t, 6)
	head, err := verifyChain(genesis, good)
	if err != nil || head != good[5].Hash {
		t.Fatalf("%v", err)
	}
	if h, err := verifyChain(genesis, nil); err != nil || h != genesis {
		t.Errorf("empty ledger: %x, %v", h, err)
	}
	for name, change := range map[string]func([]Entry) []Entry{
		"field":       func(e []Entry) []Entry { e[2].Event.Round = 99; return e },
		"kind":        func(e []Entry) []Entry { e[5].Event.Kind = dp.KindCharged; return e },
		"certificate": func(e []Entry) []Entry { e[0].Event.Certificate[31] ^= 1; return e },
		"hash":        func(e []Entry) []Entry { e[3].Hash[0] ^= 1; return e },
		"swap":        func(e []Entry) []Entry { e[1], e[2] = e[2], e[1]; return e },
		"swap, renumbered": func(e []Entry) []Entry {
			e[1], e[2] = e[2], e[1]
			e[1].Seq, e[2].Seq = 1, 2
			return e
		},
		"removed": func(e []Entry) []Entry { return slices.Delete(e, 2, 3) },
		"removed, renumbered": func(e []Entry) []Entry {
			e = slices.Delete(e, 2, 3)
			for i := range e {
				e[i].Seq = uint64(i)
			}
			return e
		},
		"numbered with a gap": func(e []Entry) []Entry {
			e[5].Seq = 6
			e[5].Hash, _ = nextHash(e[4].Hash, 6, e[5].Event)
			return e
		},
		"first removed": func(e []Entry) []Entry { return e[1:] },
		"repeated":      func(e []Entry) []Entry { return append(e, e[5]) },
		"invalid event": func(e []Entry) []Entry { e[4].Event.SamplingRate = 2; return e },
	} {
		if _, err := verifyChain(genesis, change(slices.Clone(good))); !errors.Is(err, ErrLedger) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := verifyChain(genesisHash([]byte("another job")), good); !errors.Is(err, ErrLedger) {
		t.Errorf("another job's ledger: %v", err)
	}
	// What a chain alone cannot show: a cut at the end. The head does.
	if h, err := verifyChain(genesis, good[:5]); err != nil || h == head {
		t.Errorf("cut ledger: head %x, %v", h, err)
	}
}

// An entry's number is in its hash: the same event elsewhere in the ledger has another.
func TestChainNumbersEntries(t *testing.T) {
	e := chainEvent(t, 1)
	a, err := nextHash([32]byte{}, 1, e)
	if err != nil {
		t.Fatal(err)
	}
	b, err := nextHash([32]byte{}, 2, e)
	if err != nil || a == b {
		t.Errorf("%x at 1 and at 2: %v", a[:8], err)
	}
}
