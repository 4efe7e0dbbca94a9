package edge

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/secagg/log"
)

// aLog is a coordinator's log, in memory.
type aLog struct {
	key    ed25519.PrivateKey
	leaves []log.Enrolment
	hashes []log.Hash
}

func newLog() *aLog { return &aLog{key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{5}, 32))} }

func (l *aLog) public() [32]byte { return [32]byte(l.key.Public().(ed25519.PublicKey)) }

func (l *aLog) ReadHashes(indexes []int64) (out []log.Hash, err error) {
	for _, i := range indexes {
		out = append(out, l.hashes[i])
	}
	return out, nil
}

func (l *aLog) add(t *testing.T, names ...string) *aLog {
	t.Helper()
	for _, name := range names {
		e := log.Enrolment{Key: sha256.Sum256([]byte(name)), At: 1_700_000_000 + uint64(len(l.leaves))}
		h, err := e.Hash()
		if err != nil {
			t.Fatal(err)
		}
		more, err := tlog.StoredHashesForRecordHash(int64(len(l.leaves)), h, l)
		if err != nil {
			t.Fatal(err)
		}
		l.leaves, l.hashes = append(l.leaves, e), append(l.hashes, more...)
	}
	return l
}

func (l *aLog) head(t *testing.T, n int) []byte {
	t.Helper()
	h, err := log.HeadOf(int64(n), l)
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.Sign(l.key)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (l *aLog) grown(t *testing.T, from, to int) wire.Growth {
	t.Helper()
	proof, err := log.ProveConsistency(int64(from), int64(to), l)
	if err != nil {
		t.Fatal(err)
	}
	g := wire.Growth{From: uint64(from)}
	for _, h := range proof {
		g.Hashes = append(g.Hashes, h[:]...)
	}
	return g
}

func names(prefix string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(prefix, i))
	}
	return out
}

