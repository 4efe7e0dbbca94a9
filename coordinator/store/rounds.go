package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/starling-fl/starling/dp"
)

// Outcome is how a round ended; empty while it runs.
type Outcome string

// The outcomes.
const (
	Committed Outcome = "committed"
	Abandoned Outcome = "abandoned" // free
	Charged   Outcome = "charged"   // paid for, nothing released
)

// Round holds what is fixed when a round is drawn.
type Round struct {
	Version     uint64 // of the checkpoint it starts from; 0 is the initial adapter
	Rank        int
	Certificate dp.Certificate // of the sampling; its secret nonce is stored apart
	// Cost is what the round is charged from its draw on, nil if it owes nothing before
	// PersistIntent. It must be set if coins chose the cohort: if such a round could be dropped for
	// free and drawn again, releases would depend on the draw.
	Cost *dp.Event
}

// Checkpoint is a released model. Version counts from 1.
type Checkpoint struct {
	Version   uint64
	Round     uint64
	Adapter   []byte
	Optimizer []byte
	ClipNorm  float64  // of the round that follows
	Ledger    [32]byte // hash of the entry that paid for it
	Kept      *Kept    // nil unless noise cancels between rounds
}

// JournalLine is one line of a round's journal.
type JournalLine struct {
	Round         uint64
	State, Detail string
}

