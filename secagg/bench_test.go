package secagg

import (
	"fmt"
	"testing"
)

// The figures of docs/BENCHMARKS.md: dimension of the reference adapter, ring of
// the default scheme.
const (
	benchDim    = 135176
	benchWidth  = 11
	benchSymbol = 12
)

func benchConfig(shard int) Config {
	return Config{Dim: benchDim, Width: benchWidth, MaxSymbol: benchSymbol, ShardMax: shard, ShardMin: 2, CorruptPPM: 50000, BreachBits: 44, Suite: SuiteX25519}
}

// BenchmarkClient times one device's work in a shard of 64, turn by turn.
func BenchmarkClient(b *testing.B) {
	for _, suite := range []Suite{SuiteX25519, SuiteHybrid} {
		cfg := benchConfig(64)
		cfg.ShardMin = 60
		cfg.Suite = suite
		b.Run(fmt.Sprintf("suite=%d", suite), func(b *testing.B) { benchClient(b, cfg) })
	}
	for _, shard := range []int{128, 170, 256, 341} { // what sampled fleets may need: see job.Job.Quorum
		cfg := benchConfig(shard)
		cfg.ShardMin, cfg.Width = shard-4, RingWidth(shard, benchSymbol)
		b.Run(fmt.Sprintf("shard=%d", shard), func(b *testing.B) { benchClient(b, cfg) })
	}
}

func benchClient(b *testing.B, cfg Config) {
	r := newRound(b, "bench client", cfg, cfg.ShardMax)
	r.key()
	s := r.shards[0]
	b.ReportAllocs()
	var upload, download int
	var advertise, share, deliver, mask, confirm, reveal stopwatch
	rounds := 0
	// Device 0 is measured; the others' messages are made once, and its own part
	// is played again on a fresh client with the same randomness.
	for _, d := range r.of(s, TurnShare) {
		m, err := d.c.Share(s.Roster())
		r.must(err)
		r.must(s.Add(d.id, m))
	}
	r.must(s.CloseSharing())
	me := r.devices[0]
	del := s.Delivery(me.id)
	for _, d := range r.of(s, TurnMask) {
		r.must(d.c.Deliver(s.Delivery(d.id)))
		if d == me {
			continue
		}
		small := make([]int32, cfg.Dim)
		m, err := d.c.Mask(small)
		r.must(err)
		r.must(s.Add(d.id, m))
	}
	m, err := me.c.Mask(me.symbols)
	r.must(err)
	r.must(s.Add(me.id, m))
	sv, err := s.CloseCollecting()
	r.must(err)
	for _, d := range r.of(s, TurnConfirm) {
		m, err := d.c.Confirm(sv)
		r.must(err)
		r.must(s.Add(d.id, m))
	}
	cs, err := s.CloseConfirming()
	r.must(err)
	b.ResetTimer()
	for b.Loop() {
		rounds++
		c, err := NewClient(r.cfg, r.plan, me.key, newDRBG("device %s %d", "bench client", 0))
		r.must(err)
		size := func(m wireMessage) int { e, _ := m.AppendBinary(nil); return len(e) }
		advertise.start()
		a, err := c.Advertise()
		advertise.stop()
		r.must(err)
		share.start()
		sh, err := c.Share(s.Roster())
		share.stop()
		r.must(err)
		deliver.start()
		err = c.Deliver(del)
		deliver.stop()
		r.must(err)
		mask.start()
		mk, err := c.Mask(me.symbols)
		mask.stop()
		r.must(err)
		confirm.start()
		cf, err := c.Confirm(sv)
		confirm.stop()
		r.must(err)
		reveal.start()
		rv, err := c.Reveal(cs)
		reveal.stop()
		r.must(err)
		upload = size(a) + size(sh) + size(mk) + size(cf) + size(rv) - mk.Size()
		download = size(s.Roster()) + size(del) + size(sv) + size(cs)
	}
	for _, w := range []struct {
		name string
		w    *stopwatch
	}{{"advertise", &advertise}, {"share", &share}, {"deliver", &deliver}, {"mask", &mask}, {"confirm", &confirm}, {"reveal", &reveal}} {
		b.ReportMetric(w.w.ms()/float64(rounds), w.name+"-ms")
	}
	b.ReportMetric(float64(upload), "upload-overhead-B")
	b.ReportMetric(float64(download), "download-B")
}

