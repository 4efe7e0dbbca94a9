package store

import (
	"database/sql"
	"errors"
)

// KeepSources keeps where an owner without them has the job's base and start from, in
// whatever form the caller writes it.
func (s *Store) KeepSources(text string) error { return s.keep("sources", text) }

// ReadSources is what KeepSources kept in a folder's state, "" where nothing was, without
// taking the state over.
func ReadSources(dir string) (text string, err error) {
	p, err := placeOf(dir)
	if err != nil {
		return "", err
	}
	if is, err := p.exists(); err != nil || !is {
		return "", err
	}
	db, err := p.open(reading)
	if err != nil {
		return "", err
	}
	text, err = getMeta(db, "sources")
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return text, ended(errors.Join(err, db.Close()))
}
