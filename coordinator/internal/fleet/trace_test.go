package fleet

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// trial lets n devices, of which one bombs its shard's sum in every round that it is in,
// play rounds until somebody is convicted. draw says who is in the alarmed shard and in
// the others, of those who are drawn.
func trial(t *testing.T, n, most int, draw func(round int) (in, others []int, rest int)) (rounds, guilty int) {
	t.Helper()
	devices := make([]*Device, n)
	for i := range devices {
		devices[i] = &Device{}
	}
	pick := func(of []int) (ds []*Device) {
		for _, i := range of {
			ds = append(ds, devices[i])
		}
		return ds
	}
	var b Trace
	for round := range most {
		in, others, rest := draw(round)
		if len(in) == 0 {
			b.Passed()
			continue
		}
		b.Alarm(pick(in), pick(others), rest)
		for _, d := range b.Found(n) {
			for i := range devices {
				if devices[i] == d {
					return round + 1, i
				}
			}
		}
	}
	return most, -1
}

// A round in which all shards alarm says nothing: a trace goes on as if it had not been.
func TestAllShardsAlarming(t *testing.T) {
	shards := func(r *rand.Rand) (in, others []int, rest int) {
		in = []int{0} // with seven of 63
		for i, p := range r.Perm(63) {
			if i < 7 {
				in = append(in, p+1)
			} else {
				others = append(others, p+1)
			}
		}
		return in, others, 0
	}
	everybody := make([]int, 64)
	for i := range everybody {
		everybody[i] = i
	}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		plain, guilty := trial(t, 64, 100, func(int) ([]int, []int, int) { return shards(r) })
		if guilty != 0 {
			t.Fatalf("seed %d: %d is convicted after %d rounds", seed, guilty, plain)
		}
		r = rand.New(rand.NewPCG(seed, 1))
		mixed, guilty := trial(t, 64, 100, func(round int) ([]int, []int, int) {
			if round%2 == 1 {
				return everybody, nil, 0
			}
			return shards(r)
		})
		if guilty != 0 || mixed != 2*plain-1 {
			t.Errorf("seed %d: with every second round all alarming %d is convicted after %d rounds, without after %d", seed, guilty, mixed, plain)
		}
	}
}

// Where coins make one shard a round, who is in one alarmed cohort after another is
// found; by cohorts alone no innocent one is.
func TestABomberOfSampledCohorts(t *testing.T) {
	found, wrong := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		_, guilty := trial(t, 300, 60, func(int) ([]int, []int, int) {
			var drawn []int
			bombed := false
			for i := range 300 {
				if r.Float64() < 0.2 {
					drawn = append(drawn, i)
					bombed = bombed || i == 0
				}
			}
			if !bombed {
				return nil, nil, 0
			}
			return drawn, nil, 300 - len(drawn)
		})
		switch {
		case guilty == 0:
			found++
		case guilty > 0:
			wrong++
		}
	}
	if found < 55 || wrong > 2 { // P[Binomial(60, 0.005) > 2] = 0.003
		t.Errorf("the bomber of 60 fleets was found in %d, somebody else in %d", found, wrong)
	}
}

// TestHostileBombsTogether: several bombers that take turns are found, and of a
// thousand fleets hardly one loses an innocent device.
func TestHostileBombsTogether(t *testing.T) {
	const n, size = 64, 8
	var framed, missed int
	for trial := range 200 {
		devices := make([]*Device, n)
		for i := range devices {
			devices[i] = &Device{}
		}
		bad := 1 + trial%3
		var b Trace
		out := map[*Device]bool{}
		for round := range 300 {
			order := shuffled(devices, int64(trial*1000+round))
			var alarmed, others []*Device
			for at := 0; at < n; at += size {
				var in []*Device
				bomb := false
				for _, d := range order[at : at+size] {
					if out[d] {
						continue
					}
					in = append(in, d)
					bomb = bomb || slices.Index(devices, d) < bad && round%bad == slices.Index(devices, d)
				}
				if bomb {
					alarmed = append(alarmed, in...)
				} else {
					others = append(others, in...)
				}
			}
			if len(alarmed) > 0 {
				b.Alarm(alarmed, others, 0)
			}
			for _, d := range b.Found(n) {
				out[d] = true
				if slices.Index(devices, d) >= bad {
					framed++
				}
			}
		}
		for i := range bad {
			if !out[devices[i]] {
				missed++
			}
		}
	}
	if framed > 6 || missed > 4 { // 400 bombers to convict, at 0.005 each
		t.Errorf("of 200 fleets: %d innocent devices excluded, %d bombers missed", framed, missed)
	}
}

func shuffled(d []*Device, seed int64) []*Device {
	out := slices.Clone(d)
	x := uint64(seed)*0x9e3779b97f4a7c15 + 1
	for i := len(out) - 1; i > 0; i-- {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		j := int(x % uint64(i+1))
		out[i], out[j] = out[j], out[i]
	}
	return out
}
