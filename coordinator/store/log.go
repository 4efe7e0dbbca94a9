package store

import (
	"database/sql"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/starling-fl/starling/secagg/log"
)

// ErrLog is a log of enrolled keys that is not whole.
var ErrLog = errors.New("store: the log of enrolled keys is broken")

// logSchema holds the log of enrolled keys: its leaves, and the hashes of all complete
// subtrees by tlog.StoredHashIndex. A folder of an older program has none of it, and one
// that an older program has run in since lacks some leaves: Open appends what is missing.
const logSchema = `
CREATE TABLE IF NOT EXISTS log_leaf (
  leaf INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE CHECK (length(key) = 32),
  at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS log_hash (id INTEGER PRIMARY KEY, hash BLOB NOT NULL CHECK (length(hash) = 32));
CREATE TRIGGER IF NOT EXISTS log_leaf_update BEFORE UPDATE ON log_leaf BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER IF NOT EXISTS log_leaf_delete BEFORE DELETE ON log_leaf BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER IF NOT EXISTS log_hash_update BEFORE UPDATE ON log_hash BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER IF NOT EXISTS log_hash_delete BEFORE DELETE ON log_hash BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
`

// logReader reads the hashes of a log that are stored.
type logReader struct{ q querier }

// mostAsked is how many hashes one statement asks for.
const mostAsked = 256

