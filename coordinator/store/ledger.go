package store

import (
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/starling-fl/starling/dp"
)

// Note is a comment on a ledger event. The chain covers the event only, from which every guarantee
// in the note can be computed again.
type Note struct {
	At            time.Time `json:"at"`
	Reason        string    `json:"reason,omitempty"` // of a charge
	dp.Guarantees           // after this entry
}

// Entry is one line of the ledger: the hash-chained event, its note, and how the
// round's cohort was drawn, which the event names by its hash.
type Entry struct {
	Seq   uint64 // 0, 1, 2, ... without gaps
	Event dp.Event
	Hash  [32]byte // of the entry before (of the chain's beginning for the first), Seq and Event
	Note
	Cohort dp.Certificate // without the nonce that opens its commitment
}

// Ledger is a verified privacy ledger.
type Ledger struct {
	Task     string
	Private  bool // false: a reproducible run, whose noise is not secret, or one without noise
	Unnoised bool // some round was released without noise
	Entries  []Entry
	Head     [32]byte // hash of the last entry; the chain's beginning if there is none
	// Owed are rounds under way, or cut off with their process, that will be charged.
	Owed []dp.Event
}

// LedgerError says where a ledger is broken; errors.Is makes it an ErrLedger.
type LedgerError struct {
	Seq    uint64
	Reason string
}

func (e *LedgerError) Error() string {
	return fmt.Sprintf("store: the ledger is broken at entry %d: %s", e.Seq, e.Reason)
}

// Is makes every LedgerError an ErrLedger.
func (e *LedgerError) Is(target error) bool { return target == ErrLedger }

// Events returns the events in the form that accountants take.
func (l Ledger) Events() []dp.Event {
	events := make([]dp.Event, len(l.Entries))
	for i, e := range l.Entries {
		events[i] = e.Event
	}
	return events
}

// promise is what a ledger is the ledger of.
type promise struct{ version, job, task, private, delta string }

// promiseVersion 2 hashes all of it; 1, of files that began before, the job alone.
const promiseVersion = "2"

func readPromise(q querier) (p promise, err error) {
	for key, v := range map[string]*string{"job": &p.job, "task": &p.task, "private": &p.private} {
		if *v, err = getMeta(q, key); err != nil {
			return p, err
		}
	}
	switch p.version, err = getMeta(q, "promise"); {
	case errors.Is(err, sql.ErrNoRows):
		return p, nil
	case err != nil:
		return p, err
	case p.version != promiseVersion:
		return p, fmt.Errorf("%w: its beginning has version %q, this program knows 1 and %s", ErrLedger, p.version, promiseVersion)
	}
	p.delta, err = getMeta(q, "delta")
	return p, err
}

// genesis is the hash that the chain begins with.
func (p promise) genesis() [32]byte {
	if p.version == "" {
		return genesisHash([]byte(p.job))
	}
	return genesisHash(fmt.Appendf(nil, "promise %s: job %s, task %q, private %s, delta %s", p.version, p.job, p.task, p.private, p.delta))
}

// readLedger reads the entries and verifies the chain.
func readLedger(q querier) (Ledger, error) {
	var l Ledger
	promise, err := readPromise(q)
	if err != nil {
		return l, err
	}
	l.Head, l.Task, l.Private = promise.genesis(), promise.task, promise.private == "true"
	rows, err := q.Query(`SELECT seq, round, event, note, hash, certificate
		FROM ledger LEFT JOIN round ON round.id = ledger.round ORDER BY seq`)
	if err != nil {
		return l, err
	}
	defer rows.Close()
	for rows.Next() {
		var e Entry
		var round uint64
		var event, hash []byte
		var note string
		var certificate sql.NullString
		if err := rows.Scan(&e.Seq, &round, &event, &note, &hash, &certificate); err != nil {
			return l, err
		}
		at := uint64(len(l.Entries))
		if err := e.Event.UnmarshalBinary(event); err != nil {
			return l, &LedgerError{at, err.Error()}
		}
		if e.Event.Round != round {
			return l, &LedgerError{at, fmt.Sprintf("its event is of round %d, its entry of round %d", e.Event.Round, round)}
		}
		if err := json.Unmarshal([]byte(note), &e.Note); err != nil {
			return l, &LedgerError{at, err.Error()}
		}
		if err := json.Unmarshal([]byte(certificate.String), &e.Cohort); err != nil {
			return l, &LedgerError{at, fmt.Sprintf("its round's sampling certificate: %v", err)}
		}
		if e.Cohort.Hash() != e.Event.Certificate {
			return l, &LedgerError{at, "its event names another sampling certificate"}
		}
		if e.Cohort.Generator != "crypto/rand" {
			l.Private = false // whatever the file says: the chain covers who drew the coins
		}
		if e.Event.Kind == dp.KindUnnoised {
			l.Private, l.Unnoised = false, true
		}
		copy(e.Hash[:], hash)
		l.Entries = append(l.Entries, e)
	}
	if err := rows.Err(); err != nil {
		return l, err
	}
	if l.Head, err = verifyChain(l.Head, l.Entries); err != nil {
		return l, err
	}
	l.Owed, err = owed(q)
	return l, err
}

