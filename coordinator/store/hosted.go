package store

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// FleetFolder is the folder, inside that of a server with several jobs, of the store of their
// fleet: identities, strikes, invitations and operators. Each job has rounds, ledger and
// checkpoints in a folder of its own.
const FleetFolder = "fleet"

// hostedSchema holds the jobs of a fleet, and what they spent: see spending.go.
const hostedSchema = `
CREATE TABLE IF NOT EXISTS hosted (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  folder TEXT NOT NULL UNIQUE,
  pool TEXT NOT NULL,
  priority INTEGER NOT NULL,
  file BLOB NOT NULL,
  want TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS member (
  key BLOB PRIMARY KEY CHECK (length(key) = 32),
  pool TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spending (
  seq INTEGER PRIMARY KEY,
  body BLOB NOT NULL,
  hash BLOB NOT NULL CHECK (length(hash) = 32)
);
CREATE TRIGGER IF NOT EXISTS spending_update BEFORE UPDATE ON spending BEGIN SELECT RAISE(ABORT, 'spendings are append-only'); END;
CREATE TRIGGER IF NOT EXISTS spending_delete BEFORE DELETE ON spending BEGIN SELECT RAISE(ABORT, 'spendings are append-only'); END;
`

// Want is an operator's order for a job; State is the job's state.
type (
	// Want is an operator's order for a job.
	Want string
	// State is the state of a job.
	State string
)

// What operators want of a job.
const (
	WantRun     Want = "run"
	WantPause   Want = "pause"
	WantStop    Want = "stop"
	WantArchive Want = "archive"
)

// The states of a job.
const (
	StateQueued   State = "queued" // for a place among those that are open
	StateRunning  State = "running"
	StatePaused   State = "paused"
	StateFinished State = "finished" // its rounds are made, or its budget is spent
	StateStopped  State = "stopped"
	StateFailed   State = "failed"   // it cannot go on; resume tries again
	StateArchived State = "archived" // closed for good; what it spent counts on
)

// States lists all states of a job.
func States() []State {
	return []State{StateQueued, StateRunning, StatePaused, StateFinished, StateStopped, StateFailed, StateArchived}
}

// Over reports whether a job makes no more rounds unless an operator asks for them.
func (s State) Over() bool {
	return s == StateFinished || s == StateStopped || s == StateFailed || s == StateArchived
}

// Hosted is one job of a fleet.
type Hosted struct {
	Name string `json:"name"`
	// Folder is its path below the server's folder; "." is that folder itself, of a server that was
	// begun with one job.
	Folder string `json:"folder"`
	// Pool names the job's pool of identities: an identity enrols in one pool alone, so that jobs of different
	// pools have no device in common.
	Pool     string `json:"pool"`
	Priority int    `json:"priority"`
	File     []byte `json:"-"` // the job file: it may hold the enrolment secret
	Want     Want   `json:"want"`
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"`
	// Paused says who paused it, and why; nil of one that is not, or that an older version paused.
	Paused    *Pause    `json:"paused,omitempty"`
	Submitted time.Time `json:"submitted"`
}

// Limits of hosted jobs.
const (
	MaxHosted     = 1000     // jobs ever submitted
	MaxHostedFile = 64 << 10 // bytes of a job file
	MaxPriority   = 1000
	DefaultPool   = "fleet" // the pool of a job that names none
)

// ErrPool: the identity is enrolled in another pool of the fleet.
var ErrPool = errors.New("store: the device is enrolled in another pool of this fleet")

