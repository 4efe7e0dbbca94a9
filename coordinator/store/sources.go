package store

import (
	"database/sql"
	"errors"
)

// KeepSources stores where an owner without the job's base and start can get them, in whatever form
// the caller writes it.
func (s *Store) KeepSources(text string) error { return s.keep("sources", text) }

// ReadSources returns the text that KeepSources stored in a folder's state, or "", without becoming its writer.
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
