package edge

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// joinsWith starts a device with an account and a policy of sixteen examples, and says
// what it was refused for; none where it is ready.
func (h *house) joinsWith(t *testing.T, a *Account, p *Policy) []PolicyError {
	t.Helper()
	cfg := h.config(&constant{})
	cfg.Policy, cfg.Account, cfg.Data = p, a, Examples(examples(16))
	d := h.start(cfg)
	peer := h.admit(false)
	limits := PolicyErrors(refusal(t, peer, d))
	d.cancel()
	return limits
}

// refusal is what the device ends with, or nil once it is ready.
func refusal(t *testing.T, p *peer, d *device) error {
	t.Helper()
	for {
		frame, err := p.pipe.Read(watchdog.Context(t))
		if err != nil {
			return d.wait(t)
		}
		m, err := wire.Decode(frame, wire.FromDevice)
		ok(t, err)
		if _, ready := m.(*wire.Ready); ready {
			return nil
		}
	}
}

// What an owner has accepted of one coordinator is not asked about again: not by a new
// process with the same account. It is where the coordinator is another, where the terms
// are worse, where the owner's own limit has changed, and where it was taken back.
func TestHostileTerms(t *testing.T) {
	h := production(t)
	var saved []byte
	save := func(b []byte) error { saved = bytes.Clone(b); return nil }
	a, err := NewAccount(nil, save)
	ok(t, err)
	policy := DefaultPolicy()
	policy.Bases, policy.Unlogged = []string{"any"}, true
	found := h.joinsWith(t, a, &policy)
	if len(found) != 3 {
		t.Fatalf("asked for %+v", found)
	}
	ok(t, a.Consent(h.token.String(), &policy, found))
	if policy.OwnNoise != 0.1 {
		t.Error("the owner's policy was changed")
	}

	a, err = NewAccount(saved, save) // another process
	ok(t, err)
	again := func(what string, want ...string) {
		t.Helper()
		var keys []string
		for _, l := range h.joinsWith(t, a, &policy) {
			keys = append(keys, l.Key)
		}
		if !slices.Equal(keys, want) {
			t.Errorf("%s: asked for %q, want %q", what, keys, want)
		}
	}
	again("the same terms")
	h.job.Rounds = 20_000
	h.announce()
	again("worse terms", "rounds")
	h.job.Rounds = 3
	h.announce()
	token := h.token
	h.token.URL = "https://another.test"
	again("another coordinator", "own_noise", "example_bits", "bits")
	h.token = token
	policy.OwnNoise = 0.2
	again("another policy", "own_noise")
	policy.OwnNoise = 0.1
	again("the same as at first")
	ok(t, a.Withdraw(h.token.String()))
	again("taken back", "own_noise", "example_bits", "bits")
	if strings.Contains(string(saved), "consents") {
		t.Errorf("the file has it still: %s", saved)
	}
}

// What cannot be accepted is not noted, and a file that was bent widens nothing but limits.
func TestHostileConsent(t *testing.T) {
	a, err := NewAccount(nil, nil)
	ok(t, err)
	p := DefaultPolicy()
	token := wire.Token{URL: "https://coordinator.test"}
	for _, l := range []PolicyError{{Key: "epsilon", Have: "inf"}, {Key: "peers"}, {Key: "tensors", Have: "any"}, {Key: "tensors", Have: ""}, {Key: "uplinks", Have: "nf4,any"}, {Key: "examples", Have: "0"}} {
		if err := a.Consent(token.String(), &p, []PolicyError{l}); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if len(a.Consents(token.String())) != 0 {
		t.Error("something was noted")
	}
	a.state.Consents = map[string][]Consent{coordinatorOf(token): {
		{Key: "shard", Have: "1", Limit: "8"}, {Key: "programs", Have: strings.Repeat("00", 32)}, {Key: "own_noise", Have: "NaN", Limit: "0.1"}, {Key: "bits", Have: "0", Limit: "10000"},
	}}
	cfg := Config{Account: a, Policy: &p}
	cfg.widen(token)
	if cfg.Policy.Shard != 8 || len(cfg.Policy.Programs) != 0 || cfg.Policy.OwnNoise != 0.1 || cfg.Policy.Bits != 0 || p.Bits != 10_000 || cfg.AcceptNotPrivate {
		t.Errorf("%+v", cfg.Policy)
	}
}

// Two folders' accounts of one data set: what both know of a coordinator is the first's.
func TestConsentsAreMerged(t *testing.T) {
	one, two := wire.Token{URL: "https://one.test"}.String(), wire.Token{URL: "https://two.test"}.String()
	p := DefaultPolicy()
	a, err := NewAccount(nil, nil)
	ok(t, err)
	b, err := NewAccount(nil, nil)
	ok(t, err)
	ok(t, b.Consent(one, &p, []PolicyError{{Key: "rank", Have: "64"}}))
	ok(t, b.Consent(two, &p, []PolicyError{{Key: "rank", Have: "65"}}))
	ok(t, a.Merge(b))
	ok(t, a.Consent(one, &p, []PolicyError{{Key: "rank", Have: "40"}}))
	ok(t, a.Merge(b))
	if x, y := a.Consents(one), a.Consents(two); len(x) != 1 || x[0].Have != "40" || len(y) != 1 || y[0].Have != "65" {
		t.Errorf("%+v, %+v", x, y)
	}
	if x := b.Consents(one); x[0].Have != "64" {
		t.Errorf("the other's was changed: %+v", x)
	}
}

// A coordinator is who can prove to be it: of one address with another certificate, or
// another key, nothing was accepted. What a token leads to besides is not who it is.
func TestCoordinatorsAreToldApart(t *testing.T) {
	of := func(change func(*wire.Token)) string {
		token := wire.Token{URL: "https://one.test:8443/fl", Pin: []byte{1}, Authority: []byte{2}, Task: []byte{3}, Secret: []byte{4}}
		change(&token)
		return coordinatorOf(token)
	}
	one := of(func(*wire.Token) {})
	for name, change := range map[string]func(*wire.Token){
		"certificate": func(x *wire.Token) { x.Pin = []byte{9} },
		"key":         func(x *wire.Token) { x.Authority = []byte{9} },
		"no pin":      func(x *wire.Token) { x.Pin = nil },
	} {
		if of(change) == one {
			t.Errorf("another %s is the same coordinator", name)
		}
	}
	unpinned := func(url string) string { return of(func(x *wire.Token) { x.Pin, x.URL = nil, url }) }
	for _, other := range []string{"https://two.test:8443/fl", "https://one.test/fl", "https://one.test:8443/other", "http://one.test:8443/fl"} {
		if unpinned(other) == unpinned("https://one.test:8443/fl") {
			t.Errorf("%s is the same coordinator", other)
		}
	}
	if of(func(x *wire.Token) { x.Task, x.Secret, x.URL = nil, nil, "https://moved.test" }) != one {
		t.Error("the same certificate and key elsewhere are another")
	}
}
