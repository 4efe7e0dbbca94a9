package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
)

// keptSchema holds what later rounds need of released ones where noise cancels between rounds: who
// was drawn, and what the noise added. It came without a version of its own: a program that does
// not know it refuses such jobs by their file and by their ledger's entries.
const keptSchema = `CREATE TABLE IF NOT EXISTS kept (
  version INTEGER PRIMARY KEY REFERENCES checkpoint(version),
  cohort BLOB NOT NULL,
  noise BLOB,
  digest BLOB NOT NULL CHECK (length(digest) = 32)
);`

// Kept holds the data of a released round that later rounds need. With the released adapters Noise shows
// the round's exact sum: it is erased in the transaction of the round that needs it no more.
type Kept struct {
	Version uint64     // of the released adapter; Commit sets it
	Cohort  [][32]byte // identities of those who were drawn
	Noise   []byte     // as core.NextNoise gives it; nil once it is erased

	// Of how many last releases, this one included, noise and cohorts are kept from here on.
	Noises, Cohorts int
}

// digest notices a row that was damaged, or is another version's.
func (k *Kept) digest() [32]byte {
	h := sha256.New()
	h.Write([]byte("starling kept 1\x00"))
	h.Write(binary.BigEndian.AppendUint64(nil, k.Version))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(k.Cohort))))
	for _, id := range k.Cohort {
		h.Write(id[:])
	}
	h.Write(k.Noise)
	return [32]byte(h.Sum(nil))
}

// keepRound writes what a checkpoint's round leaves, and erases what is needed no more.
func (s *Store) keepRound(tx *sql.Tx, version uint64, k *Kept) error {
	if k == nil {
		return nil
	}
	k.Version = version
	if k.Noises < 1 {
		k.Noise = nil
	}
	cohort := make([]byte, 0, 32*len(k.Cohort))
	for _, id := range k.Cohort {
		cohort = append(cohort, id[:]...)
	}
	digest := k.digest()
	if _, err := tx.Exec(`INSERT INTO kept (version, cohort, noise, digest) VALUES ($1, $2, $3, $4)`,
		version, cohort, k.Noise, digest[:]); err != nil {
		return err
	}
	if err := erase(tx, version, k.Noises); err != nil {
		return err
	}
	_, err := tx.Exec(`DELETE FROM kept WHERE version + $1 <= $2`, k.Cohorts, version)
	s.opt.fault("kept noise written")
	return err
}

// erase takes the noise out of all but so many last rows, and their digests with it.
func erase(tx *sql.Tx, version uint64, noises int) error {
	rows, err := readKept(tx, `WHERE noise IS NOT NULL AND version + $1 <= $2`, noises, version)
	if err != nil {
		return err
	}
	for _, old := range rows {
		clear(old.Noise)
		old.Noise = nil
		digest := old.digest()
		if _, err := tx.Exec(`UPDATE kept SET noise = NULL, digest = $1 WHERE version = $2`, digest[:], old.Version); err != nil {
			return err
		}
	}
	return nil
}

func readKept(q querier, where string, args ...any) ([]Kept, error) {
	rows, err := q.Query(`SELECT version, cohort, noise, digest FROM kept `+where+` ORDER BY version DESC`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Kept
	for rows.Next() {
		var k Kept
		var cohort, digest []byte
		if err := rows.Scan(&k.Version, &cohort, &k.Noise, &digest); err != nil {
			return nil, err
		}
		for ; len(cohort) >= 32; cohort = cohort[32:] {
			k.Cohort = append(k.Cohort, [32]byte(cohort))
		}
		if sum := k.digest(); len(cohort) != 0 || string(sum[:]) != string(digest) {
			return nil, fmt.Errorf("what is kept of release %d is damaged: its digest does not fit, and no further noise can be made from it", k.Version)
		}
		out = append(out, k)
	}
	return out, rows.Err()
}

// Kept returns what is stored of the last releases, the last first.
func (s *Store) Kept() ([]Kept, error) {
	out, err := readKept(s.db, "")
	if err != nil {
		return nil, prefixed(err)
	}
	return out, nil
}
