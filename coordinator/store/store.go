// Package store keeps the coordinator's durable state: the privacy ledger, the journal of rounds, the
// checkpoints and the enrolled identities. It is one SQLite file or, if the folder has a [URLFile],
// a schema of a PostgreSQL database.
//
//	s, err := store.Open("run1", store.Options{})
//	...
//	entry, err := s.Commit(event, note, checkpoint) // ledger, journal and adapter at once
//
// [Open] gives a coordinator its [Store]. [OpenFleet] gives operators a [Fleet], with which they
// list, invite and ban devices beside a running coordinator. [ReadLedger] reads the ledger alone.
//
// What it guarantees, against crashes at any point:
//
//   - A checkpoint and the ledger entry that pays for it are written in one
//     transaction. Everything that is broadcast was committed before.
//   - The intent to unmask is written, with the entry that will be charged, before
//     anything is unmasked; if coins chose the cohort, with the draw itself. Open
//     charges every intent that has no entry: a crash may lose a round, but never its
//     cost. What is committed is checked against the intent.
//   - A round is charged at most once, and its number is never used again.
//   - The ledger is append-only and hash-chained. Open verifies the chain and that it
//     agrees with the checkpoints, and refuses a broken one.
//   - There is one writer. An operating-system lock on the folder refuses a second
//     coordinator; in a database a lease does so until it expires (lease.go). Every
//     transaction also checks a fencing token, in case the lock does not work (network
//     file systems) or a coordinator comes back after its lease expired.
//
// Threat model: the store defends against crashes, accidents and two coordinators. An operator who
// rewrites the whole file rewrites history; to detect that, keep the ledger's head hash somewhere
// else (it is printed, and stands beside each exported checkpoint). The store holds no sum without
// noise, no update, no share and no mask. Where noise cancels between rounds it holds that of the
// last rounds (kept.go): with the adapters it shows those rounds' sums. It does hold the coordinator's signing key, so the folder
// has mode 0700 and its files 0600.
package store

