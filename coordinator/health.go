package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/internal/leaf/disk"
	"github.com/starling-fl/starling/model"
)

// Check is one condition that a coordinator needs in order to make rounds.
type Check struct {
	Name   string `json:"name"` // engine, store, disk, clock, rounds or job
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

const (
	busyFor      = 15 * time.Second // an engine may be, with a program's compilation
	stuckAfter   = 2 * time.Minute  // no step of the engine takes that long
	saidFor      = time.Second      // what was found is said again
	checkedFor   = 10 * time.Second // of the store, which has to write for it
	leastFree    = 256 << 20        // bytes, and room for some releases
	clockMayStep = time.Minute
)

// aliveEvent is answered by the engine between two others.
type aliveEvent struct{ answer chan<- struct{} }

func (aliveEvent) engineEvent() {}

// health is what was found last. Anyone who asks gets that while it is fresh: strangers who
// ask often write nothing more.
type health struct {
	began  time.Time // with its monotonic part
	asking sync.Mutex
	asked  time.Time // since when the engine owes an answer; zero: it owes none
	answer chan struct{}
	sent   bool // it was asked, and not only about to be
	heard  time.Time
	silent time.Duration // for how long it had owed one then

	looking sync.Mutex
	checked time.Time
	store   error
	looked  time.Time
	checks  []Check // as found then

	mu      sync.Mutex
	inRound time.Time // since when there is one; zero between rounds
	longest time.Duration
}

// round notes since when there is a round, zero for none, and how long its deadlines let
// it take.
func (h *health) round(since time.Time, longest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inRound, h.longest = since, longest
}

// Alive reports whether the engine works: an error if it has owed an answer for longer than any of
// its steps takes. It waits for an answer for at most a second.
func (c *Coordinator) Alive(ctx context.Context) error {
	if silent := c.unheard(ctx); silent >= stuckAfter {
		return fmt.Errorf("coordinator: the engine has not answered for %v", silent.Round(time.Second))
	}
	return nil
}

// unheard is for how long the engine has owed an answer. Anyone who asks waits for it for a
// second at most, and for what others were told last while that is fresh.
func (c *Coordinator) unheard(ctx context.Context) time.Duration {
	h := &c.health
	h.asking.Lock()
	defer h.asking.Unlock()
	if time.Since(h.heard) > saidFor {
		h.silent, h.heard = c.ask(ctx, time.Second), time.Now()
	}
	return h.silent
}

// ask asks the engine, where it does not owe an answer already, and waits for one.
func (c *Coordinator) ask(ctx context.Context, wait time.Duration) (silent time.Duration) {
	h := &c.health
	if h.asked.IsZero() {
		h.asked, h.answer, h.sent = time.Now(), make(chan struct{}, 1), false
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		to := c.events
		if h.sent {
			to = nil
		}
		select {
		case to <- aliveEvent{h.answer}:
			h.sent = true
			continue
		case <-h.answer:
		case <-c.done: // it has said its last word
		case <-ctx.Done():
			return time.Since(h.asked)
		}
		h.asked = time.Time{}
		return 0
	}
}

// Checks lists the conditions for making rounds, for the operator. The coordinator is ready if all
// are OK.
func (c *Coordinator) Checks(ctx context.Context) []Check {
	silent := c.unheard(ctx) // not under the other lock: a disk that hangs keeps nobody from asking
	h := &c.health
	h.looking.Lock()
	defer h.looking.Unlock()
	if time.Since(h.looked) < saidFor {
		return h.checks
	}
	var checks []Check
	put := func(name string, err error, detail string, args ...any) {
		c := Check{Name: name, OK: err == nil, Detail: fmt.Sprintf(detail, args...)}
		if err != nil {
			c.Detail = err.Error()
		}
		checks = append(checks, c)
	}
	var err error
	if silent > busyFor {
		err = fmt.Errorf("it has not answered for %v", silent.Round(time.Second))
	}
	put("engine", err, "it answers")
	if time.Since(h.checked) > checkedFor {
		h.store, h.checked = c.store.Check(), time.Now()
	}
	put("store", h.store, "it takes writes")
	free, err := disk.Free(c.cfg.Dir)
	if want := uint64(leastFree + 4*c.releaseBytes()); err == nil && free < want {
		err = fmt.Errorf("%d MiB are free in --dir, wanted are %d: make room, a commit that does not fit ends serve", free>>20, want>>20)
	}
	put("disk", err, "%d MiB are free", free>>20)
	put("clock", c.clock(time.Now()), "it goes on from the last round's")
	put("rounds", c.overdue(time.Now()), "none is over its deadlines")
	s := c.Status()
	switch {
	case s.State == monitor.StateFinished && s.Version < s.Rounds:
		err = fmt.Errorf("the job ended after %d of %d rounds: %s", s.Version, s.Rounds, s.Reason)
	case s.State == monitor.StateFinished:
		err = errors.New("the job is over")
	case s.State == monitor.StateStopped:
		err = fmt.Errorf("the coordinator has stopped after %d of %d rounds: serve it again", s.Version, s.Rounds)
	case strings.HasPrefix(s.Reason, "paused"):
		err = errors.New(s.Reason)
	default:
		err = nil
	}
	put("job", err, "%d of %d rounds are released", s.Version, s.Rounds)
	h.checks, h.looked = checks, time.Now()
	return checks
}

// clock compares the wall's clock with the process's own, and with what the store has
// seen: invitations expire by it.
func (c *Coordinator) clock(now time.Time) error {
	began := c.health.began
	if step := now.Round(0).Sub(began.Round(0)) - now.Sub(began); step.Abs() > clockMayStep {
		return fmt.Errorf("it was set by %v while serve ran: start serve again", step.Round(time.Second))
	}
	if last := c.monitor.LastEnded(); last.After(now.Add(clockMayStep)) {
		return fmt.Errorf("it is before the end of the last round, %s: set it", last.UTC().Format(time.DateTime))
	}
	return nil
}

// overdue is a round that its own deadlines should have ended.
func (c *Coordinator) overdue(now time.Time) error {
	h := &c.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if took := now.Sub(h.inRound); !h.inRound.IsZero() && took > h.longest {
		return fmt.Errorf("this one has taken %v, its deadlines add up to %v", took.Round(time.Second), h.longest)
	}
	return nil
}

// longest is how long a round may take: all its states' deadlines, and the release.
func (r *running) longest() time.Duration {
	sum := 2 * stuckAfter
	for s := round.Gathering; s <= round.Unmasking; s++ {
		sum += r.limits[s]
	}
	return sum
}

// releaseBytes is about what a release writes: adapter and optimizer, twice.
func (c *Coordinator) releaseBytes() int {
	info, err := os.Stat(filepath.Join(c.checkpointDir(), model.AdapterFile))
	if err != nil {
		return 0 // none was made yet
	}
	return int(info.Size())
}
