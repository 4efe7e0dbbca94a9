//go:build !js

package edge

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
)

// Somebody answers at the token's address who runs another job, or another
// authority: nothing is signed for the first, nothing is done for the second.
func TestHostileOtherJob(t *testing.T) {
	h := newHouse(t)
	h.token.Task = make([]byte, 32)
	d := h.start(h.config(&constant{}))
	p := h.dialed()
	want[*wire.Hello](p)
	p.send(&wire.Welcome{Version: wire.Version, Task: h.task})
	if err := d.wait(t); !errors.Is(err, ErrJobChanged) {
		t.Errorf("another job: %v", err)
	}
	h = newHouse(t)
	h.token.Authority = make([]byte, 32)
	d = h.start(h.config(&constant{}))
	h.admit(false)
	if err := d.wait(t); !errors.Is(err, ErrJob) || !strings.Contains(err.Error(), "certified") {
		t.Errorf("another authority: %v", err)
	}
	h = newHouse(t)
	d = h.start(h.config(&constant{}))
	p, hello, welcome := h.accept()
	h.job.Name = "another"
	h.announce()
	p.send(&wire.Enrolled{Proof: wire.CoordinatorProof(h.token.Secret, hello, welcome, p.id, h.task), Session: make([]byte, 32), Job: h.jobBytes})
	if err := d.wait(t); !errors.As(err, new(*ProtocolError)) {
		t.Errorf("another job than it welcomed to: %v", err)
	}
}

// A device whose token pins a certificate signs no enrolment that leaves its
// connection out.
func TestHostileDowngrade(t *testing.T) {
	for name, welcome := range map[string]*wire.Welcome{
		"sees no TLS":            {Version: wire.Version},
		"sees TLS where is none": {Version: wire.Version, TLS: true},
	} {
		h := newHouse(t)
		h.token.Pin = make([]byte, 32)
		d := h.start(h.config(&constant{})) // its connection is a pipe
		p := h.dialed()
		want[*wire.Hello](p)
		welcome.Task = h.task
		p.send(welcome)
		if err := d.wait(t); !errors.Is(err, ErrRelay) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHostilePlainHTTP(t *testing.T) {
	h := newHouse(t)
	cfg := h.config(&constant{})
	cfg.Token = wire.Token{URL: "http://coordinator.test"}.String()
	if err := Run(t.Context(), cfg); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "--allow-plain-http") {
		t.Errorf("%v", err)
	}
}

// A coordinator cannot send a device on to another host.
func TestHostileRedirects(t *testing.T) {
	var reached atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer elsewhere.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		coordinator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, code)
		}))
		tok := wire.Token{URL: coordinator.URL}
		if _, err := DialSocket(t.Context(), tok.String(), nil); !errors.Is(err, ErrUnreachable) {
			t.Errorf("%d: %v", code, err)
		}
		client, done := newBlobClient(tok, nil)
		f := &fetcher{client: client, token: tok, most: 100, down: new(atomic.Int64)}
		if _, err := f.get(t.Context(), wire.Blob{Size: 1}, false, nil); !errors.As(err, new(*statusError)) {
			t.Errorf("%d: blob: %v", code, err)
		}
		done()
		coordinator.Close()
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("another host was asked %d times", n)
	}
}

// hostileText moves the cursor, clears the screen, sets the title, runs
// backwards, hides and breaks the line.
const hostileText = "ok\x1b[2J\x1b]0;title\x07\r\nstarling: all is well\u202e\u2066\u200b\u009b1m\x7f\ufeff\xff"

func TestHostileText(t *testing.T) {
	fit := func(where, s string) {
		t.Helper()
		if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 || !strings.Contains(s, "ok") {
			t.Errorf("%s: %q", where, s)
		}
	}
	text := strings.ToValidUTF8(hostileText, "?")
	h := newHouse(t)
	h.job.Name = text
	h.announce()
	d := h.start(h.config(&constant{}))
	p := h.admit(false)
	p.assign(h.plan(1))
	want[*wire.Turn](p)
	e, _ := d.saw(Preparing)
	fit("job's name", e.Text)
	p.send(&wire.Outcome{Round: 1, Result: wire.OutcomeAbandoned, Reason: text})
	p.send(&wire.Wait{Reason: text})
	p.send(&wire.Error{Code: wire.CodeEnrolment, Text: text})
	err := d.wait(t)
	fit("error", err.Error())
	fit("error in words", Explain(err))
	e, _ = d.saw(Abandoned)
	fit("outcome", e.Text)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		if strings.ContainsFunc(e.Text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("event %+v", e)
		}
	}
	fit("finished", Escape(hostileText, false))
	if got := Explain(errors.Join(errors.New("edge: one\x1b[1m"), errors.New("two"))); got != `one\x1b[1m`+"\ntwo" {
		t.Errorf("%q", got)
	}
	if s := "Übergrößenträger, 漢字 und 🙂"; Escape(s, false) != s {
		t.Errorf("plain text became %q", Escape(s, false))
	}
}

// With identified rosters a device takes part with those alone whom its owner
// has named.
func TestHostilePeers(t *testing.T) {
	for _, invented := range []bool{false, true} {
		h := newHouse(t)
		h.job.Identified, h.job.RosterKey = true, [32]byte{}
		h.announce()
		var peers []*peer
		var names []string
		var victim *device
		var keys []ed25519.PrivateKey
		for range 3 {
			key, err := NewIdentity()
			ok(t, err)
			keys = append(keys, key)
			names = append(names, hex.EncodeToString(key.Public().(ed25519.PublicKey)))
		}
		if invented {
			names = names[:2]
		}
		for i, key := range keys {
			cfg := h.config(&constant{value: 0.01})
			cfg.Identity = key
			if i == 0 {
				cfg.Policy.Peers = names[1:]
			}
			d := h.start(cfg)
			if i == 0 {
				victim = d
			}
			peers = append(peers, h.admit(false))
		}
		if !invented {
			h.authority = nil
			checkMean(t, h.round(h.plan(1), peers, nil), 0.01)
			continue
		}
		plan := h.plan(1)
		var planBytes []byte
		for _, p := range peers {
			planBytes = p.assign(plan)
		}
		_, cfg, hash := h.masking(plan, planBytes)
		k, err := secagg.NewKeying(cfg, hash, nil)
		ok(t, err)
		for _, p := range peers {
			ok(t, k.Add(p.id, turnFrom[secagg.Advertise](p, 1)))
		}
		shards, err := k.Cut(rand.Reader)
		ok(t, err)
		peers[0].turn(1, 1, shards[0].Roster())
		if m := want[*wire.Refuse](peers[0]); m.Code != wire.CodeShardFloor {
			t.Errorf("%+v", m)
		}
		if e, _ := victim.saw(Refused); !strings.Contains(e.Text, "not among") {
			t.Errorf("the owner is told %q", e.Text)
		}
	}
	// Rosters that do not say who is in them are refused where peers are named.
	h := newHouse(t)
	cfg := h.config(&constant{})
	cfg.Policy.Peers = []string{strings.Repeat("ab", 32)}
	d := h.start(cfg)
	h.admit(false)
	if err := d.wait(t); !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), "peers") {
		t.Errorf("%v", err)
	}
}
