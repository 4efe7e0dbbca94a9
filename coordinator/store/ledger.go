package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Kind says what an entry paid for.
type Kind string

// The kinds of entries. All cost the same: what was released, or might have
// been, does not depend on who took part.
const (
	Commit    Kind = "commit" // a checkpoint with the round's updates
	NoiseOnly Kind = "noise"  // a checkpoint with noise alone: the drawn cohort was below its floor
	Charge    Kind = "charge" // no checkpoint: the round failed after unmasking began
)

// Spent is one guarantee as it stands after an entry: a mechanism run once more,
// and what all entries so far come to. The parts of the guarantee are one value.
type Spent struct {
	// SamplingRate and NoiseMultiplier of this round's release.
	SamplingRate    float64 `json:"sampling_rate"`
	NoiseMultiplier float64 `json:"noise_multiplier"`
	// Population the guarantee is stated for.
	Population int `json:"population"`
	// Epsilon at Delta after this entry, an upper bound.
	Epsilon    float64 `json:"epsilon"`
	Delta      float64 `json:"delta"`
	Adjacency  string  `json:"adjacency"`
	Accountant string  `json:"accountant"`
	Sampling   string  `json:"sampling"`
	// Epsilon if every participation is seen: no amplification by sampling.
	EpsilonVisible float64 `json:"epsilon_visible"`
}

// Entry is one line of the ledger.
type Entry struct {
	Seq   uint64    `json:"seq"` // from 1, without gaps
	Round uint64    `json:"round"`
	At    time.Time `json:"at"`
	Kind  Kind      `json:"kind"`
	// Reason of a charge.
	Reason string `json:"reason,omitempty"`
	// Simulated is the guarantee for a larger population, or nil.
	Simulated *Spent `json:"simulated,omitempty"`
	// Delivered is the guarantee for the devices that can really take part; nil
	// in a reproducible run, which is not private.
	Delivered *Spent `json:"delivered,omitempty"`
	// SigmaGrid is the noise's standard deviation in grid units, Dimension the
	// number of noised coordinates, B2 the squared sensitivity in grid units.
	SigmaGrid float64 `json:"sigma_grid"`
	Dimension int     `json:"dimension"`
	B2        int64   `json:"b2"`
	// Certificate is the digest of the round's sampling certificate.
	Certificate string `json:"certificate,omitempty"`

	Prev [32]byte `json:"-"`
	Hash [32]byte `json:"-"`
}

// Ledger is a verified ledger.
type Ledger struct {
	Task    string
	Entries []Entry
	Head    [32]byte // hash of the last entry; zero where there is none
}

// LedgerError says where a ledger breaks; it is ErrLedger.
type LedgerError struct {
	Seq    uint64
	Reason string
}

func (e *LedgerError) Error() string {
	return fmt.Sprintf("store: the ledger is broken at entry %d: %s", e.Seq, e.Reason)
}

// Is makes every LedgerError an ErrLedger.
func (e *LedgerError) Is(target error) bool { return target == ErrLedger }

const ledgerDomain = "starling ledger 1\n"

// link is the chain: SHA-256 over the domain, the hash before and the body as
// it is stored.
func link(prev [32]byte, body []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte(ledgerDomain))
	h.Write(prev[:])
	h.Write(body)
	return [32]byte(h.Sum(nil))
}

