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
	leastKey  = "least start"
)

// Beginning is what an operator's word to begin comes to.
type Beginning struct {
	Enrolled int    `json:"enrolled"` // devices that are not excluded
	Least    int    `json:"least"`    // that a round needs; 0 if the job was never served
	Pause    *Pause `json:"pause"`    // null: it goes on
}

// String says when rounds begin, for the operator.
func (b Beginning) String() string {
	devices := fmt.Sprintf("%d devices have enrolled", b.Enrolled)
	switch {
	case b.Pause != nil:
		return fmt.Sprintf("noted, but the job is paused by %s: no round is drawn until it is resumed", b.Pause.By)
	case b.Least == 0:
		return "noted: rounds begin once the job is served and as many devices have enrolled as a round needs; so far " + devices
	case b.Enrolled < b.Least:
		return fmt.Sprintf("noted: %s and a round needs %d; rounds begin as soon as that many have", devices, b.Least)
	}
	return fmt.Sprintf("%s: while the job is served, rounds begin within ten seconds, as soon as %d of them are connected", devices, b.Least)
}

// Begin has the rounds begin with the devices that have enrolled, also after a restart. Those that enrol
// later take part from the next round. It refuses a job whose rounds have begun.
func (f *Fleet) Begin() (b Beginning, err error) {
	if all, err := f.Hosted(); err != nil {
		return b, err
	} else if len(all) > 0 {
		return b, fmt.Errorf("%w: of several jobs each begins by its own cohort.start and cohort.start_within", ErrRequest)
	}
	err = f.acting("begin job", "", func(tx *sql.Tx) error {
		rounds := 0
		if err := tx.QueryRow(`SELECT count(*) FROM round`).Scan(&rounds); err != nil {
			return err
		}
		if rounds > 0 {
			return fmt.Errorf("%w: the job's rounds have begun: devices that enrol now take part from the next one", ErrRequest)
		}
		return setMeta(tx, begunKey, f.actor())
	})
	if err != nil {
		return b, err
	}
	if text, err := getMeta(f.db, leastKey); err == nil {
		b.Least, _ = strconv.Atoi(text) // ours; 0 says that it is not known
	}
	if b.Pause, err = f.Paused(); err != nil {
		return b, err
	}
	if err := f.db.QueryRow(`SELECT count(*) FROM identity WHERE excluded = ''`).Scan(&b.Enrolled); err != nil {
		return b, prefixed(err)
	}
	return b, nil
}

// KeepLeastStart keeps the number of devices that the first round needs, for operators.
func (s *Store) KeepLeastStart(n int) error {
	return s.tx(func(tx *sql.Tx) error { return setMeta(tx, leastKey, strconv.Itoa(n)) })
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
