package secagg_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"

	"github.com/starling-fl/starling/secagg"
)

// One round with three devices, both sides side by side. Between the calls the
// messages travel as AppendBinary and UnmarshalBinary make them.
func Example() {
	authorityPub, authority, _ := ed25519.GenerateKey(rand.Reader)
	cfg := secagg.Config{
		Dim: 4, Width: 11, MaxSymbol: 12,
		ShardMax: 3, ShardMin: 3,
		Suite:     secagg.SuiteX25519,
		Authority: [32]byte(authorityPub),
	}
	plan := secagg.PlanHash("task", 1, cfg, []byte("rank 4, slices, clip norm, program ..."))

	// Turn 1: keys.
	keying, err := secagg.NewKeying(cfg, plan, authority)
	check(err)
	clients := map[secagg.ID]*secagg.Client{}
	for range 3 {
		public, identity, _ := ed25519.GenerateKey(rand.Reader)
		id := secagg.ID(public)
		clients[id], err = secagg.NewClient(cfg, plan, identity, rand.Reader)
		check(err)
		m, err := clients[id].Advertise()
		check(err)
		check(keying.Add(id, m))
	}
	shards, err := keying.Cut(rand.Reader)
	check(err)
	s := shards[0]

	// Turn 2: shares.
	for id, c := range clients {
		m, err := c.Share(s.Roster())
		check(err)
		check(s.Add(id, m))
	}
	check(s.CloseSharing())

	// Turn 3: vectors. The last device drops.
	late := s.Members()[2]
	for id, c := range clients {
		check(c.Deliver(s.Delivery(id)))
		if id == late {
			continue
		}
		m, err := c.Mask([]int32{1, -2, 12, 0})
		check(err)
		check(s.Add(id, m))
	}
	survivors, err := s.CloseCollecting()
	check(err) // persist survivors before they are sent

	// Turns 4 and 5: agree on who survived, reveal shares.
	for id, c := range clients {
		if s.InU3(id) {
			m, err := c.Confirm(survivors)
			check(err)
			check(s.Add(id, m))
		}
	}
	confirmations, err := s.CloseConfirming()
	check(err)
	for id, c := range clients {
		if s.InU3(id) { // of those who confirmed: here all of them
			m, err := c.Reveal(confirmations)
			check(err)
			check(s.Add(id, m))
		}
	}
	sum, err := s.Unmask()
	check(err)
	fmt.Println(sum)
	// Output: [2 -4 24 0]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
