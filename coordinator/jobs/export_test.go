package jobs

import (
	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/dp"
)

// What the tests of this package's users look at.

var Compose = compose

func (h *Host) Events(pool string) (events []dp.Event, floor float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spent.Events(pool)
}

func (h *Host) Entries() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spent.Entries
}

func (h *Host) Seat(name string) coordinator.Host {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seats[name]
}
