package secagg

import (
	"crypto/ed25519"
	"fmt"
	"testing"

	"github.com/starling-fl/starling/secagg/internal/tail"
)

// TestSplitViews tries every story a lying server can tell about who dropped: each
// honest device of a small shard is shown every survivor set it would accept, or
// none, in every combination; corrupted devices sign whatever is asked and hand
// over all their shares. A device is unmasked if t shares of its self-mask and t
// of its mask key come together. The bound is sharp: with breachCount corrupted
// members some story works, with one less none does.
func TestSplitViews(t *testing.T) {
	for _, c := range []struct {
		n, corrupted int
		semiHonest   bool
	}{
		{3, 0, false}, {4, 1, false}, {4, 2, false}, {5, 1, false}, {4, 1, true},
	} {
		cfg := testConfig(2, 11, 12, c.n)
		cfg.SemiHonest = c.semiHonest
		r := newRound(t, fmt.Sprint("split views", c.n, c.semiHonest), cfg, c.n)
		r.key()
		s := r.shards[0]
		threshold := s.Threshold()
		r.must(r.share(s))
		if _, err := r.mask(s); err != nil {
			t.Fatal(err)
		}
		broken := countBroken(r, s, c.corrupted)
		// A semi-honest threshold promises nothing against lies; else the count decides.
		want := c.corrupted >= tail.BreachCount(c.n, threshold, false)
		if (broken > 0) != want {
			t.Errorf("%d devices, t=%d, %d corrupted: %d stories unmask a device", c.n, threshold, c.corrupted, broken)
		}
	}
}

func countBroken(r *round, s *Server, corrupted int) (broken int) {
	n, honest := len(s.members), len(s.members)-corrupted
	var clients []*Client
	for _, id := range s.Members() {
		clients = append(clients, r.byID[id].c)
	}
	seed := fmt.Sprint("split views", n, r.cfg.SemiHonest)
	// views[i]: nil (not asked) and every set that client i confirms.
	views := make([][]Set, honest)
	confirmed := make([]map[string]*Client, honest)
	for i := range views {
		views[i], confirmed[i] = []Set{nil}, map[string]*Client{}
		for bits := range 1 << n {
			u3 := Set{byte(bits)}
			c := cloneClient(clients[i])
			if _, err := c.Confirm(&Survivors{Roster: s.roster, U2: s.u2, U3: u3}); err == nil {
				views[i] = append(views[i], u3)
				confirmed[i][string(u3)] = c
			}
		}
	}
	signers := make([]ed25519.PrivateKey, n)
	for i, id := range s.Members() {
		signers[i] = r.roundSigner(seed, id)
	}
	// A reveal depends on the client, its view, and who signed that view.
	reveals := map[string]*Reveal{}
	story := make([]Set, honest)
	var tell func(i int)
	tell = func(i int) {
		if i < honest {
			for _, v := range views[i] {
				story[i] = v
				tell(i + 1)
			}
			return
		}
		self, key := make([]int, n), make([]int, n)
		for v := range n { // what the corrupted hold of everyone
			self[v], key[v] = corrupted, corrupted
		}
		for i, u3 := range story {
			if u3 == nil {
				continue
			}
			signed := newSet(n)
			for j := range n {
				if u3.Has(j) && (j >= honest || story[j].equal(u3)) {
					signed.add(j)
				}
			}
			k := fmt.Sprint(i, u3, signed)
			rv, ok := reveals[k]
			if !ok {
				cs := &Confirmations{Roster: s.roster, U4: signed}
				for j := range n {
					if signed.Has(j) {
						cs.Signs = append(cs.Signs, ed25519.Sign(signers[j], setStatement(&s.roster, s.u2, u3))...)
					}
				}
				rv, _ = cloneClient(confirmed[i][string(u3)]).Reveal(cs)
				reveals[k] = rv
			}
			if rv == nil {
				continue // too few signatures: the client refused
			}
			for v := range n {
				if u3.Has(v) {
					self[v]++
				} else {
					key[v]++
				}
			}
		}
		for v := range honest {
			if self[v] >= s.threshold && key[v] >= s.threshold {
				broken++
				break
			}
		}
	}
	tell(0)
	return broken
}
