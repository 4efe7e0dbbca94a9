package coordinator

import (
	"errors"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
)

// ErrStopped is the cause to cancel Run's context with when an operator stops the job for good:
// devices are then told that it is over.
var ErrStopped = errors.New("coordinator: the job was stopped")

// Host is what a job shares with other jobs over one fleet: who may enrol, who is excluded, whose
// turn it is, and what the fleet may spend. The engine and sessions call it from any goroutine; it
// must answer soon.
type Host interface {
	// Fence is the fencing token of the fleet's store: a process that has lost it opens no job
	// either.
	Fence() string
	// Secret is what a device shows to enrol that was not invited by name.
	Secret() []byte
	// SecretsFor are the secrets of invitations with which an identity may show up.
	SecretsFor(id [32]byte) ([]store.InvitationSecret, error)
	// Enrol takes an identity into the fleet, where it may be: store.ErrFull, ErrExcluded,
	// ErrInvitation or ErrPool if it may not.
	Enrol(id [32]byte, invitation int64) error
	// Strike records that a device misbehaved in a round of this job, and returns in how many
	// rounds of all jobs it has. It is excluded from all jobs if the fault is proven, or if there
	// are most such rounds.
	Strike(id [32]byte, round uint64, reason string, proven bool, most int) (strikes int, excluded bool, err error)
	// A device's own name and its declined rounds are kept with the fleet, where operators look for
	// them.
	deviceNotes

	// Excluded are the identities that no job of the fleet draws, and why: of those that were
	// forgotten until they come again, "".
	Excluded() (map[[32]byte]string, error)

	// Turn reports whether the job may draw a round now, and if not, why. ready says that it has
	// the devices for one: a job that has not keeps nobody waiting. next bounds what a round costs.
	// A job that gets no turn is woken by Wake when that may have changed.
	Turn(ready bool, next Price) (mine bool, why string, err error)
	// Begin enters a round into the fleet's ledger before anybody hears of it; ErrBudget if the
	// fleet cannot pay for it. Only the job that has the turn calls it.
	Begin(round uint64, cost Price) error
	// End gives the turn back. charged is the event in the job's ledger, nil if the round cost
	// nothing; again says that the job could start its next round at once.
	End(round uint64, charged *Price, again bool) error
}

// deviceNotes are notes about devices that only operators see.
type deviceNotes interface {
	Agent(id [32]byte, said string) error
	Declined(round uint64, by map[[32]byte]uint16) error
}

func (c *Coordinator) deviceNotes() deviceNotes {
	if c.cfg.Host != nil {
		return c.cfg.Host
	}
	return c.store
}

// Price is what a round costs, and the part of delta set aside for the job's floors.
type Price struct {
	Event dp.Event
	Floor float64
}

// PriceOf returns the cost of a round with the given event to the job's fleet.
func (c *Coordinator) PriceOf(e dp.Event) Price { return Price{e, c.t.Budget.Floor} }

// Wake tells the engine that its Host's answers may have changed. It does not wait.
func (c *Coordinator) Wake() {
	select {
	case c.woken <- struct{}{}:
	default: // it has been told and did not look yet
	}
}

// mayDraw asks the host, if there is one, whether a round may be drawn.
func (c *Coordinator) mayDraw(ready bool) (mine bool, why string, err error) {
	if c.cfg.Host == nil {
		return ready, "", nil
	}
	return c.cfg.Host.Turn(ready, c.PriceOf(dp.AtMost(c.accounts.next(c.spent))))
}

// beginShared enters a drawn round into the fleet's ledger, at the most that it may come to.
func (c *Coordinator) beginShared(r *running) error {
	if c.cfg.Host == nil {
		return nil
	}
	return stopped(r.ID(), c.cfg.Host.Begin(r.ID(), c.PriceOf(dp.AtMost(r.Event()))))
}

// endShared says what came of it. known is how many entries the job's ledger had before. Of a
// round that the job's store did not settle nothing is said: it may be charged when the job is
// opened again, and counts until then.
func (c *Coordinator) endShared(r *running, known int, again bool) error {
	if c.cfg.Host == nil {
		return nil
	}
	unsettled := r.finish == nil || r.fatal != nil
	var charged *Price
	if len(c.spent) > known {
		p := c.PriceOf(c.spent[len(c.spent)-1])
		charged = &p
	} else if unsettled {
		return nil // the job ends, and with it its turn
	}
	return c.cfg.Host.End(r.ID(), charged, again && int(c.core.Version()) < c.t.Job.Rounds)
}
