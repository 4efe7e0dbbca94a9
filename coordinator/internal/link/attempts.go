package link

import (
	"net/netip"
	"sync"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/origin"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// Attempts limits how often each address may enrol a new identity, or fail to.
type Attempts struct {
	most  int  // in an hour
	spare bool // not this machine's own addresses

	mu    sync.Mutex
	since time.Time            // guarded by mu: when made was begun
	made  map[netip.Prefix]int // guarded by mu
}

const (
	// AttemptsPeriod is the time after which an attempt no longer counts.
	AttemptsPeriod = time.Hour
	// maxAddresses bounds what is remembered: beyond it, addresses that have not
	// tried yet share one count.
	maxAddresses = 1 << 16
)

// NewAttempts allows so many in an hour; 0 is 256, and none are counted of this machine itself.
func NewAttempts(most int) *Attempts {
	a := &Attempts{most: most, made: map[netip.Prefix]int{}}
	if most <= 0 {
		a.most, a.spare = 256, true
	}
	return a
}

// at is the entry of an address; guarded by mu.
func (a *Attempts) at(remote string) (netip.Prefix, bool) {
	if now := time.Now(); now.Sub(a.since) > AttemptsPeriod {
		a.since, a.made = now, map[netip.Prefix]int{}
	}
	from := origin.Of(remote)
	if a.spare && from.Addr().IsLoopback() {
		return from, false
	}
	if a.made[from] == 0 && len(a.made) >= maxAddresses {
		from = netip.Prefix{}
	}
	return from, true
}

// Allowed refuses an address that has made too many, and says when it may try again.
func (a *Attempts) Allowed(remote string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if from, limited := a.at(remote); limited && a.made[from] >= a.most {
		wait := AttemptsPeriod - time.Since(a.since)
		return Refuse(wire.CodeBusy, wait, "%d new or failed enrolments came from this address within an hour; try again in %v", a.most, wait.Round(time.Minute))
	}
	return nil
}

// Made counts a new device of an address, or a failed attempt.
func (a *Attempts) Made(remote string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if from, limited := a.at(remote); limited {
		a.made[from]++
	}
}