// BeginRound writes a drawn round and returns its number: one more than any
// before it, never given twice. With a Cost the intent is written in the same
// transaction: from then on the round is committed or charged, whatever happens.
func (s *Store) BeginRound(r Round) (uint64, error) {
	var id uint64
	certificate, err := json.Marshal(r.Certificate)
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	err = s.tx(func(tx *sql.Tx) error {
		if err := tx.QueryRow(`SELECT coalesce(max(id), 0) + 1 FROM round`).Scan(&id); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO round (id, version, rank, certificate, opening, at) VALUES ($1, $2, $3, $4, $5, $6)`,
			id, r.Version, r.Rank, string(certificate), r.Certificate.Nonce[:], s.opt.Now().Unix())
		if err != nil || r.Cost == nil {
			return err
		}
		s.opt.fault("draw written")
		if r.Cost.Round != id {
			return fmt.Errorf("round %d is begun with the cost of round %d", id, r.Cost.Round)
		}
		return s.intend(tx, *r.Cost, "drawn")
	})
	return id, err
}

// Journal appends a line to the round's journal.
func (s *Store) Journal(round uint64, state, detail string) error {
	return s.tx(func(tx *sql.Tx) error { return s.journal(tx, round, state, detail) })
}

func (s *Store) journal(tx *sql.Tx, round uint64, state, detail string) error {
	_, err := tx.Exec(`INSERT INTO journal (id, round, at, state, detail) VALUES (`+next("journal")+`, $1, $2, $3, $4)`,
		round, s.opt.Now().Unix(), state, plain(detail))
	return err
}

// Lines returns the journal of all rounds in the order written.
func (s *Store) Lines() ([]JournalLine, error) {
	rows, err := s.db.Query(`SELECT round, state, detail FROM journal ORDER BY id`)
	if err != nil {
		return nil, prefixed(err)
	}
	defer rows.Close()
	var lines []JournalLine
	for rows.Next() {
		var l JournalLine
		if err := rows.Scan(&l.Round, &l.State, &l.Detail); err != nil {
			return nil, prefixed(err)
		}
		lines = append(lines, l)
	}
	return lines, rows.Err()
}

// PersistSurvivors writes each shard's survivor set, by shard number, in its
// announced encoding. It must return before any of them is announced.
func (s *Store) PersistSurvivors(round uint64, sets map[int][]byte) error {
	return s.tx(func(tx *sql.Tx) error {
		for shard, body := range sets {
			if _, err := tx.Exec(`INSERT INTO survivors (round, shard, body) VALUES ($1, $2, $3)`, round, shard, body); err != nil {
				return err
			}
		}
		return s.journal(tx, round, "confirming", fmt.Sprintf("survivor sets of %d shards", len(sets)))
	})
}

// PersistIntent records that unmasking begins and what it will cost. It must return before anything
// is sent that lets anybody unmask. It is refused for a round that has an intent already, as one
// begun with a Cost has.
func (s *Store) PersistIntent(cost dp.Event) error {
	return s.tx(func(tx *sql.Tx) error { return s.intend(tx, cost, "unmasking") })
}

// intend writes what a round will be charged.
func (s *Store) intend(tx *sql.Tx, cost dp.Event, state string) error {
	body, err := cost.MarshalBinary()
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`INSERT INTO intent (round, body) VALUES ($1, $2)`, cost.Round, body); err != nil {
		return err
	}
	return s.journal(tx, cost.Round, state, "intent")
}

// checkIntent checks an event against the round's stored intent: all of it but the
// kind, which is known only in the end. Without an intent it is sql.ErrNoRows.
func checkIntent(tx *sql.Tx, ev dp.Event) error {
	var body []byte
	if err := tx.QueryRow(`SELECT body FROM intent WHERE round = $1`, ev.Round).Scan(&body); err != nil {
		return err
	}
	var intent dp.Event
	if err := intent.UnmarshalBinary(body); err != nil {
		return fmt.Errorf("intent of round %d: %w", ev.Round, err)
	}
	intent.Kind = ev.Kind
	if intent != ev {
		return fmt.Errorf("%w: round %d: %+v, intended were %+v", ErrIntent, ev.Round, ev, intent)
	}
	return nil
}

// Commit charges the round and writes its checkpoint, in one transaction. The
// checkpoint's version follows the last one.
func (s *Store) Commit(ev dp.Event, note Note, c Checkpoint) (e Entry, err error) {
	if ev.Kind != dp.KindRelease && ev.Kind != dp.KindNoiseOnly && ev.Kind != dp.KindUnnoised {
		return e, fmt.Errorf("store: a checkpoint cannot be paid by an event of kind %v", ev.Kind)
	}
	if c.Round != ev.Round {
		return e, fmt.Errorf("store: checkpoint of round %d, event of round %d", c.Round, ev.Round)
	}
	err = s.tx(func(tx *sql.Tx) error {
		err := checkIntent(tx, ev)
		if errors.Is(err, sql.ErrNoRows) {
			err = fmt.Errorf("%w: round %d has none", ErrIntent, ev.Round)
		}
		if err != nil {
			return err
		}
		if e, err = s.appendEntry(tx, ev, note); err != nil {
			return err
		}
		var last uint64
		if err := tx.QueryRow(`SELECT coalesce(max(version), 0) FROM checkpoint`).Scan(&last); err != nil {
			return err
		}
		if c.Version != last+1 {
			return fmt.Errorf("checkpoint %d after %d", c.Version, last)
		}
		digest := digestOf(c)
		if _, err := tx.Exec(`INSERT INTO checkpoint (version, round, ledger, adapter, optimizer, clip_norm, digest) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			c.Version, c.Round, e.Hash[:], c.Adapter, c.Optimizer, c.ClipNorm, digest[:]); err != nil {
			return err
		}
		s.opt.fault("checkpoint written")
		if err := s.keepRound(tx, c.Version, c.Kept); err != nil {
			return err
		}
		if c.Version > uint64(s.opt.KeepCheckpoints) {
			if _, err := tx.Exec(`UPDATE checkpoint SET adapter = NULL, optimizer = NULL WHERE version = $1`,
				c.Version-uint64(s.opt.KeepCheckpoints)); err != nil {
				return err
			}
		}
		return s.settle(tx, ev.Round, Committed, "")
	})
	return e, err
}

func digestOf(c Checkpoint) [32]byte {
	h := sha256.New()
	fmt.Fprintf(h, "starling checkpoint 2\n%d %d %d %d %016x\n", c.Version, c.Round, len(c.Adapter), len(c.Optimizer), math.Float64bits(c.ClipNorm))
	h.Write(c.Adapter)
	h.Write(c.Optimizer)
	return [32]byte(h.Sum(nil))
}

// settle writes how a round ended.
func (s *Store) settle(tx *sql.Tx, round uint64, o Outcome, reason string) error {
	res, err := tx.Exec(`UPDATE round SET outcome = $1, reason = $2 WHERE id = $3 AND outcome = ''`, o, plain(reason), round)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, fmt.Errorf("round %d is not running", round))
	}
	if err := s.journal(tx, round, string(o), reason); err != nil {
		return err
	}
	s.opt.fault("outcome written")
	return nil
}

