package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// ErrLeased: another coordinator holds the database's lease. It gives the lease back when it ends,
// and loses it LeaseTerm after it last renewed it.
var ErrLeased = errors.New("store: another coordinator holds the lease of this state")

// LeaseTerm is how long a lease holds without being renewed. Its owner tries to renew it five times
// in that time.
const LeaseTerm = 5 * time.Second

// leaseSchema is PostgreSQL's alone: beside SQLite's file the operating system's lock says
// who is alive. By its clock, so that those of the coordinators' machines mean nothing.
//
// The lease says when somebody else may begin, and nothing more: what keeps two from
// writing is the fence, which whoever takes the lease puts in place in the same
// transaction, and which every transaction that writes reads under the same lock.
const leaseSchema = `CREATE TABLE lease (one BIGINT PRIMARY KEY CHECK (one = 1), fence TEXT NOT NULL, until DOUBLE PRECISION NOT NULL);`

const leaseNow = `extract(epoch FROM clock_timestamp())::float8`

// take takes the lease, or says for how long another one's holds. Of a hosted job it is the
// fleet's: who opens one must hold that still.
func (s *Store) take(tx *sql.Tx) error {
	if !s.db.postgres {
		return nil
	}
	if s.opt.Hosted {
		var fence string
		err := tx.QueryRow(`SELECT value FROM "` + s.place.root + `/` + FleetFolder + `".meta WHERE key = 'fence' FOR SHARE`).Scan(&fence)
		if err == nil && fence != s.opt.Fence {
			err = ErrFenced
		}
		return err
	}
	var left float64
	switch err := tx.QueryRow(`SELECT until - ` + leaseNow + ` FROM lease`).Scan(&left); {
	case err == nil && left > 0:
		return fmt.Errorf("%w: for %.1f s, unless it is renewed", ErrLeased, left)
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return err
	}
	_, err := tx.Exec(`INSERT INTO lease (one, fence, until) VALUES (1, $1, `+leaseNow+` + $2)
		ON CONFLICT (one) DO UPDATE SET fence = excluded.fence, until = excluded.until`, s.fence, s.opt.term.Seconds())
	return err
}

// renew keeps the lease until stop is closed, or somebody else has it.
func (s *Store) renew(stop <-chan struct{}) {
	tick := time.NewTicker(s.opt.term / 5)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		began := time.Now()
		// What cannot be reached is asked again: nobody else can take the lease there either.
		res, err := s.db.Exec(`UPDATE lease SET until = `+leaseNow+` + $2 WHERE fence = $1`, s.fence, s.opt.term.Seconds())
		if err != nil {
			continue
		}
		switch n, err := res.RowsAffected(); {
		case err == nil && n == 0:
			close(s.lost)
			return
		case err == nil:
			s.renewed.Store(began.UnixNano())
		}
	}
}

// Holds reports whether no other process can have taken the lease yet: it was renewed within its
// term, or is the lock of a folder, which holds until Close.
func (s *Store) Holds() bool {
	at := s.renewed.Load()
	return at == 0 || time.Since(time.Unix(0, at)) < s.opt.term
}

// Lost is closed when another coordinator has taken the lease: then nothing can be written any
// more.
func (s *Store) Lost() <-chan struct{} { return s.lost }

// Fence is the fencing token that the store is written under, for the stores of the jobs that share
// this fleet.
func (s *Store) Fence() string { return s.fence }

// giveBack ends the lease, so that another one need not wait.
func (s *Store) giveBack() error {
	if s.stop == nil {
		return nil
	}
	close(s.stop)
	s.stop = nil
	s.renewing.Wait()
	_, err := s.db.Exec(`UPDATE lease SET until = 0 WHERE fence = $1`, s.fence)
	return err
}

// AwaitLease returns when nobody holds the lease of a folder's state; at once if the state is not
// in a database. It calls waiting if it has to wait. While it waits it tells the lease's holder that
// another coordinator stands by, as long as fit says that this one could serve (see StandsBy). Another
// process may still be faster: then Open returns ErrLeased.
func AwaitLease(ctx context.Context, dir string, fit func() bool, waiting func()) error {
	p, err := placeOf(dir)
	if err != nil || p.server == "" {
		return err
	}
	tick := time.NewTicker(LeaseTerm / 10)
	defer tick.Stop()
	for said := false; ; {
		alone, err := p.held()
		fleets, other := p.below(FleetFolder).held()
		if err = errors.Join(err, other); err != nil || !alone && !fleets {
			return err
		}
		if !said {
			said = true
			waiting()
		}
		if fit() {
			of := p
			if fleets {
				of = p.below(FleetFolder)
			}
			if err := of.standBy(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// standBy notes that a coordinator waits for the lease. It needs no fence: the row says nothing else.
func (p place) standBy() error {
	db, err := p.open(writing)
	if err != nil {
		return err
	}
	_, err = db.Exec(`INSERT INTO meta (key, value) VALUES ('standby', ` + leaseNow + `::text)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value`)
	return ended(errors.Join(err, db.Close()))
}

// StandsBy reports whether another coordinator waited for this lease within the last LeaseTerm and could
// serve. A folder's lock is no lease: then nobody can take over.
func (s *Store) StandsBy() bool {
	if !s.db.postgres {
		return false
	}
	var is bool
	err := s.db.QueryRow(`SELECT `+leaseNow+` - value::float8 < $1 FROM meta WHERE key = 'standby'`, LeaseTerm.Seconds()).Scan(&is)
	return err == nil && is
}

// Serving reports whether a server is running that shares this folder's fleet among its jobs. The
// store's states of jobs are the last known ones, also after the server was killed.
func Serving(dir string) (bool, error) {
	p, err := placeOf(dir)
	if err != nil {
		return false, err
	}
	if p = p.below(FleetFolder); p.server != "" {
		return p.held()
	}
	lock, err := lockFolder(filepath.Join(p.dir, "lock"))
	switch {
	case err == nil:
		return false, lock.release()
	case errors.Is(err, fs.ErrNotExist): // no server has run here
		return false, nil
	case errors.Is(err, ErrLocked):
		return true, nil
	}
	return false, err
}

// held reports whether somebody holds the lease.
func (p place) held() (is bool, err error) {
	db, err := p.open(reading)
	if err != nil {
		return false, err
	}
	if is, err = db.made(); err == nil && is {
		err = db.QueryRow(`SELECT count(*) > 0 FROM lease WHERE until > ` + leaseNow).Scan(&is)
	}
	return is, ended(errors.Join(err, db.Close()))
}