import (
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Errors that callers branch on.
var (
	// ErrLocked: another coordinator has the folder open.
	ErrLocked = errors.New("store: another coordinator is using this folder")
	// ErrFenced: another coordinator has opened the folder since.
	ErrFenced = errors.New("store: another coordinator has taken over this folder")
	// ErrUnreachable: the database cannot be reached. Nothing is wrong with its content.
	ErrUnreachable = errors.New("store: the database cannot be reached")
	// ErrOtherJob: the folder belongs to a job with other constants.
	ErrOtherJob = errors.New("store: the folder belongs to another job")
	// ErrHosted: the folder's job shares a fleet with others. Opened alone, what it spends would be
	// missing from the fleet's ledger.
	ErrHosted = errors.New("store: the folder's job is of a server with several jobs: start that one, without --job")
	// ErrLedger: the ledger is broken, or does not agree with the checkpoints.
	ErrLedger = errors.New("store: the ledger is broken")
	// ErrCharged: the round has been charged already.
	ErrCharged = errors.New("store: the round is already charged")
	// ErrIntent: the charge or release differs from the stored intent.
	ErrIntent = errors.New("store: the event is not the one that was intended")
	// ErrNoStore: there is no store in the folder.
	ErrNoStore = errors.New("store: no coordinator has run in this folder")
	// ErrMode: others than the owner may read or write the state.
	ErrMode = errors.New("store: others can read or change this")
	// ErrRequest: an operator asks for something that its limits, or the state, do not allow.
	ErrRequest = errors.New("store: this cannot be asked for")
	// ErrFull: no more identities may be enrolled.
	ErrFull = errors.New("store: no more devices may be enrolled")
)

// FileName is the name of the database inside the folder.
const FileName = "starling.db"

// Options of Open. Job and Task identify the job; KeepCheckpoints is the number of recent
// checkpoints whose parameters are kept (older rows keep the digest).
type Options struct {
	Task            string
	Job             [32]byte
	Terms           Terms            // the text that Job is the hash of, to say what changed; may be empty
	Hosted          bool             // who is excluded is in the store of its fleet
	Fence           string           // of its fleet's store, where it is hosted
	NotPrivate      bool             // a reproducible run: its ledger says so
	Delta           float64          // of the job's guarantee
	KeepCheckpoints int              // 0: 8
	MaxIdentities   int              // 0: 100000
	Now             func() time.Time // nil: time.Now

	// fault is called at named points between statements: crash tests copy the
	// file there. Set in this package's tests only.
	fault func(point string)
	term  time.Duration // of the lease; 0: LeaseTerm. Likewise
}

// Store is an open store. Its methods may be called from several goroutines;
// each is one transaction.
type Store struct {
	place place
	db    *database
	lock  *folderLock
	fence string
	opt   Options

	stop, lost chan struct{} // of the lease; stop is nil if there is none
	renewing   sync.WaitGroup
	renewed    atomic.Int64 // when the lease was last known to be ours, in Unix nanoseconds

	enrolling sync.Mutex // held by the one that writes for all who wait
	queue     enrolQueue

	// recovered are the rounds that Open charged or closed, for the log.
	recovered []string
}

// Open opens the folder's store, or creates it, verifies the ledger and charges rounds that a crash left
// uncharged.
func Open(dir string, opt Options) (*Store, error) {
	if opt.KeepCheckpoints <= 0 {
		opt.KeepCheckpoints = 8
	}
	if opt.MaxIdentities <= 0 {
		opt.MaxIdentities = 100_000
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.term <= 0 {
		opt.term = LeaseTerm
	}
	if opt.fault == nil {
		opt.fault = func(string) {}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := guard(dir); err != nil {
		return nil, err
	}
	lock, err := lockFolder(filepath.Join(dir, "lock"))
	if errors.Is(err, ErrLocked) {
		time.Sleep(50 * time.Millisecond) // somebody may only have looked: see Serving
		lock, err = lockFolder(filepath.Join(dir, "lock"))
	}
	if err != nil {
		return nil, err
	}
	s := &Store{lock: lock, opt: opt, lost: make(chan struct{})}
	if s.place, err = placeOf(dir); err == nil {
		err = s.open()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open() (err error) {
	if s.db, err = s.place.open(writing); err != nil {
		return err
	}
	var token [16]byte
	if _, err := rand.Read(token[:]); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s.fence = hex.EncodeToString(token[:])
	if err := s.place.prepare(s.db); err != nil {
		return prefixed(err)
	}
	began := time.Now()
	if err := s.begin(); err != nil {
		return err
	}
	if s.db.postgres && !s.opt.Hosted {
		stop := make(chan struct{})
		s.stop = stop
		s.renewed.Store(began.UnixNano())
		s.renewing.Go(func() { s.renew(stop) })
	}
	return s.recover()
}

// Close releases the folder.
func (s *Store) Close() error {
	var err error
	if s.db != nil {
		err = errors.Join(s.giveBack(), s.db.Close())
	}
	return errors.Join(err, s.lock.release())
}

// Recovered lists the rounds that Open settled after a crash, a line each.
func (s *Store) Recovered() []string { return s.recovered }

// tx runs one write transaction after checking the fence.
func (s *Store) tx(f func(*sql.Tx) error) error {
	return s.txUnfenced(func(tx *sql.Tx) error {
		v, err := getMeta(tx, "fence")
		if err != nil {
			return err
		}
		if v != s.fence {
			return ErrFenced
		}
		return f(tx)
	})
}

// txUnfenced does not. f runs again where a database was away before it was committed, so
// that it keeps nothing of an earlier run.
func (s *Store) txUnfenced(f func(*sql.Tx) error) error {
	var err error
	s.db.again(func() error {
		err = s.once(f)
		return err
	})
	if s.db.postgres && away(err) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if err != nil && strings.Contains(err.Error(), "disk is full") { // SQLite's words, which name no path
		return fmt.Errorf("%w: make room for %s", err, s.place)
	}
	return err
}

func (s *Store) once(f func(*sql.Tx) error) error {
	tx, err := s.db.begin()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	var mark string // of this transaction: says whether it was committed where that was not heard
	if err = f(tx); err == nil && s.db.postgres {
		mark = rand.Text()
		err = setMeta(tx, "written", mark)
	}
	if err != nil {
		return prefixed(errors.Join(err, tx.Rollback()))
	}
	s.opt.fault("before commit")
	if err = tx.Commit(); err != nil && s.db.postgres && away(err) {
		if last, e := getMeta(s.db, "written"); e == nil && last == mark {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s.opt.fault("after commit")
	return nil
}

// prefixed adds "store:" to errors of the driver; ours carry it.
func prefixed(err error) error {
	for _, own := range []error{ErrFenced, ErrLeased, ErrUnreachable, ErrOtherJob, ErrLedger, ErrCharged, ErrIntent, ErrFull, ErrExcluded, ErrInvitation, ErrUnknown, ErrLog, ErrRequest, ErrPool, ErrRestored} {
		if errors.Is(err, own) {
			return err
		}
	}
	if away(err) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return fmt.Errorf("store: %w", err)
}

type querier interface {
	QueryRow(query string, args ...any) *sql.Row
	Query(query string, args ...any) (*sql.Rows, error)
}

// Secret returns the job's secret of that name, 32 bytes. The first time it makes it from fresh,
// the caller's randomness.
func (s *Store) Secret(name string, fresh func() ([]byte, error)) ([]byte, error) {
	var out []byte
	err := s.tx(func(tx *sql.Tx) (err error) {
		if out, err = readSecret(tx, name); !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if out, err = fresh(); err != nil {
			return err
		}
		return setMeta(tx, secretKey(name), hex.EncodeToString(out))
	})
	return out, err
}

func secretKey(name string) string { return "secret " + name }

// readSecret is sql.ErrNoRows if no secret of that name was made.
func readSecret(q querier, name string) ([]byte, error) {
	v, err := getMeta(q, secretKey(name))
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(v)
	if err != nil {
		return nil, fmt.Errorf("secret %.40q: not hexadecimal", name) // the error would quote it
	}
	return secret, nil
}

// Enrolled returns all identities in the order of their enrolment. The index of an identity never
// changes.
func (s *Store) Enrolled() ([][32]byte, error) {
	rows, err := s.db.Query(`SELECT key FROM identity ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer rows.Close()
	var keys [][32]byte
	for rows.Next() {
		var b []byte
		if err := rows.Scan(&b); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		keys = append(keys, [32]byte(b))
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return keys, nil
}