// kept is an account whose file can be read.
func kept(t *testing.T, file *[]byte) *Account {
	t.Helper()
	a, err := NewAccount(*file, func(b []byte) error { *file = slices.Clone(b); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A device follows a log that grows, also as another process, and nothing else: no fork of
// it, no shorter one, none that does not say how it goes on.
func TestHostileLogs(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	honest := newLog().add(t, names("device", 30)...)
	key := honest.public()
	fork := newLog().add(t, names("device", 12)...).add(t, names("invented", 18)...)
	small := newLog()
	for _, c := range []struct {
		what  string
		note  []byte
		grown wire.Growth
	}{
		{"a fork that is longer", fork.head(t, 30), fork.grown(t, 20, 30)},
		{"a fork that is longer, with the honest proof", fork.head(t, 30), honest.grown(t, 20, 30)},
		{"a fork as long", fork.head(t, 20), wire.Growth{}},
		{"an old head", honest.head(t, 10), wire.Growth{}},
		{"an old head, as if it went on from there", honest.head(t, 10), honest.grown(t, 10, 20)},
		{"an empty log", small.head(t, 0), wire.Growth{}},
		{"a longer log without a proof", honest.head(t, 30), wire.Growth{From: 20}},
		{"a longer log that goes on from nothing", honest.head(t, 30), wire.Growth{}},
		{"a proof from another size", honest.head(t, 30), honest.grown(t, 19, 30)},
		{"a proof of wild size", honest.head(t, 30), wire.Growth{From: 20, Hashes: make([]byte, 82*32)}},
	} {
		var file []byte
		a := kept(t, &file)
		if _, err := a.follow(key, honest.head(t, 0), wire.Growth{}, now); err != nil {
			t.Fatal(err)
		}
		if _, err := a.follow(key, honest.head(t, 12), wire.Growth{}, now); err != nil {
			t.Fatal(err)
		}
		if head, err := a.follow(key, honest.head(t, 20), honest.grown(t, 12, 20), now); err != nil || head.Size != 20 {
			t.Fatal(head, err)
		}
		a = kept(t, &file) // as after a restart
		if n := a.heldKeys(key); n != 20 {
			t.Fatalf("%d keys are held, of 20", n)
		}
		if _, err := a.follow(key, c.note, c.grown, now); !errors.Is(err, ErrLog) {
			t.Errorf("%s: %v", c.what, err)
		}
		if a = kept(t, &file); a.heldKeys(key) != 20 {
			t.Errorf("%s: %d keys are held after it", c.what, a.heldKeys(key))
		}
		if k := a.known(key); k.Note != string(honest.head(t, 20)) || k.Refused != string(c.note) {
			t.Errorf("%s: what is kept proves nothing to others: %+v", c.what, k)
		}
		// The honest log goes on.
		if head, err := a.follow(key, honest.head(t, 30), honest.grown(t, 20, 30), now); err != nil || head.Size != 30 {
			t.Errorf("after %s: %v, %v", c.what, head, err)
		}
	}
	other := newLog()
	other.key = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{6}, 32))
	a := kept(t, new([]byte))
	for what, note := range map[string][]byte{"another log's": other.head(t, 0), "no": nil, "a broken": bytes.Replace(honest.head(t, 20), []byte("\n20\n"), []byte("\n21\n"), 1)} {
		if _, err := a.follow(key, note, wire.Growth{}, now); !errors.Is(err, ErrLog) {
			t.Errorf("%s head: %v", what, err)
		}
	}
}

// A witness that is away for a round is no fork: the round is left, the head is followed, and
// the device is there for the next. Of a head at joining its owner is told.
func TestHostileUnwitnessedHeads(t *testing.T) {
	honest := newLog().add(t, names("device", 30)...)
	private, public, err := note.GenerateKey(rand.Reader, "witness.example")
	ok(t, err)
	witness, err := note.NewSigner(private)
	ok(t, err)
	signed := func(n int) []byte {
		head := honest.head(t, n)
		text, _, _ := strings.Cut(string(head), "\n\n")
		by, err := note.Sign(&note.Note{Text: text + "\n"}, witness)
		ok(t, err)
		both, err := log.Cosigned(head, by[len(text)+2:], honest.public())
		ok(t, err)
		return both
	}
	var told []string
	c := &client{cfg: Config{Account: kept(t, new([]byte)), Policy: &Policy{Log: public}}, job: &job{}}
	c.events = &events{to: func(e Event) { told = append(told, e.Text) }}
	c.job.LogKey = honest.public()
	welcome := &wire.Welcome{LogKey: honest.public()}
	ok(t, c.greetLog(welcome, &wire.Enrolled{Head: honest.head(t, 10)}))
	ok(t, c.greetLog(welcome, &wire.Enrolled{Head: signed(10)}))
	if head, err := c.planLog(&wire.Plan{Head: honest.head(t, 12)}, honest.grown(t, 10, 12)); !errors.Is(err, log.ErrUnwitnessed) || fatalLog(err) != nil || head.Size != 12 {
		t.Errorf("a plan that the witness has not signed: %v, %v", head, err)
	}
	if head, err := c.planLog(&wire.Plan{Head: signed(20)}, honest.grown(t, 12, 20)); err != nil || head.Size != 20 {
		t.Errorf("the next: %v, %v", head, err)
	}
	forged := signed(20)
	forged[len(forged)-8] ^= 1
	if _, err := c.planLog(&wire.Plan{Head: forged}, wire.Growth{}); fatalLog(err) == nil {
		t.Errorf("a forged signature of the witness's: %v", err)
	}
	fork := newLog().add(t, names("device", 12)...).add(t, names("invented", 18)...)
	if _, err := c.planLog(&wire.Plan{Head: fork.head(t, 30)}, fork.grown(t, 20, 30)); !errors.Is(err, ErrLog) || fatalLog(err) == nil {
		t.Errorf("a fork: %v", err)
	}
	if len(told) != 1 || !strings.Contains(told[0], "has not signed") {
		t.Errorf("the owner was told %q", told)
	}
}

// What a device was shown bounds the age of what it is shown later: a leaf that is not in
// the log as it was at noon was not enrolled in the morning.
func TestAgeOfPeers(t *testing.T) {
	const start = 1_800_000_000
	var k knownLog
	for i := range 5000 { // a head an hour, each of ten more keys
		k.see(int64(10*i), time.Unix(start+int64(i)*hour, 0))
		if len(k.Seen) > mostSeen {
			t.Fatalf("%d heads are kept", len(k.Seen))
		}
	}
	now := int64(start + 4999*hour)
	for leaf := int64(0); leaf < 49_000; leaf += 137 {
		came := start + (leaf/10)*hour // when the log was last shown without it
		since := k.since(leaf, 1)
		if since > came || now-since > (now-came)+(now-came)/2+2*hour {
			t.Fatalf("leaf %d, which came %d h ago, is taken to be there for %d h", leaf, (now-came)/hour, (now-since)/hour)
		}
		if later := k.since(leaf, uint64(came+5)); later != came+5 {
			t.Fatalf("leaf %d is said to be of %d, and taken for %d", leaf, came+5, later)
		}
	}
	k.see(49_990, time.Unix(now+hour, 0))
	if last := k.Seen[len(k.Seen)-1]; last.At != now+hour || last.Size != 49_990 {
		t.Errorf("a log without more keys is noted as %+v", last)
	}
}

func TestPeersOfAShard(t *testing.T) {
	keys := make([][32]byte, 6)
	m := &log.Members{Leaves: []int64{1, 50, 51, 52, 53, 90}, At: []uint64{1000, 5000, 5020, 5060, 5061, 9000}}
	for i := range keys {
		keys[i] = [32]byte{byte(i + 1)}
	}
	p, since := look(knownLog{Seen: []seenHead{{40, 4000}}}, m, keys, keys[5], 200)
	if want := (Peers{Devices: 6, Together: 3, Newest: 5061, Keys: 200}); *p != want {
		t.Errorf("%+v, want %+v", *p, want)
	}
	if !strings.Contains(p.String(), "6 devices of 200 enrolled, 3 of them enrolled within one minute") {
		t.Error(p)
	}
	// Who was shown the log without them knows better than its coordinator says.
	p, since2 := look(knownLog{Seen: []seenHead{{40, 4000}, {52, 20_000}}}, m, keys, keys[5], 200)
	if p.Later != 3 || p.Together != 3 || since2[3] != 20_000 || since2[1] != since[1] {
		t.Errorf("%+v, %v", *p, since2)
	}
	if b, err := json.Marshal(p); err != nil || !strings.Contains(string(b), `"later":3`) {
		t.Error(string(b), err)
	}
}

// The share of a shard that must be old enough follows from what it withstands.
func TestHostileYoungPeers(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		n, corrupt int // devices; per cent
		semi       bool
	}{{64, 5, false}, {64, 0, false}, {64, 10, true}, {3, 0, false}} {
		cfg := &secagg.Config{ShardMax: c.n, ShardMin: 2, CorruptPPM: uint32(c.corrupt) * 10_000, SemiHonest: c.semi}
		if c.corrupt > 0 {
			cfg.BreachBits = 40
		}
		threshold, err := cfg.Threshold(c.n)
		if err != nil {
			t.Fatal(err)
		}
		most := 2*threshold - c.n - 1
		if c.semi {
			most = threshold - 1
		}
		keys, since := make([][32]byte, c.n), make([]int64, c.n)
		p := &Policy{PeerAge: 24 * time.Hour}
		for young := range c.n {
			for i := range keys {
				keys[i] = [32]byte{byte(i), 1}
				if since[i] = now.Unix() - 25*hour; i >= c.n-young-1 { // the last of which is this device
					since[i] = now.Unix() - 60
				}
			}
			err := p.checkAge(cfg, since, keys, keys[c.n-1], now)
			if beyond := new(PolicyError); (err != nil) != (young > most) || err != nil && (!errors.As(err, &beyond) || beyond.Key != "peer_age") {
				t.Errorf("%+v, %d young of at most %d: %v", c, young, most, err)
			}
			if err := new(Policy).checkAge(cfg, since, keys, keys[c.n-1], now); err != nil {
				t.Errorf("an owner who did not ask: %v", err)
			}
		}
	}
}

func FuzzRosterProof(f *testing.F) {
	f.Add([]byte(`{"version":1,"job":"AA==","plan":"AA==","roster":"AA=="}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParseRosterProof(b)
		if err != nil {
			return
		}
		if proven, err := p.Verify(); err == nil {
			t.Fatalf("%s proves %+v", b, proven)
		}
	})
}