func (r logReader) ReadHashes(indexes []int64) ([]log.Hash, error) {
	out := make([]log.Hash, len(indexes))
	for begin := 0; begin < len(indexes); begin += mostAsked {
		if err := r.read(indexes[begin:min(begin+mostAsked, len(indexes))], out[begin:]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// read yields the hashes of some indexes, each of which is asked for once.
func (r logReader) read(indexes []int64, out []log.Hash) error {
	if len(indexes) == 0 {
		return nil
	}
	args, place := make([]any, len(indexes)), make(map[int64]int, len(indexes))
	for i, index := range indexes {
		args[i], place[index] = index, i
	}
	rows, err := r.q.Query(`SELECT id, hash FROM log_hash WHERE id IN (`+holders(len(indexes))+`)`, args...)
	if err != nil {
		return prefixed(err)
	}
	defer rows.Close()
	found := 0
	for rows.Next() {
		var id int64
		var hash []byte
		if err := rows.Scan(&id, &hash); err != nil {
			return prefixed(err)
		}
		copy(out[place[id]][:], hash)
		found++
	}
	if err := rows.Err(); err != nil {
		return prefixed(err)
	}
	if found != len(indexes) {
		return fmt.Errorf("%w: %d of %d hashes are missing", ErrLog, len(indexes)-found, len(indexes))
	}
	return nil
}

// logSize is the number of leaves, by the last hash.
func logSize(q querier) (int64, error) {
	var stored int64
	if err := q.QueryRow(`SELECT coalesce(max(id) + 1, 0) FROM log_hash`).Scan(&stored); err != nil {
		return 0, err
	}
	return log.Sizes(stored), nil
}

// appending adds leaves to the log within one transaction.
type appending struct {
	size         int64
	stored       int64
	fresh        map[int64]log.Hash // of this transaction, not asked of the table again
	reader       logReader
	leaf, hashed *sql.Stmt
}

func appendTo(tx *sql.Tx) (*appending, error) {
	size, err := logSize(tx)
	if err != nil {
		return nil, err
	}
	a := &appending{size: size, stored: tlog.StoredHashCount(size), fresh: map[int64]log.Hash{}, reader: logReader{tx}}
	if a.leaf, err = tx.Prepare(`INSERT INTO log_leaf (leaf, key, at) VALUES ($1, $2, $3)`); err != nil {
		return nil, err
	}
	a.hashed, err = tx.Prepare(`INSERT INTO log_hash (id, hash) VALUES ($1, $2)`)
	return a, err
}

// ReadHashes reads those of the transaction too.
func (a *appending) ReadHashes(indexes []int64) ([]log.Hash, error) {
	out := make([]log.Hash, len(indexes))
	var ask []int64
	var at []int
	for i, index := range indexes {
		if h, ok := a.fresh[index]; ok {
			out[i] = h
		} else {
			ask, at = append(ask, index), append(at, i)
		}
	}
	got, err := a.reader.ReadHashes(ask)
	for i, h := range got {
		out[at[i]], a.fresh[ask[i]] = h, h
	}
	return out, err
}

func (a *appending) add(e log.Enrolment) error {
	h, err := e.Hash()
	if err != nil {
		return err
	}
	hashes, err := tlog.StoredHashesForRecordHash(a.size, h, a)
	if err != nil {
		return fmt.Errorf("leaf %d: %w", a.size, err)
	}
	if _, err := a.leaf.Exec(a.size, e.Key[:], int64(e.At)); err != nil {
		return err
	}
	for _, h := range hashes {
		if _, err := a.hashed.Exec(a.stored, h[:]); err != nil {
			return err
		}
		a.fresh[a.stored] = h
		a.stored++
	}
	a.size++
	return nil
}

// completeLog appends the identities that are in no log yet, in the order of their
// enrolment, and refuses a log that does not have as many leaves as its hashes say.
func completeLog(tx *sql.Tx) error {
	var leaves, last, identities int64
	if err := tx.QueryRow(`SELECT count(*), coalesce(max(leaf) + 1, 0) FROM log_leaf`).Scan(&leaves, &last); err != nil {
		return err
	}
	size, err := logSize(tx)
	if err != nil {
		return err
	}
	var stored int64
	if err := tx.QueryRow(`SELECT count(*) FROM log_hash`).Scan(&stored); err != nil {
		return err
	}
	if leaves != size || last != size || stored != tlog.StoredHashCount(size) {
		return fmt.Errorf("%w: %d leaves, the last of them %d, and %d hashes", ErrLog, leaves, last-1, stored)
	}
	if err := tx.QueryRow(`SELECT count(*) FROM identity`).Scan(&identities); err != nil || identities == leaves {
		return err
	}
	rows, err := tx.Query(`SELECT key, at FROM identity WHERE key NOT IN (SELECT key FROM log_leaf) ORDER BY id`)
	if err != nil {
		return err
	}
	var missing []log.Enrolment
	for rows.Next() {
		var key []byte
		var at int64
		if err := rows.Scan(&key, &at); err != nil {
			return errors.Join(err, rows.Close())
		}
		missing = append(missing, log.Enrolment{Key: [32]byte(key), At: uint64(max(at, 0))})
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	a, err := appendTo(tx)
	if err != nil {
		return err
	}
	for _, e := range missing {
		if err := a.add(e); err != nil {
			return err
		}
	}
	return nil
}

// LogHead returns the head of the log of enrolled keys.
func (s *Store) LogHead() (log.Head, error) {
	size, err := logSize(s.db)
	if err != nil {
		return log.Head{}, prefixed(err)
	}
	return log.HeadOf(size, logReader{s.db})
}

// ProveConsistency proves that the log with size leaves extends the one with from leaves.
func (s *Store) ProveConsistency(from, size int64) ([]log.Hash, error) {
	return log.ProveConsistency(from, size, logReader{s.db})
}

// ProveMembers proves that keys are in the log of size leaves, and since when. The error wraps
// ErrUnknown if one is not.
func (s *Store) ProveMembers(size int64, keys [][32]byte) (*log.Members, error) {
	m := &log.Members{Leaves: make([]int64, len(keys)), At: make([]uint64, len(keys))}
	for begin := 0; begin < len(keys); begin += mostAsked {
		end := min(begin+mostAsked, len(keys))
		if err := s.leaves(keys[begin:end], m.Leaves[begin:end], m.At[begin:end]); err != nil {
			return nil, err
		}
	}
	return m, m.Prove(size, keys, logReader{s.db})
}

// leaves yields where keys are in the log and since when, in one statement: a cohort of
// 10,000 is asked for between two turns.
func (s *Store) leaves(keys [][32]byte, leaf []int64, at []uint64) error {
	args, place := make([]any, len(keys)), make(map[[32]byte][]int, len(keys))
	for i, key := range keys {
		args[i], place[key] = key[:], append(place[key], i)
	}
	rows, err := s.db.Query(`SELECT key, leaf, at FROM log_leaf WHERE key IN (`+holders(len(keys))+`)`, args...)
	if err != nil {
		return prefixed(err)
	}
	defer rows.Close()
	for rows.Next() {
		var key []byte
		var n, since int64
		if err := rows.Scan(&key, &n, &since); err != nil {
			return prefixed(err)
		}
		for _, i := range place[[32]byte(key)] {
			leaf[i], at[i] = n, uint64(since)
		}
		delete(place, [32]byte(key))
	}
	if err := rows.Err(); err != nil {
		return prefixed(err)
	}
	for _, key := range keys {
		if _, missing := place[key]; missing {
			return fmt.Errorf("%w: %x is not in the log", ErrUnknown, key[:8])
		}
	}
	return nil
}
