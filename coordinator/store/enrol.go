package store

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/starling-fl/starling/secagg/log"
)

// Errors of enrolment.
var (
	// ErrExcluded: the identity is excluded until it is pardoned.
	ErrExcluded = errors.New("store: the device is excluded")
	// ErrInvitation: the invitation is spent, expired, revoked or unknown.
	ErrInvitation = errors.New("store: the invitation is not good any more")
	// ErrUnknown: there is no such device or invitation.
	ErrUnknown = errors.New("store: there is none of that name")
)

// seenEvery is how exactly it is kept when a device was last seen.
const seenEvery = time.Hour

// Enrol adds an identity to the population and to the log of enrolled keys, from which it is never
// removed; added is false if it was enrolled before. The error is ErrFull beyond
// Options.MaxIdentities, and ErrExcluded for an excluded identity. A new identity uses up one use
// of its invitation, and the error is ErrInvitation if none is left; invitation 0 is the job's own
// secret.
//
// Calls that arrive while others are being written wait for them, and are then written together in
// one transaction: a disk that can do 500 writes a second enrols thousands.
func (s *Store) Enrol(key [32]byte, invitation int64) (added bool, err error) {
	return s.enrolAs(&enrolment{key: key, invitation: invitation})
}

// EnrolIn is Enrol into one pool of a fleet. The error is ErrPool if the identity is in another
// one.
func (s *Store) EnrolIn(key [32]byte, pool string, invitation int64) (added bool, err error) {
	return s.enrolAs(&enrolment{key: key, invitation: invitation, pool: pool})
}

func (s *Store) enrolAs(r *enrolment) (added bool, err error) {
	s.queue.add(r)
	s.enrolling.Lock()
	defer s.enrolling.Unlock()
	if !r.done {
		s.enrol(s.queue.take())
	}
	return r.added && r.err == nil, r.err
}

// An enrolment is one call of Enrol; all but the first two fields belong to who holds
// Store.enrolling.
type enrolment struct {
	key        [32]byte
	invitation int64
	pool       string // of a fleet; "": it is one job's

	added, done bool
	err         error
}

// enrolQueue are those who wait to be enrolled.
type enrolQueue struct {
	mu      sync.Mutex
	waiting []*enrolment // guarded by mu
}

func (q *enrolQueue) add(r *enrolment) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, r)
}

func (q *enrolQueue) take() []*enrolment {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	return all
}

// enrol writes all who wait. What is wrong with one of them is its own; an error of the
// store is everybody's.
func (s *Store) enrol(all []*enrolment) {
	err := s.tx(func(tx *sql.Tx) error {
		var into *appending
		for _, r := range all {
			r.added, r.err = false, nil
			err := s.enrolOne(tx, r, &into)
			switch {
			case errors.Is(err, ErrExcluded), errors.Is(err, ErrFull), errors.Is(err, ErrInvitation), errors.Is(err, ErrPool):
				r.err = err // and nothing of it was written
			case err != nil:
				return err
			}
		}
		return nil
	})
	for _, r := range all {
		r.done = true
		if err != nil {
			r.added, r.err = false, err
		}
	}
}

// enrolOne enrols one; into is the log, opened with the first who is new.
func (s *Store) enrolOne(tx *sql.Tx, r *enrolment, into **appending) error {
	now := s.opt.Now().Unix()
	if err := r.mayJoin(tx); err != nil {
		return err
	}
	var seen int64
	var excluded string
	switch err := tx.QueryRow(`SELECT seen, excluded FROM identity WHERE key = $1`, r.key[:]).Scan(&seen, &excluded); {
	case err == nil && excluded != "":
		return fmt.Errorf("%w: %s", ErrExcluded, excluded)
	case err == nil:
		if now-seen < int64(seenEvery.Seconds()) {
			return r.join(tx)
		}
		_, err := tx.Exec(`UPDATE identity SET seen = $1 WHERE key = $2`, now, r.key[:])
		return errors.Join(err, r.join(tx))
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	if err := s.full(tx); err != nil {
		return err
	}
	if r.invitation != 0 {
		res, err := tx.Exec(`UPDATE invitation SET used = used + 1 WHERE id = $1 AND used < uses AND expires > $2 AND revoked = 0`, r.invitation, now)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, ErrInvitation)
		}
	}
	if _, err := tx.Exec(`INSERT INTO identity (id, key, at, seen, invitation) VALUES (`+next("identity")+`, $1, $2, $3, $4)`, r.key[:], now, now, r.invitation); err != nil {
		return err
	}
	if *into == nil {
		var err error
		if *into, err = appendTo(tx); err != nil {
			return err
		}
	}
	if err := r.join(tx); err != nil {
		return err
	}
	r.added = true
	return (*into).add(log.Enrolment{Key: r.key, At: uint64(max(now, 0))})
}

// full is ErrFull if no more identities may be enrolled. They are numbered 1, 2, ...: the
// last number is how many were ever enrolled, at the cost of one look-up instead of a walk
// over the table. One that was forgotten counts on, so that the limit is stricter, never laxer.
func (s *Store) full(q querier) error {
	var count int
	err := q.QueryRow(`SELECT coalesce(max(id), 0) FROM identity`).Scan(&count)
	if err == nil && count >= s.opt.MaxIdentities {
		err = fmt.Errorf("%w: the limit is %d", ErrFull, s.opt.MaxIdentities)
	}
	return err
}

// Room returns ErrFull if an identity is not enrolled and could not be enrolled now. It is for
// callers that would use up an invitation elsewhere first.
func (s *Store) Room(key [32]byte) error {
	known, err := s.Knows(key)
	if err != nil || known {
		return err
	}
	return ended(s.full(s.db))
}

