package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/attack"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// What a job may have besides the default: shares sealed with ML-KEM as well, rosters
// of identities, and providers to protect in place of devices.
var variants = map[string]string{
	"hybrid":     "shard: {size: 32, floor: 3, corrupt: 0, breach_bits: 0, hybrid: true}",
	"identified": "shard: {size: 32, floor: 3, corrupt: 0, breach_bits: 0, identified: true}",
	"providers":  "providers: {max: 4, expected: 2, sampling_rate: 0.5}",
}

// ofProviders is a device's file that fits every variant.
const ofProviders = `{"text": "the fox runs", "label": "one", "provider": "a"}
{"text": "the dog sleeps", "label": "two", "provider": "a"}
{"text": "a fox", "label": "one", "provider": "b"}
{"text": "a dog", "label": "two", "provider": "c"}
`

// In each variant devices written from the document and a real one end a round
// together at a real coordinator, beside some that lie about what the variant adds.
func TestHostileDevicesOfVariants(t *testing.T) {
	advertised := func(change func(m *attack.Member)) attack.Script {
		return insteadOf(attack.Advertise, func(m *attack.Member, _ []byte) [][]byte {
			change(m)
			return [][]byte{attack.Encode(m.Advertise())}
		})
	}
	lies := map[string]map[string]attack.Script{
		"hybrid": {
			"a sealing key without ML-KEM": advertised(func(m *attack.Member) { m.Sealing = bytes.Repeat([]byte{9}, 32) }),
			"an ML-KEM key that is none": advertised(func(m *attack.Member) {
				m.Sealing = append(bytes.Repeat([]byte{9}, 32), bytes.Repeat([]byte{0xff}, 1216)...)
			}),
			"boxes without what was encapsulated": insteadOf(attack.Shares, func(m *attack.Member, honest []byte) [][]byte {
				return [][]byte{remade(honest, func(a attack.Array) { a[3] = a[3].([]byte)[:80*(m.Count()-1)] })}
			}),
		},
		"identified": {
			"a key of the round for an identity": advertised(func(m *attack.Member) {
				m.Pose(attack.NewDevice(attack.Token{}).Identity, attack.NewDevice(attack.Token{}).Identity)
			}),
			"an identity of its own that is not the session's": advertised(func(m *attack.Member) {
				other := attack.NewDevice(attack.Token{}).Identity
				m.Pose(other, other)
			}),
			"keys that the identity has not signed": insteadOf(attack.Advertise, func(_ *attack.Member, honest []byte) [][]byte {
				return [][]byte{remade(honest, func(a attack.Array) { a[5] = make([]byte, 64) })}
			}),
		},
		"providers": {
			"the vector of a job without": insteadOf(attack.Masked, func(m *attack.Member, honest []byte) [][]byte {
				return [][]byte{remade(honest, func(a attack.Array) { b := a[2].([]byte); a[2] = b[:len(b)*10/13] })}
			}),
		},
	}
	for name, more := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for deadlines
			const honest = 3
			s := serves(t, 1, fmt.Sprintf("%s\ncohort: {population: %d, floor: 3}", more, honest+1+len(lies[name])))
			fates := map[string]<-chan ended{}
			for lie, script := range lies[name] {
				fates[lie] = takesPart(t, attack.NewDevice(s.token), script)
			}
			var others []<-chan ended
			for i := range honest {
				others = append(others, takesPart(t, attack.NewDevice(s.token), attack.Script{
					Symbols: func(*attack.Member) []int32 { return []int32{int32(i), 1, -2} },
				}))
			}
			real := joinsWith(t, s.dir, "data.jsonl", ofProviders, s.token.String())
			s.outlives(t, others)
			if code := real.exit(); code != 0 || !strings.Contains(real.String(), "in the release") && !strings.Contains(real.String(), "is made") {
				t.Errorf("the real device ended with %d: %s", code, real)
			}
			for lie, fate := range fates {
				if end := watchdog.Recv(t, lie, fate, s.String); slices.Contains(end.outcomes, attack.Committed) {
					t.Errorf("%s: is in the sum: %+v", lie, end)
				}
			}
		})
	}
}

// remade is a message with something of it changed.
func remade(b []byte, change func(a attack.Array)) []byte {
	v, err := attack.Decode(bytes.Clone(b))
	if err != nil {
		panic(err) // it is ours
	}
	a := v.(attack.Array)
	change(a)
	return attack.Encode(a)
}

