package store

import (
	"database/sql"
	"errors"
)

// declinedSchema holds what devices said last when an owner's limit kept them out of a
// round. As with history, nothing follows from it.
const declinedSchema = `CREATE TABLE IF NOT EXISTS declined (
  key BLOB PRIMARY KEY CHECK (length(key) = 32),
  round INTEGER NOT NULL,
  rounds INTEGER NOT NULL,
  code INTEGER NOT NULL
) WITHOUT ROWID;`

// Declined records which devices declined a round, and the code that each gave.
func (s *Store) Declined(round uint64, by map[[32]byte]uint16) error {
	if len(by) == 0 {
		return nil
	}
	return s.tx(func(tx *sql.Tx) error {
		put, err := tx.Prepare(`INSERT INTO declined (key, round, rounds, code) VALUES ($1, $2, 1, $3)
			ON CONFLICT (key) DO UPDATE SET round = excluded.round, rounds = declined.rounds + 1, code = excluded.code`)
		if err != nil {
			return err
		}
		for key, code := range by {
			if _, err := put.Exec(key[:], round, code); err != nil {
				return errors.Join(err, put.Close())
			}
		}
		return put.Close()
	})
}
