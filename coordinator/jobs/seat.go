package jobs

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/job"
)

// seat is one job's place at the fleet: what its coordinator takes for its Host.
type seat struct {
	h    *Host
	name string
	in   string // pool

	// Guarded by Host.mu.
	c      *coordinator.Coordinator // nil until it is open
	paused string                   // by whom and why; "": nobody has paused it
	asked  answer
}

// answer is what was found last of whether the fleet can pay: it is asked again and again
// while a job waits.
type answer struct {
	entries int64 // of the fleet's ledger
	next    coordinator.Price
	why     string
}

// wake has the job's engine ask anew; under Host.mu.
func (s *seat) wake() {
	if s.c != nil {
		s.c.Wake()
	}
}

func (s *seat) Fence() string { return s.h.store.Fence() }

func (s *seat) Secret() []byte { return s.h.secret }

func (s *seat) SecretsFor(id [32]byte) ([]store.InvitationSecret, error) {
	return s.h.store.SecretsFor(id)
}

func (s *seat) Enrol(id [32]byte, invitation int64) error {
	_, err := s.h.store.EnrolIn(id, s.in, invitation)
	return err
}

func (s *seat) Strike(id [32]byte, round uint64, reason string, proven bool, most int) (int, bool, error) {
	strikes, excluded, err := s.h.store.StrikeIn(s.name, id, round, reason, proven, most)
	if err == nil && excluded {
		s.h.mu.Lock()
		defer s.h.mu.Unlock()
		for _, other := range s.h.seats {
			if other != s && other.in == s.in {
				other.wake()
			}
		}
	}
	return strikes, excluded, err
}

func (s *seat) Agent(id [32]byte, said string) error { return s.h.store.Agent(id, said) }

func (s *seat) Declined(round uint64, by map[[32]byte]uint16) error {
	return s.h.store.Declined(round, by)
}

func (s *seat) Excluded() (map[[32]byte]string, error) {
	return s.h.store.NotDrawn(time.Unix(1, 0)) // before anybody was seen but those forgotten; each job knows who was absent of it
}

func (s *seat) Turn(ready bool, next coordinator.Price) (mine bool, why string, err error) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	switch {
	case s.paused != "":
		why = s.paused
	case !ready:
	default:
		if why, err = s.unaffordable(next); err != nil {
			return false, "", err
		}
		if why == "" {
			mine, before := s.h.turns.ask(s.name)
			if !mine && before != "" {
				why = fmt.Sprintf("it is the turn of job %s", before)
			}
			return mine, why, nil
		}
	}
	s.h.turns.withdraw(s.name)
	return false, why, nil
}

// unaffordable says why the fleet cannot pay for one more round, "" if it can.
func (s *seat) unaffordable(next coordinator.Price) (string, error) {
	h := s.h
	next.Event.Round = 1 // whichever: it costs the same
	if s.asked.entries == h.spent.Entries && s.asked.next == next && s.asked.entries > 0 {
		return s.asked.why, nil
	}
	why, err := afford(h.spent, s.name, s.in, next)
	if err == nil {
		s.asked = answer{h.spent.Entries, next, why}
	}
	return why, err
}

func (s *seat) Begin(round uint64, cost coordinator.Price) error {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	why, err := afford(s.h.spent, s.name, s.in, cost)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("jobs: %s: %w", why, coordinator.ErrBudget)
	}
	return s.spend(store.SpendReserve, round, &cost)
}

func (s *seat) End(round uint64, charged *coordinator.Price, again bool) error {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	act := store.SpendCharge
	if charged == nil {
		act = store.SpendReturn
	}
	err := s.spend(act, round, charged)
	s.h.turns.done(s.name, again)
	if err == nil { // others wait for what was given back
		s.h.wakeAll(s.in)
	}
	return err
}

// spend writes to the fleet's ledger; under Host.mu.
func (s *seat) spend(act string, round uint64, cost *coordinator.Price) error {
	e := store.Spending{Act: act, Job: s.name, Pool: s.in, Round: round}
	if cost != nil {
		var err error
		if e.Event, err = cost.Event.MarshalBinary(); err != nil {
			return fmt.Errorf("jobs: %w", err)
		}
		e.Floor = cost.Floor
	}
	return s.h.store.Spend(s.h.spent, e)
}

// adopt puts what a job spent, or owes, before it was one of several into the fleet's ledger:
// it counts although the job may wait, pause or be stopped before it is ever opened.
func (h *Host) adopt(j store.Hosted) error {
	l, err := store.ReadLedger(filepath.Join(h.cfg.Dir, filepath.FromSlash(j.Folder)))
	if errors.Is(err, store.ErrNoStore) {
		return nil
	}
	if err != nil {
		return err
	}
	of, err := job.Parse(strings.NewReader(string(j.File)))
	if err != nil {
		return fmt.Errorf("jobs: %s: %w", j.Name, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &seat{h: h, name: j.Name, in: j.Pool}
	take := func(act string, e dp.Event) error {
		if b := h.spent.By[j.Name]; b != nil {
			if _, known := b.Rounds[e.Round]; known {
				return nil
			}
		}
		return s.spend(act, e.Round, &coordinator.Price{Event: e, Floor: of.FloorDelta()})
	}
	for _, e := range l.Entries {
		if err := take(store.SpendCharge, e.Event); err != nil {
			return err
		}
	}
	for _, e := range l.Owed {
		if err := take(store.SpendReserve, e); err != nil {
			return err
		}
	}
	return nil
}

// settle brings the fleet's ledger to what is in the job's, after whatever ended the
// process before. It is called before the job draws anything.
func (s *seat) settle(l store.Ledger, c *coordinator.Coordinator) error {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	had := map[uint64]store.Cost{}
	if b := s.h.spent.By[s.name]; b != nil {
		for n, cost := range b.Rounds {
			had[n] = cost
		}
	}
	for _, e := range l.Entries {
		cost, begun := had[e.Event.Round]
		delete(had, e.Event.Round)
		switch {
		case cost.Charged && cost.Event != e.Event:
			return fmt.Errorf("%w: round %d of job %s differs from the fleet's ledger", store.ErrLedger, e.Event.Round, s.name)
		case cost.Charged:
			continue
		case !begun:
			s.h.log.Info("a round is taken into the fleet's ledger", "job", s.name, "round", e.Event.Round)
		}
		p := c.PriceOf(e.Event)
		if err := s.spend(store.SpendCharge, e.Event.Round, &p); err != nil {
			return err
		}
	}
	for n, cost := range had {
		if cost.Charged {
			return fmt.Errorf("%w: round %d of job %s was charged to the fleet and is not in the job's ledger: its folder was restored "+
				"from an older copy; restore the one that belongs to the fleet's", store.ErrLedger, n, s.name)
		}
		if err := s.spend(store.SpendReturn, n, nil); err != nil {
			return err
		}
	}
	return nil
}