func readLedger(q querier) (Ledger, error) {
	var l Ledger
	rows, err := q.Query(`SELECT seq, round, body, prev, hash FROM ledger ORDER BY seq`)
	if err != nil {
		return l, err
	}
	defer rows.Close()
	for rows.Next() {
		var seq, round uint64
		var body string
		var prev, hash []byte
		if err := rows.Scan(&seq, &round, &body, &prev, &hash); err != nil {
			return l, err
		}
		want := uint64(len(l.Entries)) + 1
		if seq != want {
			return l, &LedgerError{want, fmt.Sprintf("it is missing, entry %d follows", seq)}
		}
		if string(prev) != string(l.Head[:]) {
			return l, &LedgerError{seq, "it does not continue the entry before"}
		}
		sum := link(l.Head, []byte(body))
		if string(hash) != string(sum[:]) {
			return l, &LedgerError{seq, "its hash does not fit its content"}
		}
		var e Entry
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			return l, &LedgerError{seq, err.Error()}
		}
		if e.Seq != seq || e.Round != round {
			return l, &LedgerError{seq, fmt.Sprintf("it calls itself entry %d of round %d and stands in round %d", e.Seq, e.Round, round)}
		}
		e.Prev, e.Hash = l.Head, sum
		l.Head = sum
		l.Entries = append(l.Entries, e)
	}
	return l, rows.Err()
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
		for i < len(l.Entries) && l.Entries[i].Kind == Charge {
			i++
		}
		if i == len(l.Entries) || l.Entries[i].Round != round || string(hash) != string(l.Entries[i].Hash[:]) {
			return l, &LedgerError{uint64(i) + 1, fmt.Sprintf("it does not pay for checkpoint %d of round %d", v, round)}
		}
		i++
	}
	if err := rows.Err(); err != nil {
		return l, err
	}
	for ; i < len(l.Entries); i++ {
		if l.Entries[i].Kind != Charge {
			return l, &LedgerError{l.Entries[i].Seq, "its checkpoint is missing"}
		}
	}
	return l, nil
}

// appendEntry charges a round inside a transaction.
func (s *Store) appendEntry(tx *sql.Tx, e Entry) (Entry, error) {
	var charged int
	if err := tx.QueryRow(`SELECT count(*) FROM ledger WHERE round = ?`, e.Round).Scan(&charged); err != nil {
		return e, err
	}
	if charged > 0 {
		return e, fmt.Errorf("%w: round %d", ErrCharged, e.Round)
	}
	var seq uint64
	var head []byte
	err := tx.QueryRow(`SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1`).Scan(&seq, &head)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return e, err
	}
	copy(e.Prev[:], head)
	e.Seq = seq + 1
	e.At = s.opt.Now().UTC().Truncate(time.Second)
	body, err := json.Marshal(e)
	if err != nil {
		return e, err
	}
	e.Hash = link(e.Prev, body)
	_, err = tx.Exec(`INSERT INTO ledger (seq, round, body, prev, hash) VALUES (?, ?, ?, ?, ?)`,
		e.Seq, e.Round, string(body), e.Prev[:], e.Hash[:])
	s.opt.fault("ledger entry written")
	return e, err
}

// Ledger returns the verified ledger of the open store.
func (s *Store) Ledger() (Ledger, error) {
	l, err := checkLedger(s.db)
	l.Task = s.opt.Task
	if err != nil {
		return l, prefixed(err)
	}
	return l, nil
}

// ReadLedger reads and verifies the ledger of a folder without taking it over:
// a coordinator may be running. Where there is none it returns ErrNoStore.
func ReadLedger(dir string) (l Ledger, err error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return l, fmt.Errorf("%w: %s", ErrNoStore, dir)
		}
		return l, fmt.Errorf("store: %w", err)
	}
	db, err := sql.Open("sqlite", dsn(path, "mode=ro&_pragma=busy_timeout(5000)"))
	if err != nil {
		return l, fmt.Errorf("store: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.Begin() // one snapshot for ledger and checkpoints
	if err != nil {
		return l, fmt.Errorf("store: %w", err)
	}
	defer tx.Rollback()
	if v, err := getMeta(tx, "schema"); err != nil || v != schemaVersion {
		return l, fmt.Errorf("store: %s is not a store of this program (schema %q): %w", path, v, errors.Join(err, ErrNoStore))
	}
	task, err := getMeta(tx, "task")
	if err != nil {
		return l, prefixed(err)
	}
	if l, err = checkLedger(tx); err != nil {
		return l, prefixed(err)
	}
	l.Task = task
	return l, nil
}

// HeadString is the head for printing and keeping elsewhere.
func (l Ledger) HeadString() string { return hex.EncodeToString(l.Head[:]) }
