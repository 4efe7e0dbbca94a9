package coordinator

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/coordinator/monitor"
)

// failing are the names of the checks that are not OK.
func failing(checks []Check) (names []string) {
	for _, c := range checks {
		if !c.OK {
			names = append(names, c.Name)
		}
	}
	return names
}

// TestChecks: a coordinator that waits for its devices is alive and ready.
func TestChecks(t *testing.T) {
	j := loud(3, 1)
	err := bubble(t, j, 3, func(ctx context.Context, tb *table) {
		if err := tb.c.Alive(ctx); err != nil {
			t.Error(err)
		}
		if bad := failing(tb.c.Checks(ctx)); bad != nil {
			t.Errorf("a running coordinator is not ready: %q", bad)
		}
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// TestAliveKnowsAStuckEngine: an engine that takes no event is busy for a while, and then
// stuck; one that goes on is alive again.
func TestAliveKnowsAStuckEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Coordinator{sessions: sessions{events: make(chan event), done: make(chan struct{})}}
		step := func(want string) {
			t.Helper()
			err := c.Alive(t.Context())
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("alive: %v, want %q", err, want)
			}
		}
		step("")
		time.Sleep(stuckAfter / 2)
		step("")
		time.Sleep(stuckAfter)
		step("has not answered for 3m")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.handle(<-c.events)
		}()
		time.Sleep(2 * saidFor)
		step("")
		<-ended
	})
}

// TestChecksNameWhatIsWrong: the clock, a round beyond its deadlines, a store that takes
// no writes and a folder that is gone.
func TestChecksNameWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	c, err := New(Config{Job: loud(3, 1), Dir: dir, Base: tinyBase(t), Hosts: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // its store is closed by then
	look := func() []string {
		c.health.looked, c.health.checked, c.health.heard = time.Time{}, time.Time{}, time.Time{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		return failing(c.Checks(ctx))
	}
	if got := look(); got != nil { // nobody runs it, and it is given a while
		t.Fatalf("before Run: %q", got)
	}
	c.health.asked = time.Now().Add(-2 * busyFor)
	c.health.round(time.Now().Add(-time.Hour), time.Minute)
	c.monitor.Ended(monitor.RoundRecord{RoundID: monitor.RoundID{Round: 1}, Ended: time.Now().Add(time.Hour).Unix()})
	if got := look(); !slices.Equal(got, []string{"engine", "clock", "rounds"}) {
		t.Errorf("an endless round and a clock that was set back: %q", got)
	}
	c.health.round(time.Time{}, 0)
	c.monitor.Ended(monitor.RoundRecord{RoundID: monitor.RoundID{Round: 2}, Ended: time.Now().Unix()})
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if got := look(); !slices.Equal(got, []string{"engine", "store", "disk"}) {
		t.Errorf("without its folder: %q", got)
	}
}
