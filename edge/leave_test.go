package edge

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
)

// offer has the house tell anybody of its job, as coordinators do.
func (h *house) offer() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blobs[announcedPath] = h.jobBytes
}

// What a job asks for beyond a limit is refused before the device enrols: by what is announced, and
// by what base and layout say. Nobody is dialled, so that nobody counts the device.
func TestRefusesBeforeItEnrols(t *testing.T) {
	for key, narrow := range map[string]func(*Policy){
		"shard":     func(p *Policy) { p.Shard = 51 },
		"batch":     func(p *Policy) { p.Batch = 1 },
		"rank":      func(p *Policy) { p.Rank = 3 },
		"rounds":    func(p *Policy) { p.Rounds = 2 },
		"steps":     func(p *Policy) { p.Steps = 4 },
		"clip_norm": func(p *Policy) { p.ClipNorm = 2 },
		"bases":     func(p *Policy) { p.Bases = []string{knownBases} },
		"values":    func(p *Policy) { p.Values = 1 },
		"tensors":   func(p *Policy) { p.Tensors = []string{"head"} },
		"leak":      func(p *Policy) { p.Leak = 0.1 },
	} {
		t.Run(key, func(t *testing.T) {
			h := production(t)
			h.job.Steps, h.job.ClipNorm = 5, 3
			h.announce()
			h.offer()
			cfg := h.config(&constant{})
			cfg.Policy = central()
			cfg.Leaks = func(context.Context, Trial) (Leak, error) { return Leak{Tokens: 0.05, Line: "tried"}, nil }
			if key == "leak" {
				cfg.Leaks = func(context.Context, Trial) (Leak, error) { return Leak{Tokens: 0.9, Line: "tried"}, nil }
			}
			narrow(cfg.Policy)
			cfg.Dial = func(context.Context, string) (Conn, error) { t.Error("it dials"); return nil, io.EOF }
			err := h.start(cfg).wait(t)
			if l := PolicyErrors(err); !errors.Is(err, ErrPolicy) || len(l) != 1 || l[0].Key != key {
				t.Errorf("%v", err)
			}
		})
	}
	h := production(t) // within its limits it is prepared by the time it enrols
	h.offer()
	cfg := h.config(&constant{})
	cfg.Policy = central()
	h.start(cfg)
	p, hello, welcome := h.accept()
	if string(p.enrol.Task) != string(h.task[:]) {
		t.Errorf("it enrols in the task %x", p.enrol.Task)
	}
	p.session = make([]byte, 32)
	p.send(&wire.Enrolled{Proof: wire.CoordinatorProof(h.token.Secret, hello, welcome, p.id, h.task), Session: p.session})
	p.assign(h.plan(1))
	want[*wire.Turn](p)
}

