package round

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// fate is the first turn that a device does not answer, and whether its connection
// breaks then, rather than that it hangs; Releasing: it answers all.
type fate struct {
	until State
	lost  bool
}

// playCoins plays a drawn round to its end: who is in which group, and when it leaves,
// is given. It returns whose vectors are released, and how many devices of each
// group answered each turn.
func playCoins(t *testing.T, group map[Device]int, fates map[Device]fate, floor int, threshold func(n int) int) (released []Device, answered map[int]map[State]int) {
	t.Helper()
	cfg := Config{Floor: floor, Drawn: true, Enough: 1}
	for s := range cfg.Limits {
		cfg.Limits[s] = Limit{Timeout: time.Minute, Quorum: floor}
	}
	for d := range group {
		cfg.Cohort = append(cfg.Cohort, d)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	answered = map[int]map[State]int{}
	waits := map[int]State{}
	var shards []Shard
	queue := []Event{Start{}}
	ask := func(devices []Device, s State) {
		for _, d := range devices {
			switch f := fates[d]; {
			case f.until > s:
				if answered[group[d]] == nil {
					answered[group[d]] = map[State]int{}
				}
				answered[group[d]][s]++
				queue = append(queue, Received{d, s})
			case f.lost:
				queue = append(queue, Lost{d}, Back{d}) // and comes back, which changes nothing
			}
		}
	}
	sums := map[int][]Device{}
	for turns := 0; turns < 10_000; turns++ {
		if len(queue) == 0 {
			for shard, s := range waits {
				queue = append(queue, Deadline{shard, s})
			}
			clear(waits)
		}
		if len(queue) == 0 {
			t.Fatalf("nothing is waited for in %v", m.State())
		}
		ev := queue[0]
		queue = queue[1:]
		for _, e := range m.Take(ev) {
			switch e := e.(type) {
			case Await:
				waits[e.Shard] = e.State
				if e.State == Gathering {
					ask(cfg.Cohort, Gathering)
				}
			case Assign:
				ask(e.Devices, Keying)
			case Cut:
				delete(waits, Whole)
				by := map[int][]Device{}
				for _, d := range e.Devices {
					by[group[d]] = append(by[group[d]], d)
				}
				var ev Sharded
				for _, members := range by {
					if len(members) < floor {
						ev.Left = append(ev.Left, members...)
						continue
					}
					shards = append(shards, Shard{members, threshold(len(members))})
				}
				if ev.Shards = shards; len(shards) == 0 {
					queue = append(queue, Abort{"no shard"})
				} else {
					queue = append(queue, ev)
				}
			case SendRoster:
				ask(shards[e.Shard].Members, Sharing)
			case DeliverShares:
				ask(e.Members, Collecting)
			case PersistSurvivors:
				sums[e.Shard] = e.Members
				queue = append(queue, Stored{e.Shard})
			case AnnounceSurvivors:
				ask(e.Members, Confirming)
			case PersistIntent:
				queue = append(queue, Stored{Whole})
			case SendSignatures:
				ask(e.Members, Unmasking)
			case Release:
				for _, shard := range e.Shards {
					released = append(released, sums[shard]...)
				}
				queue = append(queue, Released{})
			case Finish:
				slices.Sort(released)
				return released, answered
			}
		}
	}
	t.Fatal("the round does not end")
	return nil, nil
}

// One device's coin decides whether it is in the sum, and nothing of the others, but
// where its shard, or the cohort, lacks exactly one: what [dp.Attendance] counts. Whether
// the device hangs, leaves or stays makes no difference.
func TestACoinTipsNothingElse(t *testing.T) {
	const v = Device(1000)
	tipped, same := 0, 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 2))
		floor := 2 + r.IntN(3)
		threshold := func(n int) int { return max(floor, n*2/3+1) }
		groups := 1 + r.IntN(3)
		group, fates := map[Device]int{}, map[Device]fate{}
		draw := func(d Device) {
			group[d], fates[d] = r.IntN(groups), fate{Releasing, r.IntN(2) == 0}
			if r.IntN(4) == 0 {
				f := fates[d]
				f.until = Gathering + State(r.IntN(int(Releasing)))
				fates[d] = f
			}
		}
		for d := range Device(floor + r.IntN(20)) {
			draw(d)
		}
		without, counts := playCoins(t, group, fates, floor, threshold)
		draw(v)
		mine := group[v]
		with, _ := playCoins(t, group, fates, floor, threshold)
		with = slices.DeleteFunc(with, func(d Device) bool { return d == v })
		if slices.Equal(with, without) {
			same++
			continue
		}
		tipped++
		// The others of its group, in some turn, or all, when the cohort gathers.
		lacking, size, all := false, counts[mine][Keying], map[State]int{}
		for _, c := range counts {
			for s, n := range c {
				all[s] += n
			}
		}
		for s := Sharing; s <= Unmasking; s++ {
			lacking = lacking || counts[mine][s] == threshold(size+1)-1
		}
		if !lacking && size != floor-1 && all[Gathering] != floor-1 && all[Keying] != floor-1 && len(group)-1 != floor-1 {
			t.Fatalf("seed %d: with the device %v are released, without it %v; its group answered %v of threshold %d",
				seed, with, without, counts[mine], threshold(size+1))
		}
	}
	if tipped < 20 || same < 2000 {
		t.Errorf("%d rounds were tipped, %d not: the test shows little", tipped, same)
	}
}
