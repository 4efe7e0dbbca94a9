//go:build !js

package edge

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

var errDialled = errors.New("the device would enrol")

// A device whose data does not fit the job says so before it enrols: enrolled,
// it would be counted and waited for, and never come.
func TestMisfitDoesNotEnrol(t *testing.T) {
	misfit := &dataset.Set{Name: "mine.tsv", Labels: []string{"three"}, Examples: []dataset.Example{{Text: "fox", Line: 7}}}
	for name, c := range map[string]struct {
		announced string // "": the job
		providers uint32
		data      *dataset.Set
		ends      bool
	}{
		"another label":     {"", 0, misfit, true},
		"no example":        {"", 0, &dataset.Set{Labels: testLabels}, true},
		"too many of whom":  {"", 1, twoProviders(), true},
		"fits":              {"", 2, twoProviders(), false},
		"says nonsense":     {`<html>`, 0, misfit, false},
		"does not know why": {"404", 0, misfit, false},
	} {
		h := newHouse(t)
		h.job.Providers = c.providers
		if c.providers > 0 {
			h.job.ProviderRate = 1
		}
		h.announce()
		if h.offer(); c.announced != "" {
			h.mu.Lock()
			h.blobs[announcedPath] = []byte(c.announced)
			h.mu.Unlock()
		}
		if c.announced == "404" {
			h.mu.Lock()
			delete(h.blobs, announcedPath)
			h.mu.Unlock()
		}
		key, err := NewIdentity()
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{Token: h.token.String(), Identity: key, Data: Examples(c.data), Policy: h.config(nil).Policy, HTTP: &http.Client{Transport: h},
			Dial: func(context.Context, string) (Conn, error) { return nil, errDialled }}
		token, err := cfg.validate()
		if err != nil {
			t.Fatal(err)
		}
		client := &client{cfg: cfg, token: token, events: &events{}, life: t.Context()}
		blobs, done := newBlobClient(token, cfg.HTTP)
		client.blobs = &fetcher{client: blobs, token: token, most: cfg.MaxBlob, down: &client.events.down}
		_, err = client.connect(t.Context())
		done()
		if errors.Is(err, errDialled) == c.ends || errors.Is(err, ErrData) != c.ends {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func twoProviders() *dataset.Set {
	return &dataset.Set{Labels: testLabels, Examples: []dataset.Example{{Text: "fox", Provider: "a"}, {Text: "dog", Provider: "b"}}}
}

// A job beyond the owner's limits, as it is announced to anyone, is refused before the device enrols, by
// what the data has told other jobs, too; and one that says what would do is joined when it does that.
func TestRefusedBeforeEnrolment(t *testing.T) {
	for name, c := range map[string]struct {
		own     float64
		groups  uint32
		had     uint64 // rounds of another job, of 1.13 bits about an example
		keys    []string
		epsilon float64
	}{
		"robbery":            {0.1, 0, 0, []string{"example_bits"}, 0},
		"as recommended":     {0.1, 13, 0, nil, 0},
		"after another job":  {0.1, 13, 2, []string{"example_bits"}, 0},
		"as recommended now": {0.1, 25, 2, nil, 0},
		"no noise":           {0, 0, 0, []string{"own_noise", "example_bits", "bits"}, 0},
		"beyond epsilon":     {0.1, 13, 0, []string{"epsilon"}, 1}, // one round at a noise of 0.5 costs more
		"within epsilon":     {0.1, 13, 0, nil, 100},
	} {
		h := production(t)
		h.job.Rounds, h.job.Groups = 1, c.groups
		if h.job.Privacy.OwnNoise = c.own; c.own > 0 {
			h.job.Privacy.Noise, h.job.Privacy.Honest, h.job.Privacy.NoiseMultiplier = wire.NoiseDevices, 25, 5*c.own
		}
		h.announce()
		h.mu.Lock()
		h.blobs[aboutPath], h.blobs[announcedPath] = []byte(`{"labels":["one","two"]}`), h.jobBytes
		h.mu.Unlock()
		p := DefaultPolicy()
		p.Bases, p.Silent, p.Unlogged, p.Epsilon = []string{"any"}, false, true, c.epsilon
		cfg := h.config(&constant{})
		cfg.Policy, cfg.Data, cfg.HTTP = &p, Examples(examples(16)), &http.Client{Transport: h}
		cfg.Dial = func(context.Context, string) (Conn, error) { return nil, errors.Join(ErrUnreachable, errDialled) }
		var err error
		cfg.Account, err = NewAccount(nil, nil)
		ok(t, err)
		cfg.Account.of(&job{task: [32]byte{9}, Job: wire.Job{Groups: 8, Privacy: wire.Privacy{OwnNoise: 0.1}}}).Contributed = c.had
		err = Run(t.Context(), cfg)
		var keys []string
		for _, l := range PolicyErrors(err) {
			keys = append(keys, l.Key)
		}
		if !slices.Equal(keys, c.keys) || errors.Is(err, errDialled) != (len(c.keys) == 0) {
			t.Errorf("%s: refused for %q: %v", name, keys, err)
		}
		if n := len(cfg.Account.state.Jobs); n != 1 {
			t.Errorf("%s: the account has %d jobs", name, n)
		}
	}
}