// Knows reports whether an identity is enrolled.
func (s *Store) Knows(key [32]byte) (bool, error) {
	var n int
	err := s.db.QueryRow(`SELECT count(*) FROM identity WHERE key = $1`, key[:]).Scan(&n)
	return n > 0, ended(err)
}

// InvitationSecret is the secret of an invitation, and its number.
type InvitationSecret struct {
	ID     int64
	Secret []byte // 32 bytes
}

// SecretsFor returns the secrets that an identity may show: that of the invitation by which it
// enrolled or, for a new identity, those of all valid invitations.
func (s *Store) SecretsFor(key [32]byte) ([]InvitationSecret, error) {
	query, args := `SELECT id, secret FROM invitation WHERE used < uses AND expires > $1 AND revoked = 0`, []any{s.opt.Now().Unix()}
	var invitation int64
	switch err := s.db.QueryRow(`SELECT invitation FROM identity WHERE key = $1`, key[:]).Scan(&invitation); {
	case err == nil && invitation == 0:
		return nil, nil
	case err == nil:
		query, args = `SELECT id, secret FROM invitation WHERE id = $1`, []any{invitation}
	case !errors.Is(err, sql.ErrNoRows):
		return nil, prefixed(err)
	}
	rows, err := s.db.Query(query, args...)
	if err != nil {
		return nil, prefixed(err)
	}
	defer rows.Close()
	var out []InvitationSecret
	for rows.Next() {
		var i InvitationSecret
		if err := rows.Scan(&i.ID, &i.Secret); err != nil {
			return nil, prefixed(err)
		}
		out = append(out, i)
	}
	return out, rows.Err()
}

// Strike records that a device misbehaved in a round. If exclude is set the device is excluded from
// sessions and draws until it is pardoned.
func (s *Store) Strike(key [32]byte, round uint64, reason string, exclude bool) error {
	return s.tx(func(tx *sql.Tx) error { return s.strike(tx, key, round, reason, exclude) })
}

func (s *Store) strike(tx *sql.Tx, key [32]byte, round uint64, reason string, out bool) error {
	if _, err := tx.Exec(`INSERT INTO strike (id, key, round, at, reason) VALUES (`+next("strike")+`, $1, $2, $3, $4)`, key[:], round, s.opt.Now().Unix(), plain(reason)); err != nil || !out {
		return err
	}
	return exclude(tx, key, reason)
}

func exclude(tx *sql.Tx, key [32]byte, reason string) error {
	_, err := tx.Exec(`UPDATE identity SET excluded = $1 WHERE key = $2 AND excluded = ''`, plain(reason), key[:])
	return err
}

// NotDrawn returns the identities that no draw includes: excluded ones with the reason, and those
// that have not been seen since the given time with "".
func (s *Store) NotDrawn(since time.Time) (map[[32]byte]string, error) {
	rows, err := s.db.Query(`SELECT key, excluded FROM identity WHERE excluded <> ''
		UNION ALL SELECT key, '' FROM identity WHERE seen < $1`, since.Unix()) // each by its index; who is in both is excluded
	if err != nil {
		return nil, prefixed(err)
	}
	defer rows.Close()
	out := map[[32]byte]string{}
	for rows.Next() {
		var key []byte
		var excluded string
		if err := rows.Scan(&key, &excluded); err != nil {
			return nil, prefixed(err)
		}
		out[[32]byte(key)] = cmp.Or(excluded, out[[32]byte(key)])
	}
	return out, rows.Err()
}

// Leave takes an identity out of the population until it enrols again. It stays in the log of
// enrolled keys, and delta is compared with it for ever.
func (s *Store) Leave(key [32]byte) error {
	return s.tx(func(tx *sql.Tx) error { return forget(tx, key[:]) })
}

// forget marks an identity as not seen at all.
func forget(tx *sql.Tx, key []byte) error {
	_, err := tx.Exec(`UPDATE identity SET seen = 0 WHERE key = $1`, key)
	return err
}

// Strikes returns the number of rounds in which each device was struck since it was pardoned.
func (s *Store) Strikes() (map[[32]byte]int, error) {
	rows, err := s.db.Query(`SELECT key, count(DISTINCT round) FROM strike GROUP BY key`)
	if err != nil {
		return nil, prefixed(err)
	}
	defer rows.Close()
	out := map[[32]byte]int{}
	for rows.Next() {
		var key []byte
		var n int
		if err := rows.Scan(&key, &n); err != nil {
			return nil, prefixed(err)
		}
		out[[32]byte(key)] = n
	}
	return out, rows.Err()
}

// KeepTrace stores what is known about devices whose shards' sums left their range, in whatever
// form the coordinator writes it. Trace returns it, or "".
func (s *Store) KeepTrace(text string) error { return s.keep("trace", text) }

// Trace returns the text that KeepTrace stored.
func (s *Store) Trace() (string, error) { return s.kept("trace") }

// KeepDropouts stores the coordinator's count of devices that drop out, in whatever form it writes
// it. Dropouts returns it, or "".
func (s *Store) KeepDropouts(text string) error { return s.keep("dropouts", text) }

// Dropouts returns the text that KeepDropouts stored.
func (s *Store) Dropouts() (string, error) { return s.kept("dropouts") }

// Check writes a line as durably as a commit, to find out whether commits are possible.
func (s *Store) Check() error { return s.keep("checked", s.opt.Now().UTC().Format(time.RFC3339)) }

func (s *Store) keep(name, text string) error {
	return s.tx(func(tx *sql.Tx) error { return setMeta(tx, name, plain(text)) })
}

func (s *Store) kept(name string) (string, error) {
	text, err := getMeta(s.db, name)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", prefixed(err)
	}
	return text, nil
}
