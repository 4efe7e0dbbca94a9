package secagg

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

func goodConfig() Config {
	return Config{Dim: 10, Width: 11, MaxSymbol: 12, ShardMax: 64, ShardMin: 60, CorruptPPM: 50000, BreachBits: 44,
		Suite: SuiteX25519, Identified: true}
}

func TestConfigRefuses(t *testing.T) {
	if err := goodConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(c *Config)
		cause  error
		says   string
	}{
		{func(c *Config) { c.Dim = 0 }, ErrConfig, "Dim 0"},
		{func(c *Config) { c.Dim = MaxDim + 1 }, ErrConfig, "Dim"},
		{func(c *Config) { c.Width = 0 }, ErrConfig, "Width 0"},
		{func(c *Config) { c.Width = 33 }, ErrConfig, "Width 33"},
		{func(c *Config) { c.MaxSymbol = 0 }, ErrConfig, "MaxSymbol 0"},
		{func(c *Config) { c.MaxSymbol = math.MaxInt32 + 1 }, ErrConfig, "MaxSymbol"},
		{func(c *Config) { c.ShardMax = 1 }, ErrConfig, "ShardMax 1"},
		{func(c *Config) { c.ShardMax = MaxShard + 1 }, ErrConfig, "ShardMax"},
		{func(c *Config) { c.ShardMin = 1 }, ErrConfig, "ShardMin 1"},
		{func(c *Config) { c.ShardMin = 65 }, ErrConfig, "ShardMin 65"},
		{func(c *Config) { c.ShardMin = 8 }, ErrConfig, "shard of 8"},
		{func(c *Config) { c.CorruptPPM = 1000000 }, ErrConfig, "CorruptPPM"},
		{func(c *Config) { c.CorruptPPM = 700000 }, ErrConfig, "cannot withstand"},
		{func(c *Config) { c.BreachBits = -1 }, ErrConfig, "BreachBits"},
		{func(c *Config) { c.BreachBits = 129 }, ErrConfig, "BreachBits"},
		{func(c *Config) { c.Suite = 0 }, ErrConfig, "Suite 0"},
		{func(c *Config) { c.Authority[0] = 1 }, ErrConfig, "Authority given"},
		{func(c *Config) { c.Identified = false }, ErrConfig, "Authority missing"},
		// Overflow is refused where the shard is made: 2*64*16+1 > 2^11.
		{func(c *Config) { c.MaxSymbol = 16 }, ErrOverflow, "need 12 bits"},
		{func(c *Config) { c.Width = 10 }, ErrOverflow, "need 11 bits"},
		{func(c *Config) { c.ShardMax = 86 }, ErrOverflow, "86 symbols of -12..12"},
	} {
		cfg := goodConfig()
		c.change(&cfg)
		for what, err := range map[string]error{
			"Validate":  cfg.Validate(),
			"NewClient": second(NewClient(cfg, Hash{}, ed25519.NewKeyFromSeed(make([]byte, 32)), newDRBG(""))),
			"NewKeying": second(NewKeying(cfg, Hash{}, nil)),
		} {
			if !errors.Is(err, c.cause) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %v: %s", what, err, c.cause, c.says)
			}
		}
	}
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	for what, err := range map[string]error{
		"no identity":           second(NewClient(goodConfig(), Hash{}, nil, newDRBG(""))),
		"no randomness":         second(NewClient(goodConfig(), Hash{}, key, nil)),
		"authority, identified": second(NewKeying(goodConfig(), Hash{}, key)),
		"another authority": func() error {
			c := goodConfig()
			c.Identified, c.Authority = false, [32]byte{1}
			return second(NewKeying(c, Hash{}, key))
		}(),
	} {
		if !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestRingWidth: the width is enough for the extreme sums and not one bit more,
// and a full shard of extreme symbols comes out right (design/codec.md's table).
func TestRingWidth(t *testing.T) {
	for _, c := range []struct{ q, g, bits int }{
		{12, 85, 11}, {12, 42, 10}, {7, 73, 10}, {15, 68, 11}, {3, 85, 9}, {3, 42, 8}, {1, 127, 8}, {1, 63, 7},
		{12, 86, 12}, {1, 64, 8}, {1, 1, 2}, {1<<31 - 1, 1, 32}, {1<<31 - 1, 2, 33},
	} {
		if got := RingWidth(c.g, c.q); got != c.bits {
			t.Errorf("%d symbols of %d: %d bits, want %d", c.g, c.q, got, c.bits)
		}
		b := uint(c.bits)
		if b <= 32 {
			for _, sum := range []int64{int64(c.g) * int64(c.q), -int64(c.g) * int64(c.q)} {
				if centre(uint32(sum), c.bits) != sum {
					t.Errorf("%d does not survive %d bits", sum, b)
				}
				if centre(uint32(sum), c.bits-1) == sum && c.bits > 1 && sum != -(1<<(b-2)) {
					t.Errorf("%d survives %d bits: one is wasted", sum, b-1)
				}
			}
		}
	}
	for _, extreme := range []int32{127, -127} {
		cfg := testConfig(3, 11, 127, 8) // 2*8*127+1 = 2033 of 2048
		r := newRound(t, fmt.Sprint("extreme", extreme), cfg, 8)
		for _, d := range r.devices {
			for j := range d.symbols {
				d.symbols[j] = extreme
			}
		}
		r.key()
		r.check(r.shards[0])
	}
}

// TestPlanHash: everything a plan contains changes P, and fields cannot flow
// into each other.
func TestPlanHash(t *testing.T) {
	base := goodConfig()
	seen := map[Hash]string{}
	add := func(what string, h Hash) {
		if seen[h] != "" {
			t.Errorf("%s and %s have one hash", what, seen[h])
		}
		seen[h] = what
	}
	add("base", PlanHash("task", 1, base, []byte("assignment")))
	add("task", PlanHash("tasks", 1, base, []byte("assignment")))
	add("round", PlanHash("task", 2, base, []byte("assignment")))
	add("assignment", PlanHash("task", 1, base, []byte("assignments")))
	add("shifted", PlanHash("taska", 1, base, []byte("ssignment")))
	for what, change := range map[string]func(c *Config){
		"Dim": func(c *Config) { c.Dim++ }, "Width": func(c *Config) { c.Width++ }, "MaxSymbol": func(c *Config) { c.MaxSymbol++ },
		"ShardMax": func(c *Config) { c.ShardMax++ }, "ShardMin": func(c *Config) { c.ShardMin++ },
		"CorruptPPM": func(c *Config) { c.CorruptPPM++ }, "BreachBits": func(c *Config) { c.BreachBits++ },
		"SemiHonest": func(c *Config) { c.SemiHonest = true }, "Suite": func(c *Config) { c.Suite = SuiteHybrid },
		"Identified": func(c *Config) { c.Identified = false }, "Authority": func(c *Config) { c.Authority[31] = 1 },
	} {
		c := base
		change(&c)
		add(what, PlanHash("task", 1, c, []byte("assignment")))
		b, _ := c.AppendBinary(nil)
		var d Config
		if err := d.UnmarshalBinary(b); err != nil || d != c {
			t.Errorf("%s does not survive its encoding: %+v, %v", what, d, err)
		}
	}
}

// TestHybrid: a round under ML-KEM-768 + X25519, and a share sealed there does not
// open if either half of the key is another's.
func TestHybrid(t *testing.T) {
	cfg := testConfig(20, 11, 12, 4)
	cfg.Suite = SuiteHybrid
	r := newRound(t, "hybrid", cfg, 4)
	r.devices[1].lastTurn = TurnShare
	r.key()
	r.check(r.shards[0])

	sealers, public := make([]*sealer, 3), make([][]byte, 3)
	for i := range sealers {
		var err error
		sealers[i], public[i], err = newSealer(SuiteHybrid, bytes.Repeat([]byte{byte(i + 1)}, 64))
		r.must(err)
	}
	roster := Hash{1}
	plain := [plainSize]byte{7, 8, 9}
	ss, err := sealers[0].agree(public[1])
	r.must(err)
	box, err := sealers[0].seal(nil, &ss, public[1], &plain, &roster, 0, 1)
	r.must(err)
	if len(box) != SuiteHybrid.sealedSize() {
		t.Fatalf("%d bytes", len(box))
	}
	back, err := sealers[1].agree(public[0])
	r.must(err)
	var out [plainSize]byte
	if !sealers[1].open(&out, &back, box, &roster, 0, 1) || out != plain {
		t.Fatal("does not open")
	}
	wrongDH := shared{1}
	wrongKEM := &sealer{suite: SuiteHybrid, dh: sealers[1].dh, kem: sealers[2].kem}
	changed := slices.Clone(box)
	changed[5] ^= 1
	for what, opened := range map[string]bool{
		"another X25519 secret": sealers[1].open(&out, &wrongDH, box, &roster, 0, 1),
		"another ML-KEM key":    wrongKEM.open(&out, &back, box, &roster, 0, 1),
		"another direction":     sealers[1].open(&out, &back, box, &roster, 1, 0),
		"another roster":        sealers[1].open(&out, &back, box, &Hash{2}, 0, 1),
		"a changed ciphertext":  sealers[1].open(&out, &back, changed, &roster, 0, 1),
	} {
		if opened {
			t.Errorf("opens with %s", what)
		}
	}
}

// TestUploadOverhead counts bytes: beyond the packed vector a device of a shard
// of 64 sends at most 12 KB (12,000 bytes) in all five turns.
func TestUploadOverhead(t *testing.T) {
	cfg := testConfig(100, 11, 12, 64)
	cfg.CorruptPPM, cfg.BreachBits, cfg.ShardMin = 50000, 44, 60
	r := newRound(t, "bytes", cfg, 64)
	r.key()
	r.check(r.shards[0])
	vector := packedSize(cfg.Dim, cfg.Width)
	for _, d := range r.devices {
		total := -vector
		for turn := TurnAdvertise; turn < TurnDone; turn++ {
			total += len(d.sent(turn))
		}
		if total > 12000 || total < 10000 {
			t.Fatalf("%d bytes beyond the vector", total)
		}
	}
	if n := r.devices[0].c.threshold; n != 44 {
		t.Errorf("threshold %d", n)
	}
	if n := r.devices[0].c.ShardSize(); n != 64 {
		t.Errorf("shard size %d", n)
	}
}

// failing is a source that dries up after n bytes.
type failing struct {
	n int
	d *drbg
}

func (f *failing) Read(p []byte) (int, error) {
	if len(p) > f.n {
		return 0, io.ErrUnexpectedEOF
	}
	f.n -= len(p)
	return f.d.Read(p)
}

// TestRandomnessFails: wherever the source fails, the call fails and nothing has
// changed; it succeeds when the source is back.
func TestRandomnessFails(t *testing.T) {
	r := newRound(t, "dry", testConfig(5, 11, 12, 3), 3)
	for _, d := range r.devices {
		source := &failing{d: newDRBG("source %x", d.id)}
		d.c.rand = source
		for n := 0; ; n += 8 {
			source.n = n
			before := snapshot(d.c)
			m, err := d.c.Advertise()
			if err == nil {
				r.must(r.keying.Add(d.id, m))
				break
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) || snapshot(d.c) != before {
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
	}
	source := &failing{d: newDRBG("server")}
	for n := 0; ; n += 8 {
		source.n = n
		before := snapshot(r.keying)
		var err error
		if r.shards, err = r.keying.Cut(source); err == nil {
			break
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) || snapshot(r.keying) != before {
			t.Fatalf("cut, %d bytes: %v", n, err)
		}
	}
	d := r.devices[0]
	for n := 0; ; n += 8 {
		d.c.rand.(*failing).n = n
		before := snapshot(d.c)
		_, err := d.c.Share(r.shards[0].Roster())
		if err == nil {
			break
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) || snapshot(d.c) != before {
			t.Fatalf("share, %d bytes: %v", n, err)
		}
	}
}

// TestMaskHides: zeros come out uniform as far as a chi-square can tell (16
// cells, 16,000 values, 15 degrees of freedom: 60 is exceeded with probability
// below 1e-6).
func TestMaskHides(t *testing.T) {
	cfg := testConfig(16000, 4, 1, 3)
	r := newRound(t, "hides", cfg, 3)
	for _, d := range r.devices {
		clear(d.symbols)
	}
	r.key()
	s := r.shards[0]
	r.must(r.share(s))
	for _, d := range r.of(s, TurnMask) {
		r.must(d.c.Deliver(s.Delivery(d.id)))
		m, err := d.c.Mask(d.symbols)
		r.must(err)
		v := make([]uint32, cfg.Dim)
		addPacked(v, m.packed, cfg.Width)
		counts := make([]float64, 16)
		for _, x := range v {
			counts[x]++
		}
		chi := 0.0
		for _, c := range counts {
			chi += (c - 1000) * (c - 1000) / 1000
		}
		if chi > 60 {
			t.Errorf("chi-square %.0f", chi)
		}
	}
}

// TestLargestSum: symbols that hold noise add up to less than as many of the largest do.
// The ring is held to what they do add up to, and both sides sign it.
func TestLargestSum(t *testing.T) {
	c := goodConfig()
	c.Width, c.MaxSymbol = 12, 152
	if err := c.Validate(); !errors.Is(err, ErrOverflow) {
		t.Errorf("64 symbols of 152 in 12 bits: %v", err)
	}
	c.MaxSum = 2047
	if err := c.Validate(); err != nil {
		t.Errorf("sums of 2047 in 12 bits: %v", err)
	}
	with, _ := c.AppendBinary(nil)
	var back Config
	if err := back.UnmarshalBinary(with); err != nil || back != c {
		t.Errorf("%+v, %v", back, err)
	}
	for _, sum := range []int{2048, 151, 1 << 40, -1} {
		bad := c
		if bad.MaxSum = sum; bad.Validate() == nil {
			t.Errorf("a largest sum of %d is accepted", sum)
		}
	}
	other := c
	other.MaxSum--
	if PlanHash("task", 1, c, nil) == PlanHash("task", 1, other, nil) {
		t.Error("the largest sum is not signed")
	}
	c.MaxSum = 0
	without, _ := c.AppendBinary(nil)
	zero := append(append([]byte{with[0]}, without[1:]...), 0)
	if err := new(Config).UnmarshalBinary(zero); !errors.Is(err, ErrEncoding) {
		t.Errorf("a largest sum of 0 that is not left out: %v", err)
	}
}
