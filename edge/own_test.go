package edge

import (
	"crypto/ed25519"
	"crypto/rand"
	"math"
	"slices"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/job/training"
	"github.com/starling-fl/starling/secagg"
)

// puppet is a peer that a coordinator invents: it sends zeros, so that the sum is the
// honest device's vector.
type puppet struct {
	id secagg.ID
	c  *secagg.Client
}

// alone drives a round in which one device is among invented peers, and returns what the
// coordinator finds.
func (h *house) alone(plan *wire.Plan, p *peer, peers int) []int64 {
	t := h.t
	t.Helper()
	planBytes := p.assign(plan)
	_, cfg, hash := h.masking(plan, planBytes)
	k, err := secagg.NewKeying(cfg, hash, h.authority)
	ok(t, err)
	ok(t, k.Add(p.id, turnFrom[secagg.Advertise](p, 1)))
	var puppets []puppet
	for range peers {
		public, key, err := ed25519.GenerateKey(rand.Reader)
		ok(t, err)
		c, err := secagg.NewClient(cfg, hash, key, rand.Reader)
		ok(t, err)
		m, err := c.Advertise()
		ok(t, err)
		ok(t, k.Add(secagg.ID(public), m))
		puppets = append(puppets, puppet{secagg.ID(public), c})
	}
	shards, err := k.Cut(rand.Reader)
	ok(t, err)
	s := shards[0]
	p.turn(plan.Round, 1, s.Roster())
	ok(t, s.Add(p.id, turnFrom[secagg.Shares](p, 2)))
	for _, x := range puppets {
		m, err := x.c.Share(s.Roster())
		ok(t, err)
		ok(t, s.Add(x.id, m))
	}
	ok(t, s.CloseSharing())
	p.turn(plan.Round, 2, s.Delivery(p.id))
	for _, x := range puppets {
		ok(t, x.c.Deliver(s.Delivery(x.id)))
		m, err := x.c.Mask(make([]int32, cfg.Dim))
		ok(t, err)
		ok(t, s.Add(x.id, m))
	}
	first := want[*wire.Update](p)
	as, err := wire.NewAssembly(plan.Round, first.Total)
	ok(t, err)
	ok(t, as.Add(first))
	ok(t, s.Add(p.id, p.update(as)))
	survivors, err := s.CloseCollecting()
	ok(t, err)
	p.turn(plan.Round, 3, survivors)
	ok(t, s.Add(p.id, turnFrom[secagg.Confirmation](p, 4)))
	for _, x := range puppets {
		m, err := x.c.Confirm(survivors)
		ok(t, err)
		ok(t, s.Add(x.id, m))
	}
	confirmations, err := s.CloseConfirming()
	ok(t, err)
	p.turn(plan.Round, 4, confirmations)
	ok(t, s.Add(p.id, turnFrom[secagg.Reveal](p, 5)))
	for _, x := range puppets {
		m, err := x.c.Reveal(confirmations)
		ok(t, err)
		ok(t, s.Add(x.id, m))
	}
	sum, err := s.Unmask()
	ok(t, err)
	p.send(&wire.Outcome{Round: plan.Round, Result: wire.OutcomeCommitted})
	return sum
}