// Charge pays for a round that released nothing. The event's kind becomes dp.KindCharged, unless it
// is dp.KindUnnoised.
func (s *Store) Charge(ev dp.Event, note Note) (e Entry, err error) {
	err = s.tx(func(tx *sql.Tx) error {
		var err error
		e, err = s.charge(tx, ev, note)
		return err
	})
	return e, err
}

func (s *Store) charge(tx *sql.Tx, ev dp.Event, note Note) (Entry, error) {
	if ev.Kind != dp.KindUnnoised {
		ev.Kind = dp.KindCharged
	}
	if err := checkIntent(tx, ev); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Entry{}, err
	}
	e, err := s.appendEntry(tx, ev, note)
	if err != nil {
		return e, err
	}
	return e, s.settle(tx, ev.Round, Charged, note.Reason)
}

// Abandon ends a round that cost nothing. It refuses a round whose intent is written, at its draw
// or later: that one must be committed or charged.
func (s *Store) Abandon(round uint64, reason string) error {
	return s.tx(func(tx *sql.Tx) error {
		var intents int
		if err := tx.QueryRow(`SELECT count(*) FROM intent WHERE round = $1`, round).Scan(&intents); err != nil {
			return err
		}
		if intents > 0 {
			return fmt.Errorf("round %d owes its cost and cannot be abandoned free of charge", round)
		}
		return s.settle(tx, round, Abandoned, reason)
	})
}

// Last returns the last checkpoint, or nil if none is committed.
func (s *Store) Last() (*Checkpoint, error) {
	var c Checkpoint
	var ledger, digest []byte
	err := s.db.QueryRow(`SELECT version, round, ledger, adapter, optimizer, clip_norm, digest FROM checkpoint ORDER BY version DESC LIMIT 1`).
		Scan(&c.Version, &c.Round, &ledger, &c.Adapter, &c.Optimizer, &c.ClipNorm, &digest)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, prefixed(err)
	}
	copy(c.Ledger[:], ledger)
	if sum := digestOf(c); string(digest) != string(sum[:]) {
		return nil, fmt.Errorf("store: checkpoint %d is damaged: its digest does not fit", c.Version)
	}
	return &c, nil
}

// recover verifies the ledger and settles the rounds that were running when the
// coordinator stopped: those with an intent are charged, the others abandoned.
func (s *Store) recover() error {
	return s.tx(func(tx *sql.Tx) error {
		s.recovered = nil
		if _, err := checkLedger(tx); err != nil {
			return err
		}
		type open struct {
			id     uint64
			intent []byte
		}
		rows, err := tx.Query(`SELECT round.id, intent.body FROM round LEFT JOIN intent ON intent.round = round.id
			WHERE outcome = '' ORDER BY round.id`)
		if err != nil {
			return err
		}
		var running []open
		for rows.Next() {
			var o open
			if err := rows.Scan(&o.id, &o.intent); err != nil {
				return errors.Join(err, rows.Close())
			}
			running = append(running, o)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		for _, o := range running {
			if o.intent == nil {
				if err := s.settle(tx, o.id, Abandoned, "the coordinator stopped"); err != nil {
					return err
				}
				s.recovered = append(s.recovered, fmt.Sprintf("round %d was running and is abandoned free of charge", o.id))
				continue
			}
			var ev dp.Event
			if err := ev.UnmarshalBinary(o.intent); err != nil {
				return fmt.Errorf("intent of round %d: %w", o.id, err)
			}
			if _, err := s.charge(tx, ev, Note{Reason: "the coordinator stopped in this round"}); err != nil {
				return err
			}
			s.recovered = append(s.recovered, fmt.Sprintf("round %d was running and is charged", o.id))
		}
		return nil
	})
}

// NextRound returns the number that BeginRound will return next.
func (s *Store) NextRound() (uint64, error) {
	var id uint64
	if err := s.db.QueryRow(`SELECT coalesce(max(id), 0) + 1 FROM round`).Scan(&id); err != nil {
		return 0, prefixed(err)
	}
	return id, nil
}
