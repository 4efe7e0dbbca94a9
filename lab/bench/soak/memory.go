//go:build linux

package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/starling-fl/starling/lab/internal/resident"
)

// memory follows the coordinator's resident memory, life by life, and this
// process's heap after collections: the devices'.
type memory struct {
	coordinator int // kB, now
	devices     int // kB, now
	lives       []span
	// heap is in kB, one a sample in which most devices were in a round: one that waits
	// for its coordinator, or for others, holds less, and a short run may begin or end so.
	heap []int
}

// span is one life of the coordinator's process.
type span struct {
	life  int
	began time.Time
	rss   []int // kB
}

func (m *memory) sample(k *keeper, f *fleet) {
	if pid, life := k.process(); pid != 0 {
		if kb := resident.Set(pid); kb > 0 {
			if n := len(m.lives); n == 0 || m.lives[n-1].life != life {
				m.lives = append(m.lives, span{life: life, began: time.Now()})
			}
			s := &m.lives[len(m.lives)-1]
			s.rss = append(s.rss, kb)
			m.coordinator = kb
		}
	}
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	m.devices = int(s.HeapAlloc / 1024)
	m.note(f.working(), f.o.devices)
}

// note takes the devices' heap into the judgement where enough of them work.
func (m *memory) note(working, of int) {
	if 10*working >= 8*of {
		m.heap = append(m.heap, m.devices)
	}
}

// leastHeaps is how many samples are judged, five minutes of rounds: in the first ones
// devices still take in what they keep, the programs of every rank among it.
const leastHeaps = 60

// check checks the end against the beginning: the last full life of the
// coordinator against the first, the devices' last quarter against their second.
// A third more is more than chance.
func (m *memory) check() error {
	const most = 1.33
	if n := len(m.lives); n >= 3 { // the last life is cut short
		first, last := mean(m.lives[0].rss[len(m.lives[0].rss)/2:]), mean(m.lives[n-2].rss[len(m.lives[n-2].rss)/2:])
		fmt.Printf("coordinator: %.0f kB resident in its first life, %.0f kB in its last full one\n", first, last)
		if last > most*first {
			return fmt.Errorf("the coordinator grew from %.0f to %.0f kB", first, last)
		}
	} else if n > 0 && len(m.lives[0].rss) >= 8 {
		rss := m.lives[0].rss
		a, b := mean(rss[len(rss)/4:len(rss)/2]), mean(rss[len(rss)*3/4:])
		fmt.Printf("coordinator: %.0f kB resident in its second quarter, %.0f kB in its last\n", a, b)
		if b > most*a {
			return fmt.Errorf("the coordinator grew from %.0f to %.0f kB", a, b)
		}
	}
	if n := len(m.heap); n < leastHeaps {
		fmt.Printf("devices: most were in a round in %d samples, too few to judge their heap by (%d)\n", n, leastHeaps)
	} else {
		a, b := mean(m.heap[n/4:n/2]), mean(m.heap[n*3/4:])
		fmt.Printf("devices: %.0f kB of heap in the second quarter, %.0f kB in the last\n", a, b)
		if b > most*a {
			return fmt.Errorf("the devices grew from %.0f to %.0f kB", a, b)
		}
	}
	return nil
}

func mean(v []int) float64 {
	sum := 0
	for _, x := range v {
		sum += x
	}
	return float64(sum) / float64(max(1, len(v)))
}
