package edge

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/tiny"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/known"
)

// A device that fetches the base itself takes nothing of the coordinator's: from where its
// own lists have it, else from where the job says, and only what the job's hash is of.
func TestHostileBaseElsewhere(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	other := tiny.Base(t, 16, 2, 12) // of the same tokenizer
	gone := errors.New("gone")
	for name, c := range map[string]struct {
		says   wire.Published
		listed bool
		yields *model.Base
		fails  error
		asked  string
		is     error
	}{
		"says":             {says: wire.Published{Name: "org/name", Revision: commit}, asked: "org/name@" + commit},
		"listed elsewhere": {says: wire.Published{Name: "evil/name", Revision: commit}, listed: true, asked: "good/name@abc"},
		"listed":           {listed: true, asked: "good/name@abc"},
		"embedded":         {says: wire.Published{Name: "starling/x"}, asked: "starling/x"},
		"says nothing":     {is: ErrBase},
		"another":          {says: wire.Published{Name: "org/name"}, yields: other, asked: "org/name", is: ErrBase},
		"out of reach":     {says: wire.Published{Name: "org/name"}, fails: gone, asked: "org/name", is: gone},
	} {
		h := production(t)
		c.says.Tokenizer = h.job.Published.Tokenizer
		h.job.Published = c.says
		h.announce()
		cfg := h.config(&constant{})
		cfg.Policy = central()
		var asked []string
		cfg.Fetch = func(_ context.Context, from Published) (*model.Base, error) {
			asked = append(asked, from.String())
			if from.MaxBytes < int64(h.job.Base.Size) {
				t.Errorf("%s: %d bytes may come of %d", name, from.MaxBytes, h.job.Base.Size)
			}
			if c.yields == nil {
				c.yields = tinyBase(t)
			}
			return c.yields, c.fails
		}
		if c.listed {
			cfg.Known = known.List{{Name: "good/name", Revision: "abc", SHA256: h.job.Base.SHA256}}
		}
		h.mu.Lock()
		h.gets = nil
		h.mu.Unlock()
		d := h.start(cfg)
		peer := h.admit(false)
		if c.is == nil {
			if err := refusal(t, peer, d); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			d.cancel()
		} else if err := d.wait(t); !errors.Is(err, c.is) || !fatal(err) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Join(asked, " ") != c.asked {
			t.Errorf("%s: %q was asked for", name, asked)
		}
		h.mu.Lock()
		if len(h.gets) > 1 { // the first asks for the job
			t.Errorf("%s: the coordinator was asked for %q", name, h.gets)
		}
		h.mu.Unlock()
	}
}

// The tokenizer is the one that the job names: a device that has been told of one is not
// given another.
func TestHostileTokenizerOfAnotherName(t *testing.T) {
	h := production(t)
	h.job.Published.Tokenizer[0] ^= 1
	h.announce()
	cfg := h.config(&constant{})
	cfg.Policy = central()
	d := h.start(cfg)
	h.admit(false)
	if err := d.wait(t); !errors.Is(err, ErrBase) || !strings.Contains(err.Error(), "tokenizer") {
		t.Error(err)
	}
}

// Of a base that no list has its owner reads who else says to have it, and whether its
// tokenizer is a published one; nothing is fetched before the owner has said yes.
func TestHostileUnlistedIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		says   string
		listed bool
		words  []string
	}{
		"nobody's":                 {words: []string{"only this coordinator has it", "nor is its tokenizer"}},
		"a hub's":                  {says: "org/name", words: []string{"org/name of a hub, where anybody can put one", "nor is its tokenizer"}},
		"another base's tokenizer": {listed: true, words: []string{"only this coordinator has it", "its tokenizer is a published one"}},
	} {
		h := production(t)
		h.job.Published.Name = c.says
		h.announce()
		cfg := h.config(&constant{})
		cfg.Policy = central()
		cfg.Policy.Bases = []string{"known"}
		cfg.Fetch = func(context.Context, Published) (*model.Base, error) {
			t.Errorf("%s: fetched without the owner's yes", name)
			return tinyBase(t), nil
		}
		if c.listed {
			cfg.Known = known.List{{Name: "x", Tokenizer: h.job.Published.Tokenizer}}
		}
		d := h.start(cfg)
		err := refusal(t, h.admit(false), d)
		d.cancel()
		if found := PolicyErrors(err); len(found) != 1 || found[0].Key != "bases" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v does not say %q", name, err, w)
			}
		}
	}
}