// TestHostilePeersSeeNoiseOfTheDevicesOwn: a device that is alone among invented peers
// shows its vector under its own noise, on every coordinate, the count's included, whatever
// the coordinator does. The sum of squares of n samples of a Gaussian is 6 of its standard
// deviations off with probability 1e-8.
func TestHostilePeersSeeNoiseOfTheDevicesOwn(t *testing.T) {
	for _, uplink := range []string{"fixed16", "nf4", "tern"} {
		h := newHouse(t)
		const v, rounds = 0.7, 6
		h.job.Rounds, h.job.Uplink = rounds, uplink
		h.job.Privacy.Noise, h.job.Privacy.OwnNoise, h.job.Privacy.Honest, h.job.Privacy.NoiseMultiplier = wire.NoiseDevices, v, 3, 1
		h.announce()
		d := h.start(h.config(&constant{value: 0}))
		p := h.admit(false)
		var squares, n, counts float64
		for round := range uint64(rounds) {
			plan := h.plan(round + 1)
			plan.OwnNoise, plan.Honest, plan.CountCoordinates, plan.CountSymbol = v, 3, 5, 1
			sum := h.alone(plan, p, 2)
			l, _, _ := h.masking(plan, nil)
			own, err := (dp.OwnNoise{Multiplier: v}).Variance(l.B2() + 5)
			ok(t, err)
			for i, x := range sum {
				if i >= l.D() { // the update was within the norm
					x--
					counts += float64(x * x)
				}
				squares += float64(x*x) / own.Float()
				n++
			}
		}
		if off := math.Abs(squares/n - 1); off > 6*math.Sqrt(2/n) {
			t.Errorf("%s: the noise of %v coordinates has %.3f of its variance", uplink, n, squares/n)
		}
		if counts == 0 {
			t.Errorf("%s: the clipping count has no noise", uplink)
		}
		p.send(&wire.Finished{Version: rounds})
		ok(t, d.wait(t))
	}
}

// TestOwnNoiseIsAddedToWhatIsThere: a seeded device's vector is the one without noise and
// what its stream for noise says, whether a pool drew it ahead or not; and each device and
// round has noise of its own.
func TestOwnNoiseIsAddedToWhatIsThere(t *testing.T) {
	layout, data, lattice := foxes(t, 24)
	own, err := (dp.OwnNoise{Multiplier: 0.3}).Variance(lattice.B2())
	ok(t, err)
	var seen [][]int64
	for device := range 2 {
		seed, _ := Reproducible([]byte("a fleet's seed, long enough"), device)
		for round := range uint64(3) {
			c := Contribution{Round: round, Lattice: lattice, Seed: seed,
				Task: Task{Layout: layout, Start: make([]float32, layout.Size(0)), Spec: training.Spec{Steps: 3, Batch: 1}}}
			plain, err := Contribute(t.Context(), new(ordering), data, c)
			ok(t, err)
			c.Own = own
			noisy, err := Contribute(t.Context(), new(ordering), data, c)
			ok(t, err)
			pool, err := dp.NewPool(t.Context(), own, 7, random(seed, forNoise, round))
			ok(t, err)
			c.Noise = pool
			pooled, err := Contribute(t.Context(), new(ordering), data, c)
			pool.Close()
			ok(t, err)
			if !slices.Equal(noisy, pooled) {
				t.Errorf("device %d, round %d: what a pool drew is not what is drawn at once", device, round)
			}
			want := make([]int64, len(plain))
			ok(t, dp.NewSampler(random(seed, forNoise, round)).AddNoise(want, own))
			for i := range plain {
				if int64(noisy[i]) != int64(plain[i])+want[i] {
					t.Fatalf("device %d, round %d: coordinate %d is %d, without noise %d, noise %d", device, round, i, noisy[i], plain[i], want[i])
				}
			}
			for _, other := range seen {
				if slices.Equal(want, other) {
					t.Error("two rounds or devices have the same noise")
				}
			}
			seen = append(seen, want)
		}
	}
}

// TestOwnNoiseThatFails leaves no vector.
func TestOwnNoiseThatFails(t *testing.T) {
	sum := []int32{1, 2, 3}
	pool, err := dp.NewPool(t.Context(), dp.Variance{Lo: 9}, 8, rand.Reader)
	ok(t, err)
	pool.Close()
	if err := dp.AddOwn(sum, dp.Variance{Lo: 9}, pool); err == nil || !slices.Equal(sum, make([]int32, 3)) {
		t.Errorf("%v, %v", sum, err)
	}
	sum = slices.Repeat([]int32{math.MaxInt32}, 32)
	if err := dp.AddOwn(sum, dp.Variance{Lo: 1 << 40}, dp.NewSampler(rand.Reader)); err == nil || sum[0] != 0 {
		t.Errorf("%v, %v", sum, err)
	}
}