var hostedName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// OpenShared opens the store of the fleet in a server's folder, or creates it: if one job has run
// in that folder, with the devices, invitations and operators of that job.
func OpenShared(dir string) (*Store, error) {
	sum := sha256.Sum256([]byte("starling/1 fleet"))
	shared := filepath.Join(dir, FleetFolder)
	opt := Options{Task: FleetFolder, Job: sum, MaxIdentities: 10_000_000, NotPrivate: true}
	p, err := placeOf(dir)
	if err != nil {
		return nil, err
	}
	is, err := p.below(FleetFolder).exists()
	if err != nil {
		return nil, err
	}
	alone := filepath.Join(dir, FileName)
	if was, err := p.exists(); err != nil {
		return nil, err
	} else if is || !was {
		return Open(shared, opt)
	}
	if p.server != "" {
		return nil, fmt.Errorf("%w: %s holds the job of a server of one, and only a folder's job can be taken over: give the server of several another schema", ErrRequest, p)
	}
	// Nobody may change what is copied meanwhile.
	lock, err := lockFolder(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("%w: stop serve there first", err)
	}
	defer func() { _ = lock.release() }()
	f, err := OpenFleet(dir) // of this schema, with the tables that are added since
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, prefixed(err)
	}
	// Under another name until it is whole: a crash in between begins again.
	half := shared + ".new"
	if err := os.RemoveAll(half); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s, err := Open(half, opt)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.takeOver(alone), s.Close()); err != nil {
		return nil, err
	}
	if err := os.Rename(half, shared); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return Open(shared, opt)
}

// IsShared reports whether a folder is that of a server with several jobs over one fleet.
func IsShared(dir string) (bool, error) {
	p, err := placeOf(dir)
	if err != nil {
		return false, err
	}
	return p.below(FleetFolder).exists()
}

// takeOver copies what is a fleet's from the store of one job.
func (s *Store) takeOver(path string) error {
	if _, err := s.db.Exec(`ATTACH $1 AS alone`, dsn(path, "mode=ro")); err != nil {
		return prefixed(err)
	}
	err := s.tx(func(tx *sql.Tx) error {
		for _, q := range []string{
			`INSERT INTO identity (id, key, at, seen, invitation, excluded) SELECT id, key, at, seen, invitation, excluded FROM alone.identity`,
			`INSERT INTO member (key, pool) SELECT key, '` + DefaultPool + `' FROM alone.identity`,
			`INSERT INTO strike (id, key, round, at, reason) SELECT id, key, round, at, reason FROM alone.strike`,
			`INSERT INTO invitation (id, secret, note, uses, used, expires, revoked, at)
				SELECT id, secret, note, uses, used, expires, revoked, at FROM alone.invitation`,
			`INSERT INTO operator (id, name, role, hash, at, expires, revoked) SELECT id, name, role, hash, at, expires, revoked FROM alone.operator`,
			`INSERT INTO act (seq, body, hash) SELECT seq, body, hash FROM alone.act`,
			`INSERT OR REPLACE INTO meta (key, value) SELECT key, value FROM alone.meta WHERE key IN ('secret admin', 'secret enrolment')`,
		} {
			if _, err := tx.Exec(q); err != nil {
				return err
			}
		}
		return completeLog(tx)
	})
	_, detached := s.db.Exec(`DETACH alone`)
	return errors.Join(err, ended(detached))
}

