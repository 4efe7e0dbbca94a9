package kernel

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/cpu"
)

// Team is the goroutines that compute products together, one after the other: its owner's, and helpers that
// wait for the next one. To start a goroutine for each, or to wake one, takes longer than a small product does,
// so helpers spin for a while before they sleep. A nil Team is its owner alone.
type Team struct {
	owner   gate
	helpers []*helper
	stopped atomic.Bool
	running sync.WaitGroup
}

// helper is one goroutine of a team.
type helper struct {
	gate
	number int
	// offer is nil, or a product to join. Anyone who takes that out of here has it: the helper puts taken in its place and
	// nil when it is done, the owner takes back what no helper came for.
	offer atomic.Pointer[job]
}

var taken = new(job)

// NewTeam starts a team of the given number of goroutines, its owner's included. One goroutine at a time may run
// products on it; Stop must follow.
func NewTeam(cores int) *Team {
	t := &Team{owner: newGate()}
	for i := range cores - 1 {
		h := &helper{gate: newGate(), number: i + 1}
		t.helpers = append(t.helpers, h)
		t.running.Go(func() { t.help(h) })
	}
	return t
}

// Stop ends the helpers and waits for them.
func (t *Team) Stop() {
	if t == nil {
		return
	}
	t.stopped.Store(true)
	for _, h := range t.helpers {
		h.open()
	}
	t.running.Wait()
}

func (t *Team) size() int {
	if t == nil {
		return 1
	}
	return 1 + len(t.helpers)
}

// run computes a product with some of the helpers. It returns when none of them works at it any more.
func (t *Team) run(j *job, helpers int) {
	var joined []*helper
	if helpers > 0 {
		joined = t.helpers[:helpers]
	}
	for _, h := range joined {
		h.offer.Store(j)
		h.open()
	}
	j.work(0)
	for _, h := range joined {
		if !h.offer.CompareAndSwap(j, nil) {
			t.owner.wait(func() bool { return h.offer.Load() == nil })
		}
	}
}

func (t *Team) help(h *helper) {
	for {
		h.wait(func() bool { return h.offer.Load() != nil || t.stopped.Load() })
		j := h.offer.Load()
		switch {
		case j != nil && h.offer.CompareAndSwap(j, taken):
			j.work(h.number)
			h.offer.Store(nil)
			t.owner.open()
		case t.stopped.Load():
			return
		}
	}
}

// shares are a product's tasks, divided: one share a worker.
type shares []share

// share counts the tasks that were taken of a worker's, in a cache line of its own.
type share struct {
	taken atomic.Int64
	_     cpu.CacheLinePad
}

// divide begins anew.
func (s *shares) divide(workers int) {
	*s = slices.Grow((*s)[:0], workers)[:workers]
	for i := range *s {
		(*s)[i].taken.Store(0)
	}
}

// work computes tasks until there are none: first those of a share that is a worker's own in every product, as what it
// wrote in the last one is in its core's cache.
func (s shares) work(me, n int, w *worker) {
	for i := range s {
		if !s.share((me+i)%len(s), n, w) {
			return
		}
	}
}

// share computes what is left of one; false: the context has ended.
func (s shares) share(i, n int, w *worker) bool {
	for end := (i + 1) * n / len(s); ; {
		task := i*n/len(s) + int(s[i].taken.Add(1)) - 1
		if task >= end {
			return true
		}
		if !w.task(task) {
			return false
		}
	}
}

// gate is where one goroutine waits for what others bring about.
type gate struct {
	asleep atomic.Bool
	wake   chan struct{}
}

func newGate() gate { return gate{wake: make(chan struct{}, 1)} }

// awake is how long a gate is watched before its goroutine sleeps: longer than most of what a program computes between
// two products, and than it takes to be woken.
const awake = 500 * time.Microsecond

// wait returns once ready does.
func (g *gate) wait(ready func() bool) {
	for began := time.Now(); ; {
		for range 64 {
			if ready() {
				return
			}
		}
		yield()
		if time.Since(began) < awake {
			continue
		}
		// Who opens makes ready first, and looks then whether somebody sleeps: one of both sees the other.
		g.asleep.Store(true)
		if ready() && g.asleep.CompareAndSwap(true, false) {
			return
		}
		<-g.wake
		began = time.Now()
	}
}

// open is called when what is waited for may have come about.
func (g *gate) open() {
	if g.asleep.CompareAndSwap(true, false) {
		g.wake <- struct{}{}
	}
}
