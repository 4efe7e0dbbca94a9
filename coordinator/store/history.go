package store

import "database/sql"

// historySchema holds what the operator is shown of rounds that are over. Nothing
// follows from it: the ledger and the journal say what was done. It came without a
// version of its own, since a program that does not know it leaves it alone.
const historySchema = `CREATE TABLE IF NOT EXISTS history (round INTEGER PRIMARY KEY, body BLOB NOT NULL);`

// MaxHistory is how many rounds are remembered.
const MaxHistory = 2000

// Remember stores a line about a finished round, replacing an earlier one.
func (s *Store) Remember(round uint64, body []byte) error {
	return s.tx(func(tx *sql.Tx) error {
		if _, err := tx.Exec(`INSERT INTO history (round, body) VALUES ($1, $2) ON CONFLICT (round) DO UPDATE SET body = excluded.body`, round, body); err != nil {
			return err
		}
		_, err := tx.Exec(`DELETE FROM history WHERE round <= (SELECT max(round) FROM history) - $1`, MaxHistory)
		return err
	})
}

// History returns the lines of the last MaxHistory rounds, oldest first.
func (s *Store) History() ([][]byte, error) {
	rows, err := s.db.Query(`SELECT body FROM history ORDER BY round`)
	if err != nil {
		return nil, prefixed(err)
	}
	defer rows.Close()
	var out [][]byte
	for rows.Next() {
		var b []byte
		if err := rows.Scan(&b); err != nil {
			return nil, prefixed(err)
		}
		out = append(out, b)
	}
	return out, ended(rows.Err())
}