// A device that has enrolled and refuses says that it leaves: where it could not ask before, where a
// round's program is beyond its limits, and where its owner has narrowed them since.
func TestLeavesThePopulation(t *testing.T) {
	left := func(t *testing.T, p *peer, code uint16) {
		t.Helper()
		if m := want[*wire.Error](p); m.Code != code || m.RetryMillis != 0 || strings.ContainsAny(m.Text, "0123456789") {
			t.Errorf("it leaves with %+v", m)
		}
	}
	t.Run("not asked before", func(t *testing.T) {
		h := production(t)
		cfg := h.config(&constant{})
		cfg.Policy = central()
		cfg.Policy.Shard = 51
		d := h.start(cfg)
		left(t, h.admit(false), wire.CodePolicy)
		if err := d.wait(t); !errors.Is(err, ErrPolicy) {
			t.Error(err)
		}
	})
	t.Run("in a round", func(t *testing.T) {
		for rank, stays := range map[uint16]bool{2: false, 1: true} {
			h := production(t)
			h.job.RankMin = rank
			h.announce()
			h.offer()
			cfg := h.config(failing{&PolicyError{Key: "memory", What: "it takes 7 MiB"}})
			cfg.Policy = central()
			cfg.Policy.Silent = false
			d := h.start(cfg)
			p := h.admit(false)
			p.assign(h.plan(1))
			for {
				m := p.next()
				if refused, is := m.(*wire.Refuse); is {
					if refused.Code != wire.CodeMemory {
						t.Errorf("it declines with %+v", refused)
					}
					break
				}
			}
			if stays { // a round of a smaller rank may come
				p.assign(h.plan(2))
				want[*wire.Turn](p)
				continue
			}
			left(t, p, wire.CodeMemory)
			if err := d.wait(t); !errors.Is(err, ErrPolicy) || !fatal(err) {
				t.Error(err)
			}
		}
	})
	t.Run("narrowed since", func(t *testing.T) {
		h := production(t)
		h.offer()
		cfg := h.config(&constant{})
		cfg.Policy = central()
		var err error
		cfg.Account, err = NewAccount(nil, nil)
		ok(t, err)
		d := h.start(cfg)
		if m, ready := h.admit(false).read().(*wire.Ready); !ready {
			t.Fatalf("it says %+v", m)
		}
		d.cancel()
		_ = d.wait(t)
		cfg.Policy = central()
		cfg.Policy.Batch = 1
		for range 2 {
			d := h.start(cfg)
			if cfg.Account.member(h.task, [32]byte(cfg.Identity[32:])) {
				left(t, h.admit(false), wire.CodePolicy)
			}
			if err := d.wait(t); !errors.Is(err, ErrPolicy) {
				t.Error(err)
			}
		}
		if len(h.dials) != 0 {
			t.Error("it came to say so twice")
		}
	})
}

// What follows from the data, or from how often coins have drawn a device, its coordinator is not
// told: it sees a device that is gone.
func TestHostileReasonsToLeave(t *testing.T) {
	gone := func(t *testing.T, p *peer) {
		t.Helper()
		for {
			frame, err := p.pipe.Read(watchdog.Context(t))
			if err != nil {
				return
			}
			m, err := wire.Decode(frame, wire.FromDevice)
			ok(t, err)
			if e, is := m.(*wire.Error); is {
				t.Errorf("it says %+v", e)
			}
		}
	}
	t.Run("examples", func(t *testing.T) {
		h := production(t)
		cfg := h.config(&constant{})
		cfg.Policy = central()
		cfg.Policy.Examples, cfg.Policy.Silent = 6, false
		d := h.start(cfg)
		gone(t, h.admit(false))
		if err := d.wait(t); !errors.Is(err, ErrPolicy) {
			t.Error(err)
		}
	})
	t.Run("epsilon", func(t *testing.T) {
		h := newHouse(t)
		cfg := h.config(&constant{value: 0.01})
		cfg.Policy.Epsilon = 0.5
		d := h.start(cfg)
		p := h.admit(false)
		p.assign(h.plan(1))
		want[*wire.Refuse](p)
		gone(t, p)
		if err := d.wait(t); !errors.Is(err, ErrPolicy) {
			t.Error(err)
		}
	})
	t.Run("what other jobs were told", func(t *testing.T) {
		h := production(t)
		h.job.Privacy.OwnNoise, h.job.Privacy.Noise, h.job.Privacy.Honest, h.job.Privacy.NoiseMultiplier = 0.1, wire.NoiseDevices, 25, 0.5
		h.announce()
		cfg := h.config(&constant{})
		cfg.Policy = central()
		cfg.Policy.ExampleBits = 8
		d := h.start(cfg)
		gone(t, h.admit(false))
		if err := d.wait(t); !errors.Is(err, ErrPolicy) {
			t.Error(err)
		}
	})
}

// failing is a trainer that fails.
type failing struct{ err error }

func (f failing) Train(context.Context, Task) ([]float32, error) { return nil, f.err }
func (failing) Close() error                                     { return nil }
