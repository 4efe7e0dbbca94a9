package edge

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/secagg/log"
)

// dealt is the entry of a numbered device that drew its lot, and its group.
func dealt(t *testing.T, d *log.Deal, n, groups int) (secagg.Entry, int) {
	t.Helper()
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], uint64(n))
	key := ed25519.NewKeyFromSeed(seed[:])
	e := secagg.Entry{Identity: secagg.ID(key.Public().(ed25519.PublicKey))}
	var err error
	e.Lot, err = d.Prove(key)
	ok(t, err)
	g, err := d.Group((*[32]byte)(&e.Identity), &e.Lot, groups)
	ok(t, err)
	return e, g
}

// A coordinator puts whom it likes into a shard: where nothing is dealt nobody can tell, and
// where devices draw their groups the first that did not draw this one is noticed, as is one
// that shows what it, or another, drew elsewhere.
func TestHostileDeal(t *testing.T) {
	const groups = 4
	head := log.Head{Size: 40, Root: log.Hash{7}}
	plan := &wire.Plan{Task: [32]byte{3}, Round: 5, Groups: groups}
	deal := dealOf(plan, head)
	var by [groups][]secagg.Entry
	for n := range 40 {
		e, g := dealt(t, deal, n, groups)
		by[g] = append(by[g], e)
	}
	shard := func(entries ...secagg.Entry) *secagg.Roster { return &secagg.Roster{Entries: entries} }
	drawn := &secagg.Config{Logged: true, Dealt: true}
	chosen := &secagg.Config{Logged: true}
	for g := range by {
		if len(by[g]) < 3 {
			t.Fatalf("%d devices in group %d: the test shows nothing", len(by[g]), g)
		}
		ok(t, checkDeal(drawn, plan, head, shard(by[g]...)))
	}
	elsewhere := func(change func(p *wire.Plan, h *log.Head)) secagg.Entry {
		p, h := *plan, head
		change(&p, &h)
		// Whatever group that is.
		e, _ := dealt(t, dealOf(&p, h), 0, groups)
		return e
	}
	thief := by[0][1]
	thief.Lot = by[0][0].Lot
	none := by[0][1]
	none.Lot = [secagg.LotSize]byte{}
	for what, roster := range map[string]*secagg.Roster{
		"a device of another group":   shard(by[0][0], by[0][1], by[1][0]),
		"this device's group alone":   shard(by[1][0], by[0][0], by[0][1]),
		"what it drew a round ago":    shard(by[0][0], elsewhere(func(p *wire.Plan, _ *log.Head) { p.Round-- })),
		"what it drew in another job": shard(by[0][0], elsewhere(func(p *wire.Plan, _ *log.Head) { p.Task[0]++ })),
		"an old head's":               shard(by[0][0], elsewhere(func(_ *wire.Plan, h *log.Head) { h.Size, h.Root = 39, log.Hash{6} })),
		"another view's":              shard(by[0][0], elsewhere(func(_ *wire.Plan, h *log.Head) { h.Root = log.Hash{8} })),
		"what another drew":           shard(by[0][0], thief),
		"nothing":                     shard(by[0][0], none),
	} {
		if err := checkDeal(chosen, plan, head, roster); err != nil {
			t.Errorf("%s, where nothing is dealt: %v", what, err)
		}
		if err := checkDeal(drawn, plan, head, roster); !errors.Is(err, log.ErrDeal) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Fewer groups hold more devices: the number is the plan's, whoever reads the roster.
	one := *plan
	one.Groups = 1
	ok(t, checkDeal(drawn, &one, head, shard(by[0][0], by[1][0], by[2][0])))
}

// The job says whether rounds are dealt, and every plan keeps to it.
func TestHostilePlansOfGroups(t *testing.T) {
	for _, c := range []struct {
		dealt  bool
		groups uint32
		fine   bool
	}{{false, 0, true}, {true, 1, true}, {true, 156, true}, {true, 0, false}, {false, 1, false}} {
		j := &job{Job: wire.Job{Dealt: c.dealt}}
		if err := j.checkGroups(&wire.Plan{Groups: c.groups}); (err == nil) != c.fine {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// An owner who wants groups is in no job and no round with fewer.
func TestHostileGroupsBelowTheLimit(t *testing.T) {
	beyond := func(err error) bool {
		p := new(PolicyError)
		return errors.As(err, &p) && p.Key == "groups"
	}
	for _, c := range []struct {
		least  int
		dealt  bool
		groups uint32
		fine   bool
	}{{0, false, 0, true}, {0, true, 1, true}, {1, false, 0, false}, {1, true, 1, true}, {8, true, 7, false}, {8, true, 8, true}} {
		p := TrustingPolicy()
		p.Groups = c.least
		ok(t, p.Validate())
		j := &wire.Job{Dealt: c.dealt, ShardFloor: 2}
		if err := p.checkJob(j, Shown{}); beyond(err) != (c.least > 0 && !c.dealt) {
			t.Errorf("%+v: job: %v", c, err)
		}
		if err := p.checkPlan(j, &wire.Plan{Groups: c.groups}); beyond(err) == c.fine {
			t.Errorf("%+v: plan: %v", c, err)
		}
	}
	p := DefaultPolicy()
	if p.Groups = -1; p.Validate() == nil {
		t.Error("fewer groups than none")
	}
}