func owed(q querier) (out []dp.Event, err error) {
	rows, err := q.Query(`SELECT intent.body FROM intent JOIN round ON round.id = intent.round WHERE outcome = '' ORDER BY round.id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var body []byte
		var e dp.Event
		if err := rows.Scan(&body); err != nil {
			return nil, err
		}
		if err := e.UnmarshalBinary(body); err != nil {
			return nil, fmt.Errorf("a round's open charge: %w", err)
		}
		out = append(out, dp.AtMost(e))
	}
	return out, rows.Err()
}

// checkLedger verifies the chain and that the checkpoints agree with it: one
// checkpoint for each entry that paid for one, in order, naming its hash. A
// ledger whose tail was cut off fails here.
func checkLedger(q querier) (Ledger, error) {
	l, err := readLedger(q)
	if err != nil {
		return l, err
	}
	rows, err := q.Query(`SELECT version, round, ledger FROM checkpoint ORDER BY version`)
	if err != nil {
		return l, err
	}
	defer rows.Close()
	var version uint64
	i := 0
	for rows.Next() {
		var v, round uint64
		var hash []byte
		if err := rows.Scan(&v, &round, &hash); err != nil {
			return l, err
		}
		version++
		if v != version {
			return l, &LedgerError{uint64(i), fmt.Sprintf("checkpoint %d is missing", version)}
		}
		for i < len(l.Entries) && l.Entries[i].Event.Kind == dp.KindCharged {
			i++
		}
		if i == len(l.Entries) || l.Entries[i].Event.Round != round || string(hash) != string(l.Entries[i].Hash[:]) {
			return l, &LedgerError{uint64(i), fmt.Sprintf("it does not pay for checkpoint %d of round %d", v, round)}
		}
		i++
	}
	if err := rows.Err(); err != nil {
		return l, err
	}
	for ; i < len(l.Entries); i++ {
		if l.Entries[i].Event.Kind != dp.KindCharged {
			return l, &LedgerError{l.Entries[i].Seq, "its checkpoint is missing"}
		}
	}
	return l, nil
}

// appendEntry charges a round inside a transaction.
func (s *Store) appendEntry(tx *sql.Tx, ev dp.Event, note Note) (Entry, error) {
	e := Entry{Event: ev, Note: note}
	var charged int
	if err := tx.QueryRow(`SELECT count(*) FROM ledger WHERE round = $1`, ev.Round).Scan(&charged); err != nil {
		return e, err
	}
	if charged > 0 {
		return e, fmt.Errorf("%w: round %d", ErrCharged, ev.Round)
	}
	promise, err := readPromise(tx)
	if err != nil {
		return e, err
	}
	if ev.Kind == dp.KindUnnoised && !s.opt.NotPrivate {
		return e, fmt.Errorf("store: round %d has no noise, and this ledger promises some", ev.Round)
	}
	prev := promise.genesis()
	var seq uint64
	var head []byte
	err = tx.QueryRow(`SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1`).Scan(&seq, &head)
	switch {
	case err == nil:
		e.Seq = seq + 1
		copy(prev[:], head)
	case !errors.Is(err, sql.ErrNoRows):
		return e, err
	}
	if e.Hash, err = nextHash(prev, e.Seq, ev); err != nil {
		return e, err
	}
	event, err := ev.MarshalBinary()
	if err != nil {
		return e, err
	}
	e.At = s.opt.Now().UTC().Truncate(time.Second)
	body, err := json.Marshal(e.Note)
	if err != nil {
		return e, err
	}
	_, err = tx.Exec(`INSERT INTO ledger (seq, round, event, note, hash) VALUES ($1, $2, $3, $4, $5)`,
		e.Seq, ev.Round, event, string(body), e.Hash[:])
	s.opt.fault("ledger entry written")
	return e, err
}

// Ledger returns the verified ledger of the open store.
func (s *Store) Ledger() (Ledger, error) {
	l, err := checkLedger(s.db)
	if err != nil {
		return l, prefixed(err)
	}
	return l, nil
}

// ReadLedger reads and verifies the ledger of a folder without becoming its writer: a coordinator
// may be running. The error is ErrNoStore if there is none.
func ReadLedger(dir string) (l Ledger, err error) {
	path, err := placeOf(dir)
	if err != nil {
		return l, err
	}
	if is, err := path.exists(); err != nil {
		return l, err
	} else if !is {
		return l, fmt.Errorf("%w: %s", ErrNoStore, dir)
	}
	db, err := path.open(reading)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.snapshot() // one snapshot for ledger and checkpoints
	if err != nil {
		return l, fmt.Errorf("store: %w", err)
	}
	defer tx.Rollback()
	v, err := getMeta(tx, "schema")
	if err != nil {
		return l, fmt.Errorf("store: %s is not a store of this program: %w", path, errors.Join(err, ErrNoStore))
	}
	// The ledger is the same in all of them. What was spent under an old one stays
	// spent, and must stay readable.
	if v != schemaVersion && v != "3" && v != "2" && v != "1" {
		return l, fmt.Errorf("store: %s has schema %q, this program reads 1 to %s", path, v, schemaVersion)
	}
	if l, err = checkLedger(tx); err != nil {
		return l, prefixed(err)
	}
	return l, nil
}

// HeadString is the head as text, to be printed and kept elsewhere.
func (l Ledger) HeadString() string { return hex.EncodeToString(l.Head[:]) }
