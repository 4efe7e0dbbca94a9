package edge

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// leaker is a trial that comes to what it is told.
type leaker struct {
	found Leak
	err   error
	tried []Trial
}

func (l *leaker) try(_ context.Context, t Trial) (Leak, error) {
	l.tried = append(l.tried, t)
	return l.found, l.err
}

// joinsLeaking joins with a trial and returns what is outside of the policy; nil once the
// device is ready, before which it says nothing.
func joinsLeaking(t *testing.T, h *house, a *Account, p *Policy, l *leaker) []PolicyError {
	t.Helper()
	cfg := h.config(&constant{})
	cfg.Policy, cfg.Account, cfg.Leaks = p, a, l.try
	d := h.start(cfg)
	limits := PolicyErrors(refusal(t, h.admit(false), d))
	d.cancel()
	return limits
}

// A job of which one update shows more than the owner lets it is not joined without a yes,
// nor is one of which it cannot be tried: anyone who makes base and job can make it fail. It
// is tried once a job, with as few examples as the owner lets an update average.
func TestHostileLeak(t *testing.T) {
	h := production(t)
	a, err := NewAccount(nil, nil)
	ok(t, err)
	p := central()
	l := &leaker{found: Leak{Tokens: 0.42, Line: "it shows \x1b[2Jeverything"}}
	found := joinsLeaking(t, h, a, p, l)
	if len(found) != 1 || found[0].Key != "leak" || found[0].Have != "0.42" || strings.Contains(found[0].What, "\x1b") || len(l.tried) != 1 {
		t.Fatalf("found %+v, tried %d times", found, len(l.tried))
	}
	if one := l.tried[0]; one.Examples != 1 || one.Steps != 1 || one.Batch != 2 || one.Rank != 4 || one.Own != 0 || one.Uplink != "nf4" || one.Layout == nil {
		t.Errorf("tried %+v", one)
	}
	if found := joinsLeaking(t, h, a, p, l); len(found) != 1 || len(l.tried) != 1 {
		t.Errorf("a second time: %+v, tried %d times", found, len(l.tried))
	}
	ok(t, a.Consent(h.token.String(), p, found))
	if found := joinsLeaking(t, h, a, p, l); found != nil || len(l.tried) != 1 {
		t.Errorf("after a yes: %+v, tried %d times", found, len(l.tried))
	}

	other := *p
	other.Examples = 3 // of the five that there are
	l.found = Leak{Tokens: 0.05}
	if found := joinsLeaking(t, h, a, &other, l); found != nil || len(l.tried) != 2 || l.tried[1].Examples != 3 || l.tried[1].Steps != 2 {
		t.Errorf("of more examples: %+v, tried %+v", found, l.tried)
	}

	h.job.Instance[0]++ // another job, whose trial fails
	h.announce()
	l.err = errors.New("diverged")
	for range 2 { // and is tried again
		if found := joinsLeaking(t, h, a, &other, l); len(found) != 1 || found[0].Have != "1" || !strings.Contains(found[0].What, "could not be tried: diverged") {
			t.Errorf("untried: %+v", found)
		}
	}
	if len(l.tried) != 4 {
		t.Errorf("tried %d times", len(l.tried))
	}
}

// A limit that means nothing is refused, and what two accounts know of one job is the first's.
func TestLeakIsKept(t *testing.T) {
	for _, bad := range []string{"NaN", "-0.1", "1.1"} {
		p := DefaultPolicy()
		if err := p.Allow("leak", bad); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	var saved []byte
	a, err := NewAccount(nil, func(b []byte) error { saved = b; return nil })
	ok(t, err)
	b, err := NewAccount(nil, nil)
	ok(t, err)
	one, two := [32]byte{1}, [32]byte{2}
	ok(t, a.tried(one, Leak{Tokens: 0.1, Examples: 16}))
	ok(t, b.tried(one, Leak{Tokens: 0.2, Examples: 16}))
	ok(t, b.tried(two, Leak{Tokens: 0.3, Examples: 16}))
	ok(t, a.Merge(b))
	back, err := NewAccount(saved, nil)
	ok(t, err)
	for task, want := range map[[32]byte]float64{one: 0.1, two: 0.3} {
		if found, known := back.leak(task, 16); !known || found.Tokens != want {
			t.Errorf("%x: %+v, want %v", task[:1], found, want)
		}
	}
	if _, known := back.leak(one, 8); known {
		t.Error("a trial of more examples counts for fewer")
	}
}
