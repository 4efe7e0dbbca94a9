package secagg

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"testing"
)

// drbg is a deterministic source for tests: AES-CTR under a hashed seed. The
// transcript vector's script draws the same bytes.
type drbg struct{ s cipher.Stream }

func newDRBG(format string, args ...any) *drbg {
	k := sha256.Sum256(fmt.Appendf(nil, format, args...))
	b, err := aes.NewCipher(k[:16])
	if err != nil {
		panic(err)
	}
	return &drbg{cipher.NewCTR(b, k[16:])}
}

func (d *drbg) Read(p []byte) (int, error) {
	clear(p)
	d.s.XORKeyStream(p, p)
	return len(p), nil
}

// intn is in 0..n-1, close to uniform.
func (d *drbg) intn(n int) int {
	var b [8]byte
	d.Read(b[:])
	return int(binary.LittleEndian.Uint64(b[:]) % uint64(n))
}

// wireMessage is what every message is.
type wireMessage interface {
	AppendBinary([]byte) ([]byte, error)
}

// over sends a message through its encoding, as a network would.
func over[T any, P interface {
	*T
	wireMessage
	UnmarshalBinary([]byte) error
}](t testing.TB, m P) P {
	t.Helper()
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := P(new(T))
	if err := out.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	again, _ := out.AppendBinary(nil)
	if string(again) != string(b) {
		t.Fatalf("%T: encoding is not canonical", m)
	}
	return out
}

// device is one honest client with its symbols.
type device struct {
	id       ID
	key      ed25519.PrivateKey
	c        *Client
	symbols  []int32
	lastTurn Turn // the last turn it takes part in: TurnReveal if it never drops
	masked   []byte
}

// sent is what the device has sent in a turn.
func (d *device) sent(t Turn) []byte {
	if t == TurnMask {
		return d.masked
	}
	return d.c.Resend(t)
}

// round is a whole round in one process.
type round struct {
	t       testing.TB
	cfg     Config
	plan    Hash
	auth    ed25519.PrivateKey
	keying  *Keying
	devices []*device
	byID    map[ID]*device
	shards  []*Server
	rand    io.Reader
}

func testConfig(dim, width, maxSymbol, shardMax int) Config {
	return Config{Dim: dim, Width: width, MaxSymbol: maxSymbol, ShardMax: shardMax, ShardMin: 2, Suite: SuiteX25519}
}

// newRound sets up n devices with random in-range symbols; nothing is sent yet.
func newRound(t testing.TB, seed string, cfg Config, n int) *round {
	t.Helper()
	r := &round{t: t, rand: newDRBG("server %s", seed), byID: map[ID]*device{}}
	if !cfg.Identified {
		k := sha256.Sum256([]byte("authority " + seed))
		r.auth = ed25519.NewKeyFromSeed(k[:])
		copy(cfg.Authority[:], r.auth.Public().(ed25519.PublicKey))
	}
	r.cfg = cfg
	r.plan = PlanHash("test task", 7, cfg, []byte(seed))
	var err error
	if r.keying, err = NewKeying(cfg, r.plan, r.auth); err != nil {
		t.Fatal(err)
	}
	if cfg.Dealt {
		r.keying.SetGroups(func(_ ID, lot *[LotSize]byte) (int, error) { return int(lot[0]) % dealtGroups, nil })
	}
	for i := range n {
		k := sha256.Sum256(fmt.Appendf(nil, "identity %s %d", seed, i))
		d := &device{key: ed25519.NewKeyFromSeed(k[:]), lastTurn: TurnReveal}
		copy(d.id[:], d.key.Public().(ed25519.PublicKey))
		rnd := newDRBG("device %s %d", seed, i)
		if d.c, err = NewClient(cfg, r.plan, d.key, rnd); err != nil {
			t.Fatal(err)
		}
		if cfg.Dealt {
			r.must(d.c.SetLot(lotOf(seed, i)))
		}
		sym := newDRBG("symbols %s %d", seed, i)
		d.symbols = make([]int32, cfg.Dim)
		for j := range d.symbols {
			d.symbols[j] = int32(sym.intn(2*cfg.MaxSymbol+1) - cfg.MaxSymbol)
		}
		r.devices = append(r.devices, d)
		r.byID[d.id] = d
	}
	return r
}

// dealtGroups is into how many groups a Dealt round of the tests is dealt, and lotOf what a
// device draws there: its first byte says its group.
const dealtGroups = 3

func lotOf(seed string, i int) (lot [LotSize]byte) {
	if _, err := io.ReadFull(newDRBG("lot %s %d", seed, i), lot[:]); err != nil {
		panic(err) // a key stream has no end
	}
	return lot
}

func (r *round) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// key runs turn 1 and cuts the shards.
func (r *round) key() {
	r.t.Helper()
	for _, d := range r.devices {
		m, err := d.c.Advertise()
		r.must(err)
		if d.lastTurn >= TurnAdvertise {
			r.must(r.keying.Add(d.id, over(r.t, m)))
		}
	}
	var err error
	r.shards, err = r.keying.Cut(r.rand)
	r.must(err)
	if r.cfg.Logged {
		for _, s := range r.shards {
			r.must(s.SetEnrolments(fmt.Appendf(nil, "enrolments of shard %d", s.Shard())))
		}
	}
}

// of lists the devices of a shard that take part in a turn.
func (r *round) of(s *Server, t Turn) []*device {
	var out []*device
	for _, id := range s.Members() {
		if d := r.byID[id]; d.lastTurn >= t {
			out = append(out, d)
		}
	}
	return out
}

func (r *round) share(s *Server) error {
	r.t.Helper()
	for _, d := range r.of(s, TurnShare) {
		m, err := d.c.Share(over(r.t, s.Roster()))
		r.must(err)
		r.must(s.Add(d.id, over(r.t, m)))
	}
	return s.CloseSharing()
}

