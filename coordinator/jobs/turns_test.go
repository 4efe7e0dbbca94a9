package jobs

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestTurns: of any jobs that ask, give back and leave at random, one in a pool has the
// turn at most; nobody who wants it is forgotten; a higher priority goes first, and among
// equals who has waited longest.
func TestTurns(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		tu, woken := newTurns(), map[string]bool{}
		in := map[string]string{}
		for i := range 6 {
			name := fmt.Sprintf("job-%d", i)
			in[name] = fmt.Sprintf("p%d", i%2)
			tu.enter(name, in[name], r.IntN(2), func() { woken[name] = true })
		}
		names := sortedKeys(in)
		for range 300 {
			name := names[r.IntN(len(names))]
			switch c := tu.claims[name]; {
			case c == nil:
			case c.has:
				tu.done(name, r.IntN(2) == 0)
			case r.IntN(8) == 0:
				tu.withdraw(name)
			case r.IntN(40) == 0:
				tu.leave(name)
			default:
				before := *c
				mine, other := tu.ask(name)
				for o, d := range tu.claims {
					if mine && o != name && d.pool == c.pool {
						if d.has {
							t.Fatalf("seed %d: %s and %s have the turn", seed, name, o)
						}
						if d.wants && (d.priority > c.priority || d.priority == c.priority && d.last < before.last) {
							t.Fatalf("seed %d: %s (%+v) goes before %s (%+v)", seed, name, before, o, *d)
						}
					}
				}
				if !mine && (tu.claims[other] == nil || !tu.claims[other].has && !tu.claims[other].wants) {
					t.Fatalf("seed %d: %s waits for %s, which wants nothing", seed, name, other)
				}
			}
			// Nobody waits unless somebody has the turn, or was told to look.
			for _, c := range tu.claims {
				if !c.wants || c.has {
					continue
				}
				moving := false
				for o, d := range tu.claims {
					moving = moving || d.pool == c.pool && (d.has || d.wants && woken[o])
				}
				if !moving && len(woken) > 0 {
					t.Fatalf("seed %d: all of %s wait and nobody was woken", seed, c.pool)
				}
			}
		}
	}
}

// TestTurnsAreFair: two equals that always want a round take them in turn, and one of a
// lower priority gets one when neither can.
func TestTurnsAreFair(t *testing.T) {
	tu := newTurns()
	for name, priority := range map[string]int{"a": 1, "b": 1, "low": 0} {
		tu.enter(name, "fleet", priority, func() {})
	}
	var got []string
	for range 6 {
		for _, name := range []string{"low", "a", "b"} { // all want, whoever asks first
			tu.claims[name].wants = true
		}
		for _, name := range []string{"low", "b", "a"} {
			if mine, _ := tu.ask(name); mine {
				got = append(got, name)
				tu.done(name, true)
				break
			}
		}
	}
	if fmt.Sprint(got) != "[a b a b a b]" {
		t.Errorf("turns %v", got)
	}
	tu.withdraw("a")
	tu.leave("b")
	if mine, before := tu.ask("low"); !mine {
		t.Errorf("the lower priority waits for %q", before)
	}
}
