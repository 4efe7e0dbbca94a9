// Package watchdog bounds what tests wait for. A wait that has stalled fails
// its test and prints what each side says of itself and every goroutine's stack,
// in place of the test binary's own timeout, which says only where it stood.
package watchdog

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/internal/leaf/cputime"
)

// Silence is how long nothing may happen: no value, no change in what the sides
// say, and hardly any work of this process or of its children. A party that hangs
// only waits. One that starves on a busy machine works slowly, or does not even look
// at the clock: neither counts as silence.
const Silence = 30 * time.Second

// A wait looks about once in a tick. idle is how much of a tick's processor time
// the timers and pings of parties that hang may take.
const (
	tick = Silence / 30
	idle = tick / 50
)

// Longest bounds a wait whose sides never fall silent.
const Longest = 8 * time.Minute

// A Side describes the state of one party of a test, on one line or several. It is called from other goroutines
// than the party's.
type Side func() string

// Recv takes a value from ch, or the zero value where ch is closed. After
// Silence it fails the test at once: call it from the test's goroutine, or from
// a cleanup.
func Recv[T any](t testing.TB, what string, ch <-chan T, sides ...Side) T {
	t.Helper()
	w := newWait(sides)
	defer w.tick.Stop()
	for {
		select {
		case v := <-ch:
			return v
		case <-w.tick.C:
			if why := w.stalled(); why != "" {
				t.Fatalf("%s: %s\n%s", what, why, w.report())
			}
		}
	}
}

// Send puts v into ch as Recv takes one out.
func Send[T any](t testing.TB, what string, ch chan<- T, v T, sides ...Side) {
	t.Helper()
	w := newWait(sides)
	defer w.tick.Stop()
	for {
		select {
		case ch <- v:
			return
		case <-w.tick.C:
			if why := w.stalled(); why != "" {
				t.Fatalf("%s: %s\n%s", what, why, w.report())
			}
		}
	}
}

// Wait returns when wait does: a (*sync.WaitGroup).Wait, a (*exec.Cmd).Wait.
func Wait(t testing.TB, what string, wait func(), sides ...Side) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); wait() }()
	Recv(t, what, done, sides...)
}

// Within is Wait with a limit in place of Silence, for the hours of a synctest
// bubble: there time passes only while everybody waits, and a side's timers may
// keep it passing for ever.
func Within(t testing.TB, limit time.Duration, what string, wait func(), sides ...Side) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); wait() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		w := &waiting{sides: sides}
		t.Fatalf("%s: not within %v\n%s", what, limit, w.report())
	}
}

// Context is for the commands and calls that a test waits for: it ends with the
// test, and after Longest.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Longest)
	t.Cleanup(cancel)
	return ctx
}

// waiting is one wait under way.
type waiting struct {
	sides  []Side
	tick   *time.Ticker
	began  time.Time
	seen   time.Time     // the last look
	silent time.Duration // since something happened, as far as looks were taken
	work   time.Duration // at the last look; none before the first: most waits end without, and a look reads /proc
	last   string
}

func newWait(sides []Side) *waiting {
	now := time.Now()
	return &waiting{sides: sides, tick: time.NewTicker(tick), began: now, seen: now}
}

// worked is the processor time of this process and of its children that still run. Tests
// replace it.
var worked = func() time.Duration { return cputime.Now() + children() }

// stalled says why the wait is over, or nothing.
func (w *waiting) stalled() string {
	now, work := time.Now(), worked()
	// A look that comes late tells of a machine that had no time for it.
	w.silent += min(now.Sub(w.seen), tick)
	if said := w.say(); said != w.last || work-w.work > idle {
		w.last, w.silent = said, 0
	}
	w.seen, w.work = now, work
	switch {
	case w.silent >= Silence:
		return fmt.Sprintf("nothing has happened for %v", Silence)
	case now.Sub(w.began) >= Longest:
		return fmt.Sprintf("not within %v", Longest)
	}
	return ""
}

func (w *waiting) say() string {
	var b strings.Builder
	for i, side := range w.sides {
		fmt.Fprintf(&b, "side %d: %s\n", i+1, side())
	}
	return b.String()
}

// report is what a failure prints.
func (w *waiting) report() string {
	stacks := make([]byte, 1<<20)
	return w.say() + string(stacks[:runtime.Stack(stacks, true)])
}