// BenchmarkUnmask times the server's last step for a cohort of 1,000, on one core.
// A quarter of the cohort is set up, a dropout after sharing as given per shard, and
// each shard is unmasked four times: the work is that of four times as many shards.
func BenchmarkUnmask(b *testing.B) {
	for _, c := range []struct {
		name    string
		shard   int
		dropped []int // per shard of the quarter
		profile func(*Config)
	}{
		{"shard=64/dropped=0%", 64, []int{0, 0, 0, 0}, nil},
		{"shard=64/dropped=10%", 64, []int{7, 6, 6, 6}, nil},
		{"shard=128-semihonest/dropped=30%", 128, []int{38, 37}, func(c *Config) {
			c.Width, c.SemiHonest, c.CorruptPPM = 12, true, 100000
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg := benchConfig(c.shard)
			cfg.ShardMin = 60
			if c.profile != nil {
				c.profile(&cfg)
			}
			benchUnmask(b, cfg, c.dropped)
		})
	}
}

// benchUnmask sets the shards up with vectors of one symbol: the server's work
// depends on who dropped, not on values. Its running sum is then replaced by
// zeros of the full length.
func benchUnmask(b *testing.B, cfg Config, dropped []int) {
	dim := cfg.Dim
	cfg.Dim = 1
	r := newRound(b, "bench unmask", cfg, 250)
	r.key()
	if len(r.shards) != len(dropped) {
		b.Fatalf("%d shards", len(r.shards))
	}
	for i, s := range r.shards {
		for _, id := range s.Members()[:dropped[i]] {
			r.byID[id].lastTurn = TurnShare
		}
		r.must(r.share(s))
		sv, err := r.mask(s)
		r.must(err)
		cs, err := r.confirm(s, sv)
		r.must(err)
		r.reveal(s, cs)
	}
	b.ReportAllocs()
	var all stopwatch
	for b.Loop() {
		all.start()
		for k := range 4 * len(r.shards) {
			s := r.shards[k%len(r.shards)]
			t := *s
			t.cfg.Dim = dim
			t.sum = make([]uint32, dim)
			t.reveals = make([]*Reveal, len(s.reveals))
			for i, m := range s.reveals {
				if m != nil {
					t.reveals[i] = &Reveal{Held: m.Held, Shares: append([]byte(nil), m.Shares...)}
				}
			}
			if _, err := t.Unmask(); err != nil {
				b.Fatal(err)
			}
		}
		all.stop()
	}
	b.ReportMetric(all.ms()/float64(b.N), "cpu-ms")
}

// BenchmarkAddMasks is the fast path alone: one mask of the reference adapter.
func BenchmarkAddMasks(b *testing.B) {
	v := make([]uint32, benchDim)
	keys := make([]maskKey, 64)
	for i := range keys {
		keys[i][0] = byte(i)
	}
	for _, width := range []int{11, 32} {
		b.Run(fmt.Sprintf("width=%d", width), func(b *testing.B) {
			for b.Loop() {
				addMasks(v, keys[:32], keys[32:], width)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/64, "us/mask")
		})
		b.Run(fmt.Sprintf("plain/width=%d", width), func(b *testing.B) {
			for b.Loop() {
				addMasksPlain(v, keys[:32], keys[32:], width)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/64, "us/mask")
		})
	}
}

// BenchmarkAddPacked adds a masked vector of 17k symbols to a shard's sum.
func BenchmarkAddPacked(b *testing.B) {
	const width = 21
	sum := make([]uint32, 17_000)
	p := pack(sum, width)
	for name, add := range map[string]func([]uint32, []byte, int){"eight": addPacked, "plainly": addPackedPlainly} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				add(sum, p, width)
			}
		})
	}
}