// Submit adds a job to the fleet. The error is ErrRequest if its name is taken or a field is out of
// range.
func (f *Fleet) Submit(j Hosted) error {
	if j.Pool == "" {
		j.Pool = DefaultPool
	}
	switch {
	case !hostedName.MatchString(j.Name):
		return fmt.Errorf("%w: the job's name %.70q: want 1 to 40 of a-z, 0-9 and -, the first no -", ErrRequest, j.Name)
	case !hostedName.MatchString(j.Pool):
		return fmt.Errorf("%w: the pool %.70q: want 1 to 40 of a-z, 0-9 and -, the first no -", ErrRequest, j.Pool)
	case j.Priority < -MaxPriority || j.Priority > MaxPriority:
		return fmt.Errorf("%w: a priority of %d, want -%d..%d", ErrRequest, j.Priority, MaxPriority, MaxPriority)
	case len(j.File) == 0 || len(j.File) > MaxHostedFile:
		return fmt.Errorf("%w: a job file of %d bytes, want 1..%d", ErrRequest, len(j.File), MaxHostedFile)
	}
	if j.Folder == "" {
		j.Folder = "jobs/" + j.Name
	}
	return f.acting("submit job", fmt.Sprintf("%s, pool %s, priority %d", j.Name, j.Pool, j.Priority), func(tx *sql.Tx) error {
		var all, taken int
		if err := tx.QueryRow(`SELECT count(*), count(*) FILTER (WHERE name = $1 OR folder = $2) FROM hosted`, j.Name, j.Folder).Scan(&all, &taken); err != nil {
			return err
		}
		if taken > 0 {
			return fmt.Errorf("%w: there is a job %q already, and its ledger stays its own: take another name", ErrRequest, j.Name)
		}
		if all >= MaxHosted {
			return fmt.Errorf("%w: %d jobs were submitted, limit %d", ErrFull, all, MaxHosted)
		}
		if j.Folder == "." && j.Pool != DefaultPool { // what it spent is of the devices that came with the folder
			if all > 0 {
				return fmt.Errorf("%w: others were submitted before the job that ran in the folder: it is of the pool %s, as its devices are", ErrRequest, DefaultPool)
			}
			if _, err := tx.Exec(`UPDATE member SET pool = $1`, j.Pool); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`INSERT INTO hosted (id, name, folder, pool, priority, file, want, state, at) VALUES (`+next("hosted")+`, $1, $2, $3, $4, $5, $6, $7, $8)`,
			j.Name, j.Folder, j.Pool, j.Priority, j.File, WantRun, StateQueued, f.now().Unix())
		return err
	})
}

// PausedBy says who has paused a job, and why: "paused by Ada: a new phone"; "" if nobody has.
func (j Hosted) PausedBy() string {
	switch {
	case j.Want != WantPause:
		return ""
	case j.Paused == nil:
		return "paused by an operator"
	}
	return "paused by " + j.Paused.String()
}

// Hosted lists the fleet's jobs, the first submitted first.
func (f *Fleet) Hosted() ([]Hosted, error) { return hosted(f.db) }

// Hosted lists the fleet's jobs, the first submitted first.
func (s *Store) Hosted() ([]Hosted, error) { return hosted(s.db) }

