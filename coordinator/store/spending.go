package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/starling-fl/starling/dp"
)

// The acts in a fleet's ledger.
const (
	SpendBudget  = "budget"  // from here on this is the fleet's
	SpendReserve = "reserve" // a round was drawn: it counts until it is known what it cost
	SpendCharge  = "charge"  // it is in its job's ledger
	SpendReturn  = "return"  // it ended without having cost anything
)

// Spending is an entry of a fleet's ledger, which has the rounds of all jobs in the order in which
// they began. A job's own ledger says what that job promises; this one, what those promises amount
// to for a device that is in several jobs.
type Spending struct {
	Seq int64     `json:"seq"` // from 1
	At  time.Time `json:"at"`
	Act string    `json:"act"`

	Job   string `json:"job,omitempty"`
	Pool  string `json:"pool,omitempty"`
	Round uint64 `json:"round,omitempty"`
	Event []byte `json:"event,omitempty"` // dp.Event in binary; of a reserve or a charge
	// Floor is the part of delta that the job's floors have; of a reserve or a charge.
	Floor float64 `json:"floor,omitempty"`

	Epsilon float64 `json:"epsilon,omitempty"` // of a budget; 0: there is none
	Delta   float64 `json:"delta,omitempty"`
}

// Spent is the state of a fleet's ledger.
type Spent struct {
	Epsilon, Delta float64            // the fleet's budget; 0: none
	By             map[string]*Bought // by job
	Head           [32]byte           // the last entry's hash
	Entries        int64
}

// Bought has the charged rounds of one job.
type Bought struct {
	Pool   string
	Floor  float64
	Rounds map[uint64]Cost
}

// Cost is the cost of one round.
type Cost struct {
	Event   dp.Event
	Charged bool // false: it is under way, or ended with its process
}

// Events lists what a pool's jobs have spent, including rounds under way, and returns the part of
// delta set aside for their floors together.
func (s *Spent) Events(pool string) (events []dp.Event, floor float64) {
	names := make([]string, 0, len(s.By))
	for name, b := range s.By {
		if b.Pool == pool {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b := s.By[name]
		floor += b.Floor
		rounds := make([]uint64, 0, len(b.Rounds))
		for n := range b.Rounds {
			rounds = append(rounds, n)
		}
		slices.Sort(rounds)
		for _, n := range rounds {
			events = append(events, b.Rounds[n].Event)
		}
	}
	return events, floor
}

// follows returns what adds an entry, and refuses what may not follow those before it.
func (s *Spent) follows(e Spending) (add func(), err error) {
	if e.Act == SpendBudget {
		if !(e.Epsilon >= 0) || math.IsInf(e.Epsilon, 0) || e.Epsilon > 0 && !(e.Delta > 0 && e.Delta < 1) {
			return nil, fmt.Errorf("a budget of epsilon %v, delta %v", e.Epsilon, e.Delta)
		}
		return func() { s.Epsilon, s.Delta = e.Epsilon, e.Delta }, nil
	}
	b := s.By[e.Job]
	if b == nil {
		b = &Bought{Pool: e.Pool, Rounds: map[uint64]Cost{}}
	}
	if e.Job == "" || b.Pool != e.Pool {
		return nil, fmt.Errorf("job %q of pool %q is in pool %q", e.Job, b.Pool, e.Pool)
	}
	cost, begun := b.Rounds[e.Round]
	switch {
	case e.Act != SpendReserve && e.Act != SpendCharge && e.Act != SpendReturn:
		return nil, fmt.Errorf("an act %.40q", e.Act)
	case cost.Charged || begun && e.Act == SpendReserve:
		return nil, fmt.Errorf("round %d of job %q twice", e.Round, e.Job)
	case e.Act == SpendReturn && !begun:
		return nil, fmt.Errorf("round %d of job %q ends and was not begun", e.Round, e.Job)
	case e.Act == SpendReturn:
		return func() { delete(b.Rounds, e.Round) }, nil
	default:
		if err := cost.Event.UnmarshalBinary(e.Event); err != nil {
			return nil, err
		}
		if cost.Event.Round != e.Round || !(e.Floor >= 0 && e.Floor < 1) {
			return nil, fmt.Errorf("round %d of job %q has the event of round %d and a floor of %v", e.Round, e.Job, cost.Event.Round, e.Floor)
		}
	}
	return func() {
		cost.Charged, b.Floor = e.Act == SpendCharge, max(b.Floor, e.Floor)
		b.Rounds[e.Round] = cost
		s.By[e.Job] = b
	}, nil
}

const spendingLabel = "starling/1 spending\x00"

func spendingHash(before, body []byte) [32]byte {
	return sha256.Sum256(slices.Concat([]byte(spendingLabel), before, body))
}

// Spent reads and verifies the fleet's ledger.
func (s *Store) Spent() (*Spent, error) { return spent(s.db, nil) }

// Spent reads and verifies the fleet's ledger, and calls each, if not nil, with every entry.
func (f *Fleet) Spent(each func(Spending)) (*Spent, error) { return spent(f.db, each) }

func spent(q querier, each func(Spending)) (*Spent, error) {
	rows, err := q.Query(`SELECT seq, body, hash FROM spending ORDER BY seq`)
	if err != nil {
		return nil, prefixed(err)
	}
	defer rows.Close()
	out := &Spent{By: map[string]*Bought{}}
	for rows.Next() {
		var seq int64
		var body, hash []byte
		if err := rows.Scan(&seq, &body, &hash); err != nil {
			return nil, prefixed(err)
		}
		var e Spending
		broken := func(why string) error { return &LedgerError{uint64(seq), "of the fleet: " + why} }
		if err := json.Unmarshal(body, &e); err != nil {
			return nil, broken(err.Error())
		}
		if e.Seq != seq || seq != out.Entries+1 || spendingHash(out.Head[:], body) != [32]byte(hash) {
			return nil, broken("it is not as it was written")
		}
		add, err := out.follows(e)
		if err != nil {
			return nil, broken(err.Error())
		}
		add()
		out.Entries, out.Head = seq, [32]byte(hash)
		if each != nil {
			each(e)
		}
	}
	return out, ended(rows.Err())
}

// Spend adds an entry durably to the fleet's ledger, and to its state in into.
func (s *Store) Spend(into *Spent, e Spending) error {
	var add func()
	err := s.tx(func(tx *sql.Tx) (err error) {
		add, err = spend(tx, into, e, s.opt.Now())
		return err
	})
	if err == nil {
		add()
		s.opt.fault("spending written")
	}
	return err
}

// spend writes an entry; add adds it to what was read, once it is committed.
func spend(tx *sql.Tx, into *Spent, e Spending, now time.Time) (add func(), err error) {
	var seq int64
	head := make([]byte, 32)
	err = tx.QueryRow(`SELECT seq, hash FROM spending ORDER BY seq DESC LIMIT 1`).Scan(&seq, &head)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	if seq != into.Entries || into.Head != [32]byte(head) {
		return nil, fmt.Errorf("%w: of the fleet: another process wrote entry %d", ErrLedger, seq)
	}
	e.Seq, e.At = seq+1, now.UTC().Truncate(time.Second)
	entry, err := into.follows(e)
	if err != nil {
		return nil, fmt.Errorf("%w: of the fleet: %w", ErrLedger, err)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	hash := spendingHash(head, body)
	if _, err := tx.Exec(`INSERT INTO spending (seq, body, hash) VALUES ($1, $2, $3)`, e.Seq, body, hash[:]); err != nil {
		return nil, err
	}
	return func() {
		entry()
		into.Entries, into.Head = e.Seq, hash
	}, nil
}