func (r *round) mask(s *Server) (*Survivors, error) {
	r.t.Helper()
	for _, d := range r.of(s, TurnMask) {
		r.must(d.c.Deliver(over(r.t, s.Delivery(d.id))))
		m, err := d.c.Mask(d.symbols)
		r.must(err)
		d.masked, err = m.AppendBinary(nil)
		r.must(err)
		r.must(s.Add(d.id, over(r.t, m)))
	}
	return s.CloseCollecting()
}

func (r *round) confirm(s *Server, sv *Survivors) (*Confirmations, error) {
	r.t.Helper()
	for _, d := range r.of(s, TurnConfirm) {
		m, err := d.c.Confirm(over(r.t, sv))
		r.must(err)
		r.must(s.Add(d.id, over(r.t, m)))
	}
	return s.CloseConfirming()
}

func (r *round) reveal(s *Server, cs *Confirmations) {
	r.t.Helper()
	for _, d := range r.of(s, TurnReveal) {
		m, err := d.c.Reveal(over(r.t, cs))
		r.must(err)
		r.must(s.Add(d.id, over(r.t, m)))
	}
}

// finish runs turns 2..5 of a shard.
func (r *round) finish(s *Server) ([]int64, error) {
	r.t.Helper()
	if err := r.share(s); err != nil {
		return nil, err
	}
	sv, err := r.mask(s)
	if err != nil {
		return nil, err
	}
	cs, err := r.confirm(s, sv)
	if err != nil {
		return nil, err
	}
	r.reveal(s, cs)
	return s.Unmask()
}

// plain is the sum that Unmask must return.
func (r *round) plain(s *Server) []int64 {
	sum := make([]int64, r.cfg.Dim)
	for _, d := range r.of(s, TurnMask) {
		for j, x := range d.symbols {
			sum[j] += int64(x)
		}
	}
	return sum
}

func (r *round) check(s *Server) {
	r.t.Helper()
	got, err := r.finish(s)
	r.must(err)
	if !slices.Equal(got, r.plain(s)) {
		r.t.Fatalf("shard %d: the sum is wrong", s.Shard())
	}
}

func TestRound(t *testing.T) {
	r := newRound(t, "plain", testConfig(1000, 11, 12, 5), 14)
	r.key()
	if len(r.shards) != 3 {
		t.Fatalf("%d shards", len(r.shards))
	}
	for _, s := range r.shards {
		r.check(s)
	}
}

// TestMaxMessage: no message of a round is longer than MaxMessage says, in a shard that is
// full and whose threshold is all of it; nor is that much more than they take.
func TestMaxMessage(t *testing.T) {
	for _, suite := range []Suite{SuiteX25519, SuiteHybrid} {
		cfg := testConfig(1000, 11, 12, 9)
		cfg.Suite, cfg.ShardMin, cfg.CorruptPPM, cfg.BreachBits = suite, 9, 300_000, 11 // all but one of nine must be honest
		r := newRound(t, "longest", cfg, 9)
		r.key()
		r.check(r.shards[0])
		if n, err := r.cfg.Threshold(9); err != nil || n != 9 {
			t.Fatalf("threshold %d, %v", n, err)
		}
		for turn := TurnAdvertise; turn <= TurnReveal; turn++ {
			most := r.cfg.MaxMessage(turn)
			for _, d := range r.devices {
				if n := len(d.sent(turn)); n > most || n+headRoom < most {
					t.Errorf("suite %d: %v has %d bytes, at most %d", suite, turn, n, most)
				}
			}
		}
	}
	if (Config{}).MaxMessage(TurnDone) != 0 {
		t.Error("a sixth turn has a length")
	}
}

// TestRoundRandom: for random sizes, widths 1..32, dropouts at every turn and
// settings, the sum equals the plain sum, or the shard fails for want of a threshold.
func TestRoundRandom(t *testing.T) {
	failed, passed := 0, 0
	for k := range 64 {
		rnd := newDRBG("random round %d", k)
		width := k%32 + 1
		n := 2 + rnd.intn(14)
		maxShard := 2 + rnd.intn(8)
		// A width holds shards whose sum fits it: narrow rings serve small shards.
		for RingWidth(maxShard, 1) > width && maxShard > 2 {
			maxShard--
		}
		if RingWidth(maxShard, 1) > width {
			continue // widths 1 and 2 hold no shard of two at all: see TestOverflow
		}
		q := min((1<<width-1)/2/maxShard, 1<<31-1)
		cfg := testConfig(1+rnd.intn(300), width, q, maxShard)
		if rnd.intn(3) == 0 {
			cfg.Identified = true
		}
		cfg.SemiHonest = rnd.intn(4) == 0
		if shardSizes(n, maxShard)[(n+maxShard-1)/maxShard-1] < 2 {
			continue
		}
		r := newRound(t, fmt.Sprint("random", k), cfg, n)
		for _, d := range r.devices {
			if rnd.intn(4) == 0 {
				d.lastTurn = Turn(1 + rnd.intn(int(TurnReveal)))
			}
		}
		r.key()
		for _, s := range r.shards {
			got, err := r.finish(s)
			if err != nil {
				if !isBelowThreshold(err) {
					t.Fatalf("round %d: %v", k, err)
				}
				failed++
				continue
			}
			passed++
			if !slices.Equal(got, r.plain(s)) {
				t.Fatalf("round %d (%+v), shard %d of %d: wrong sum", k, cfg, s.Shard(), len(s.members))
			}
		}
	}
	if failed < 10 || passed < 30 {
		t.Fatalf("%d shards failed and %d passed: the test has lost its point", failed, passed)
	}
}
