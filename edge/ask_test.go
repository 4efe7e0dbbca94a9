package edge

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// A coordinator is asked for its job by somebody who does not enrol, and what would take
// too much to try is refused.
func TestAsk(t *testing.T) {
	h := production(t)
	h.blobs[announcedPath] = h.jobBytes
	policy := DefaultPolicy()
	cfg := Config{Token: h.token.String(), HTTP: httpClient(h), Policy: &policy}
	trial, err := Ask(watchdog.Context(t), cfg)
	ok(t, err)
	if trial.Name != "test" || trial.Rank != 4 || trial.Batch != 2 || trial.Steps != 8 || trial.Examples != 16 || trial.Uplink != "nf4" || trial.Base == nil ||
		trial.Layout.Size(4) != h.layout.Size(4) || len(h.dials) != 0 {
		t.Errorf("%+v, %d dials", trial, len(h.dials))
	}
	cfg.Base = trial.Base
	_, err = Ask(watchdog.Context(t), cfg)
	ok(t, err)
	cfg.Base = nil

	for name, c := range map[string]struct {
		change func(*Config)
		want   error
	}{
		"values":      {func(c *Config) { p := policy; p.Values = 10; c.Policy = &p }, ErrPolicy},
		"another job": {func(c *Config) { token := h.token; token.Task = make([]byte, 32); c.Token = token.String() }, ErrJobChanged},
		"plain http":  {func(c *Config) { token := h.token; token.URL = "http://coordinator.test"; c.Token = token.String() }, ErrConfig},
		"base":        {func(c *Config) { c.Base = tiny.Base(t, 16, 2, 12) }, ErrBase},
		"a policy":    {func(c *Config) { p := policy; p.Leak = 2; c.Policy = &p }, ErrConfig},
	} {
		one := cfg
		c.change(&one)
		if _, err := Ask(watchdog.Context(t), one); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	h.blobs[announcedPath] = []byte("no job")
	if _, err := Ask(watchdog.Context(t), cfg); !errors.As(err, new(*ProtocolError)) {
		t.Errorf("what is not a job: %v", err)
	}
	delete(h.blobs, announcedPath)
	if _, err := Ask(watchdog.Context(t), cfg); !errors.Is(err, ErrUnreachable) {
		t.Errorf("no answer: %v", err)
	}
}

// What a device says of a job before anybody joins: all limits at once, the bits by its own arithmetic, and whether its
// owner has accepted all of it before.
func TestAskLimits(t *testing.T) {
	h := production(t)
	h.blobs[announcedPath] = h.jobBytes
	policy := DefaultPolicy()
	account, err := NewAccount(nil, nil)
	ok(t, err)
	cfg := Config{Token: h.token.String(), HTTP: httpClient(h), Policy: &policy, Account: account}
	ask := func(examples int) Verdict {
		t.Helper()
		v, err := AskLimits(watchdog.Context(t), cfg, examples)
		ok(t, err)
		if len(h.dials) != 0 || v.Job != "test" {
			t.Errorf("%q, %d dials", v.Job, len(h.dials))
		}
		return v
	}
	keys := func(v Verdict) (all []string) {
		for _, l := range v.Beyond {
			all = append(all, l.Key)
		}
		slices.Sort(all)
		return all
	}
	first := ask(0)
	if v := h.job.Privacy.OwnNoise; v > 0 {
		rounds := float64(h.job.Rounds + max(5, h.job.Rounds/4))
		if want := rounds / (2 * math.Ln2 * v * v); math.Abs(first.Shown.Example-want) > 1e-9*want {
			t.Errorf("%v bits about an example, want %v", first.Shown.Example, want)
		}
	} else if !math.IsInf(first.Shown.Example, 1) || !math.IsInf(first.Shown.Data, 1) {
		t.Errorf("%+v bits without noise", first.Shown)
	}
	if !slices.Contains(keys(first), "bases") || slices.Contains(keys(first), "examples") || first.Granted {
		t.Errorf("%v, granted %v: the test's base is in no list", keys(first), first.Granted)
	}
	few := ask(3)
	if !slices.Contains(keys(few), "examples") || slices.Contains(keys(ask(policy.Examples)), "examples") {
		t.Errorf("%v with three examples", keys(few))
	}
	ok(t, account.Consent(cfg.Token, &policy, few.Beyond[1:]))
	if ask(3).Granted {
		t.Error("granted although one limit was not accepted")
	}
	ok(t, account.Consent(cfg.Token, &policy, few.Beyond))
	if again := ask(3); !again.Granted || !slices.Equal(keys(again), keys(few)) {
		t.Errorf("accepted: %v, granted %v, want %v", keys(again), again.Granted, keys(few))
	}
	if ask(2).Granted {
		t.Error("granted for fewer examples than was accepted")
	}
}

// What follows from the base is asked with the rest, in the words and amounts in which it would be asked over the base
// itself. A coordinator that says nothing of its base, or nonsense, has it asked later.
func TestAskLimitsOfTheBase(t *testing.T) {
	h := production(t)
	h.blobs[announcedPath] = h.jobBytes
	policy := DefaultPolicy()
	policy.Values, policy.Memory, policy.Tensors = 10, 1, []string{"norms"}
	base := tiny.Base(t, 16, 2, 12)
	base.Config.MaxPositions = max(base.Config.MaxPositions, int(h.job.Sequence))
	cfg := Config{Token: h.token.String(), HTTP: httpClient(h), Policy: &policy}
	of := func(config string) (found []PolicyError) {
		t.Helper()
		delete(h.blobs, basePath)
		if config != "" {
			h.blobs[basePath] = []byte(config)
		}
		v, err := AskLimits(watchdog.Context(t), cfg, 0)
		ok(t, err)
		for _, l := range v.Beyond {
			if l.Key == "values" || l.Key == "tensors" || l.Key == "memory" {
				found = append(found, l)
			}
		}
		return found
	}
	whole, err := json.Marshal(base.Config)
	ok(t, err)
	early := of(string(whole))
	late, err := Rehearse(h.jobBytes, base, &policy)
	ok(t, err)
	late = slices.DeleteFunc(late, func(l PolicyError) bool { return l.Key != "values" && l.Key != "tensors" && l.Key != "memory" })
	if len(early) < 2 || !slices.Equal(early, late) {
		t.Errorf("asked before the base is there:\n%+v\nover it:\n%+v", early, late)
	}
	for _, none := range []string{"", "no config", "{}", `{"hidden_size": -1}`, strings.Repeat(" ", mostConfig) + string(whole)} {
		if found := of(none); len(found) > 0 {
			t.Errorf("%.40q: %+v", none, found)
		}
	}
}
