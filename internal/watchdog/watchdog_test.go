package watchdog

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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

func TestASilentWaitFailsAndShowsBothSides(t *testing.T) {
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

func TestWaitAndWithin(t *testing.T) {
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
