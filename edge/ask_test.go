package edge

import (
	"errors"
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