func hosted(q querier) ([]Hosted, error) {
	rows, err := q.Query(`SELECT name, folder, pool, priority, file, want, state, reason, at FROM hosted ORDER BY id`)
	if err != nil {
		return nil, prefixed(err)
	}
	defer rows.Close()
	out := []Hosted{}
	for rows.Next() {
		var j Hosted
		var at int64
		if err := rows.Scan(&j.Name, &j.Folder, &j.Pool, &j.Priority, &j.File, &j.Want, &j.State, &j.Reason, &at); err != nil {
			return nil, prefixed(err)
		}
		j.Submitted = time.Unix(at, 0).UTC()
		out = append(out, j)
	}
	if err := rows.Err(); err != nil {
		return nil, ended(err)
	}
	for i, j := range out {
		if j.Want == WantPause {
			if out[i].Paused, err = paused(q, pauseKeyOf(j.Name)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// Steer sets what is wanted of a job from now on: WantRun resumes one that is paused or has failed.
// The reason is recorded with the act. The error is ErrRequest if the job's state does not allow
// it.
func (f *Fleet) Steer(name string, want Want, reason string) error {
	act := map[Want]string{WantRun: "resume job", WantPause: "pause job", WantStop: "stop job", WantArchive: "archive job"}[want]
	if act == "" {
		return fmt.Errorf("%w: %.40q of a job: want run, pause, stop or archive", ErrRequest, want)
	}
	if len(reason) > MaxNote {
		return fmt.Errorf("%w: a reason of %d bytes, limit %d", ErrRequest, len(reason), MaxNote)
	}
	subject := name
	if reason != "" {
		subject += ": " + reason
	}
	return f.acting(act, subject, func(tx *sql.Tx) error {
		var now Want
		var state State
		err := tx.QueryRow(`SELECT want, state FROM hosted WHERE name = $1`, name).Scan(&now, &state)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: job %.70q", ErrUnknown, name)
		}
		if err != nil {
			return err
		}
		allowed := false
		switch over := state.Over() || now == WantStop || now == WantArchive; want {
		case WantRun:
			allowed = !over || state == StateFailed && now != WantArchive
		case WantPause, WantStop:
			allowed = !over || want == WantStop && state == StateFailed
		case WantArchive:
			allowed = state.Over()
		}
		if !allowed {
			return fmt.Errorf("%w: job %q is %s (asked to %s): it cannot be asked to %s", ErrRequest, name, state, now, want)
		}
		if want == WantRun && state == StateFailed {
			state = StateQueued
		}
		if want == WantPause {
			if err := f.pause(tx, pauseKeyOf(name), reason); err != nil {
				return err
			}
		}
		_, err = tx.Exec(`UPDATE hosted SET want = $1, state = $2 WHERE name = $3`, want, state, name)
		return err
	})
}

// SetState stores the state of a job.
func (s *Store) SetState(name string, state State, reason string) error {
	return s.tx(func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE hosted SET state = $1, reason = $2 WHERE name = $3`, state, plain(reason[:min(len(reason), 1000)]), name)
		return err
	})
}

// mayJoin refuses an identity that is in another pool of the fleet.
func (r *enrolment) mayJoin(tx *sql.Tx) error {
	if r.pool == "" {
		return nil
	}
	var in string
	err := tx.QueryRow(`SELECT pool FROM member WHERE key = $1`, r.key[:]).Scan(&in)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && in == r.pool:
		return nil
	case err == nil:
		return ErrPool // which one is nobody's business
	}
	return err
}

// join puts it into its pool.
func (r *enrolment) join(tx *sql.Tx) error {
	if r.pool == "" {
		return nil
	}
	_, err := tx.Exec(`INSERT INTO member (key, pool) VALUES ($1, $2) ON CONFLICT DO NOTHING`, r.key[:], r.pool)
	return err
}

// StrikeIn is Strike for one job of a fleet. It returns the number of rounds, of all jobs, in which
// the device has misbehaved since it was last pardoned. The device is excluded if that number
// reaches most, or if the fault is proven.
func (s *Store) StrikeIn(job string, key [32]byte, round uint64, reason string, proven bool, most int) (strikes int, excluded bool, err error) {
	reason = job + ": " + reason
	err = s.tx(func(tx *sql.Tx) error {
		var id uint64
		if err := tx.QueryRow(`SELECT id FROM hosted WHERE name = $1`, job).Scan(&id); err != nil {
			return err
		}
		// Rounds of different jobs may have one number.
		if err := s.strike(tx, key, id<<32|round&(1<<32-1), reason, false); err != nil {
			return err
		}
		if err := tx.QueryRow(`SELECT count(DISTINCT round) FROM strike WHERE key = $1`, key[:]).Scan(&strikes); err != nil {
			return err
		}
		if excluded = proven || strikes >= most; !excluded {
			return nil
		}
		return exclude(tx, key, reason)
	})
	return strikes, excluded, err
}

// Members lists the identities of each pool, so that anybody can see that two pools have none in
// common.
func (f *Fleet) Members() (map[string][][32]byte, error) {
	rows, err := f.db.Query(`SELECT key, pool FROM member ORDER BY key`)
	if err != nil {
		return nil, prefixed(err)
	}
	defer rows.Close()
	out := map[string][][32]byte{}
	for rows.Next() {
		var key []byte
		var in string
		if err := rows.Scan(&key, &in); err != nil {
			return nil, prefixed(err)
		}
		out[in] = append(out[in], [32]byte(key))
	}
	for _, keys := range out {
		slices.SortFunc(keys, func(a, b [32]byte) int { return slices.Compare(a[:], b[:]) })
	}
	return out, ended(rows.Err())
}