// A coordinator written from the document plays a real device in each variant: one
// honest round, of which it knows the update (section 10, "Invented peers"), and lies
// about what the variant adds.
func TestHostileCoordinatorOfVariants(t *testing.T) {
	for name, more := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := learn(t, more).lies(t, func(job attack.Array) { job[attack.JobRounds] = 100 })
			ctx := watchdog.Context(t)
			device := joinsWith(t, t.TempDir(), "data.jsonl", ofProviders, l.token)
			s := l.session(ctx, device)
			refuses := func(lie string, code uint64) {
				t.Helper()
				if f, err := s.Wait(ctx, attack.Refuse); err != nil || f.Uint(0) != l.round || f.Uint(1) != code || strings.Contains(f.Text(2), "fox") {
					t.Fatalf("%s: %v, %v; code %d expected\n%s", lie, f, err, code, device)
				}
			}
			roster := func(change func(sh *attack.Shard, entries []attack.Array) []attack.Array) {
				t.Helper()
				sh, err := attack.NewShard(ctx, l.Coordinator, s, l.plan(nil), 2)
				l.must(err)
				l.must(s.Say(ctx, sh.Round, attack.Advertise, sh.Remade(func(e []attack.Array) []attack.Array { return change(sh, e) })))
			}
			sealing := func(key func(k []byte) []byte) {
				t.Helper()
				roster(func(sh *attack.Shard, entries []attack.Array) []attack.Array {
					for _, m := range sh.Peers {
						was := m.Entry(l.Authority)
						m.Sealing = key(was[2].([]byte))
						i := slices.IndexFunc(entries, func(e attack.Array) bool { return bytes.Equal(e[0].([]byte), was[0].([]byte)) })
						entries[i] = m.Entry(l.Authority)
					}
					return entries
				})
			}
			const protocol = 306
			switch name {
			case "hybrid":
				sealing(func(k []byte) []byte { return k[:32] })
				refuses("peers without ML-KEM", protocol)
				sealing(func(k []byte) []byte { return append(bytes.Clone(k), 0) })
				refuses("a key that is too long", protocol)
				sealing(func(k []byte) []byte { return append(bytes.Clone(k[:32]), bytes.Repeat([]byte{0xff}, 1216)...) })
				refuses("an ML-KEM key that is none", protocol)
				// Boxes that do not open keep their dealer in U2: nothing of it is revealed, and
				// nobody sees more of the device than in any round.
				l.garbled(ctx, s)
			case "identified":
				roster(func(sh *attack.Shard, e []attack.Array) []attack.Array { return append(e[:2:2], e[1], e[2]) })
				refuses("an identity twice", protocol)
				roster(func(sh *attack.Shard, e []attack.Array) []attack.Array {
					for _, e := range e {
						e[3] = make([]byte, 64)
					}
					return e
				})
				refuses("identities that have not signed", protocol)
			case "providers":
				l.must(s.Assign(ctx, l.plan(func(p attack.Array) { p[attack.PlanCounts], p[attack.PlanCount] = 4, 13 })))
				refuses("a count beyond one provider's symbols", 300)
			}
			sum := l.whole(ctx, s, l.plan(nil))
			for _, x := range sum {
				if x < -12*4 || x > 12*4 {
					t.Fatalf("a symbol of %d: it is not unmasked", x)
				}
			}
			if name != "providers" && !slices.ContainsFunc(sum, func(x int32) bool { return x != 0 }) { // there every coin may fall otherwise
				t.Error("the update is all zeros")
			}
		})
	}
}

// garbled plays a round whose boxes for the victim do not open.
func (l *liar) garbled(ctx context.Context, s *attack.Session) {
	l.t.Helper()
	sh := l.shard(ctx, s, l.plan(nil))
	all := sh.Peers[0].All()
	boxes := remade(sh.Delivery(all), func(a attack.Array) {
		for i, b := range a[3].([]byte) {
			a[3].([]byte)[i] = b ^ 0x55
		}
	})
	l.must(sh.Delivered(ctx, all, boxes))
	l.must(s.Say(ctx, sh.Round, attack.Masked, sh.Survivors(all, all)))
	signature := l.confirmed(ctx, s)
	l.must(s.Say(ctx, sh.Round, attack.Confirm, sh.Confirmations(signature, all, all, 3)))
	reveal, err := s.Receive(ctx, attack.Reveal)
	l.must(err)
	a, err := attack.DecodeArray(reveal, 4)
	l.must(err)
	if held := a[2].([]byte); !bytes.Equal(held, sh.Peers[0].Set(sh.Me())) {
		l.t.Errorf("shares of %08b are revealed, none but its own could be opened", held)
	}
}
