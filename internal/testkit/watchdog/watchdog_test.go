package watchdog

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/internal/leaf/cputime"
)

// failing is a test that notes how it failed.
type failing struct {
	testing.TB
	text string
}

func (f *failing) Helper() {}

// Fatalf ends its goroutine, as a test's does.
func (f *failing) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	panic(f)
}

// caught runs wait and returns what it failed with.
func caught(wait func(t testing.TB)) (text string) {
	f := new(failing)
	defer func() {
		if r := recover(); r != nil && r != any(f) {
			panic(r)
		}
		text = f.text
	}()
	wait(f)
	return ""
}

// idles has the process do nothing, whatever else runs in it.
func idles(t *testing.T) { works(t, func() time.Duration { return 0 }) }

func works(t *testing.T, by func() time.Duration) {
	real := worked
	worked = by
	t.Cleanup(func() { worked = real })
}

func TestASilentWaitFailsAndShowsBothSides(t *testing.T) {
	idles(t)
	never := make(chan int)
	for name, wait := range map[string]func(testing.TB, ...Side){
		"recv": func(t testing.TB, sides ...Side) { Recv(t, "the answer", never, sides...) },
		"send": func(t testing.TB, sides ...Side) { Send(t, "the answer", never, 1, sides...) },
	} {
		synctest.Test(t, func(t *testing.T) {
			never = make(chan int) // of this bubble
			began := time.Now()
			text := caught(func(t testing.TB) {
				wait(t, func() string { return "the device trains" }, func() string { return "the coordinator gathers" })
			})
			for _, want := range []string{
				"the answer: nothing has happened for 30s", "side 1: the device trains", "side 2: the coordinator gathers",
				"watchdog.TestASilentWaitFailsAndShowsBothSides", // a stack
			} {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %q is missing in:\n%s", name, want, text)
				}
			}
			if took := time.Since(began); took < Silence || took > Silence+2*time.Second {
				t.Errorf("%s: failed after %v", name, took)
			}
		})
	}
}

// As long as a side moves the wait goes on, but not for ever.
func TestASideThatMovesIsWaitedFor(t *testing.T) {
	idles(t)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		late := make(chan int, 1)
		go func() { time.Sleep(3 * time.Minute); late <- 7 }()
		minute := func() string { return fmt.Sprint(time.Since(began) / (20 * time.Second)) }
		if got := Recv(t, "late", late, minute); got != 7 {
			t.Error(got)
		}
		text := caught(func(t testing.TB) { Recv(t, "never", make(chan int), minute) })
		if !strings.Contains(text, "never: not within 8m0s") {
			t.Error(text)
		}
	})
}

// A process that works is waited for though it says nothing, one that wakes now and
// then is not.
func TestWhoStarvesIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		share time.Duration // of a second
		text  string
	}{
		"a twentieth of a processor": {time.Second / 20, "never: not within 8m0s"},
		"its timers":                 {time.Second / 100, "never: nothing has happened for 30s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			works(t, func() time.Duration { return time.Since(began) / time.Second * c.share })
			if text := caught(func(t testing.TB) { Recv(t, "never", make(chan int)) }); !strings.Contains(text, c.text) {
				t.Errorf("%s: %s", name, text)
			}
		})
	}
}

// A process that was stopped for an hour, as one that gets no processor is, has been
// silent for the second that it had looked.
func TestTimeWithoutALookIsNoSilence(t *testing.T) {
	idles(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWait(nil)
		defer w.tick.Stop()
		time.Sleep(5 * time.Minute)
		if why := w.stalled(); why != "" {
			t.Errorf("after one look: %s", why)
		}
		for range 28 {
			time.Sleep(tick)
			if why := w.stalled(); why != "" {
				t.Fatalf("after %v of looks: %s", w.silent, why)
			}
		}
		time.Sleep(tick)
		if why := w.stalled(); !strings.Contains(why, "nothing has happened") {
			t.Errorf("after %v of looks: %q", w.silent, why)
		}
	})
}

// What another process does counts as work: this one only waits for it.
func TestChildrenWork(t *testing.T) {
	if os.Getenv("WATCHDOG_CHILD") != "" {
		for began := cputime.Now(); cputime.Now()-began < time.Minute; { // the parent ends it
		}
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("other processes' time is read from /proc")
	}
	cmd := exec.CommandContext(Context(t), os.Args[0], "-test.run=^TestChildrenWork$")
	cmd.Env = append(os.Environ(), "WATCHDOG_CHILD=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children"); err != nil {
		t.Skip("this kernel lists no children: ", err)
	}
	ctx := Context(t)
	for children() < 100*time.Millisecond {
		select {
		case <-ctx.Done():
			t.Fatalf("the child is seen to work for %v", children())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestWaitAndWithin(t *testing.T) {
	idles(t)
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		wg.Go(func() { time.Sleep(20 * time.Second) })
		Wait(t, "the group", wg.Wait)
		wg.Go(func() { time.Sleep(2 * time.Hour) })
		text := caught(func(t testing.TB) { Within(t, time.Hour, "the hour", wg.Wait) })
		if !strings.Contains(text, "the hour: not within 1h0m0s") {
			t.Error(text)
		}
		Within(t, 2*time.Hour, "two hours", wg.Wait)
	})
}
