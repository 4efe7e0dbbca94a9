package store

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Rows of the start: who had the rounds begin before the whole population had enrolled, and when the job
// was first served, in seconds of Unix.
const (
	begunKey  = "begun"
	servedKey = "first served"
)

// Begin has the rounds begin with the devices that have enrolled, also after a restart. Those that enrol
// later take part from the next round.
func (f *Fleet) Begin() error {
	return f.acting("begin job", "", func(tx *sql.Tx) error { return setMeta(tx, begunKey, f.actor()) })
}

// Begun returns the operator who began the rounds, or "".
func (s *Store) Begun() (by string, err error) {
	by, err = getMeta(s.db, begunKey)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", prefixed(err)
	}
	return by, nil
}

// FirstServed returns when the job was first served: now, at the first call.
func (s *Store) FirstServed(now time.Time) (time.Time, error) {
	var at int64
	err := s.tx(func(tx *sql.Tx) error {
		text, err := getMeta(tx, servedKey)
		if errors.Is(err, sql.ErrNoRows) {
			at = now.Unix()
			return setMeta(tx, servedKey, strconv.FormatInt(at, 10))
		}
		if err != nil {
			return err
		}
		if at, err = strconv.ParseInt(text, 10, 64); err != nil {
			return fmt.Errorf("when the job was first served: %w", err)
		}
		return nil
	})
	return time.Unix(at, 0), err
}

// Awaited returns the notes of up to most invitations by which devices may still enrol, in the order in
// which they were made, and the number of all of them.
func (s *Store) Awaited(most int) (notes []string, of int, err error) {
	rows, err := s.db.Query(`SELECT note FROM invitation WHERE used < uses AND expires > $1 AND revoked = 0 ORDER BY id`, s.opt.Now().Unix())
	if err != nil {
		return nil, 0, prefixed(err)
	}
	defer rows.Close()
	for rows.Next() {
		var note string
		if err := rows.Scan(&note); err != nil {
			return nil, 0, prefixed(err)
		}
		if of++; note != "" && len(notes) < most {
			notes = append(notes, note)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, 0, prefixed(err)
	}
	return notes, of, nil
}
