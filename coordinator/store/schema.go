package store

import (
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
)

// schemaVersion 4 knows who was seen, excluded and invited, and hashes what the
// ledger promises into its beginning. 3 has certificates whose roll is keyed by
// their nonce, and intents that are written with the draw; its tables are those of 2.
const schemaVersion = "4"

// fleetSchema is what 4 adds to the tables of 3.
const fleetSchema = `
ALTER TABLE identity ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
ALTER TABLE identity ADD COLUMN invitation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE identity ADD COLUMN excluded TEXT NOT NULL DEFAULT '';
CREATE INDEX identity_excluded ON identity (key) WHERE excluded <> '';
CREATE TABLE strike (
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL CHECK (length(key) = 32),
  round INTEGER NOT NULL,
  at INTEGER NOT NULL,
  reason TEXT NOT NULL
);
CREATE TABLE invitation (
  id INTEGER PRIMARY KEY,
  secret BLOB NOT NULL UNIQUE CHECK (length(secret) = 32),
  note TEXT NOT NULL,
  uses INTEGER NOT NULL CHECK (uses > 0),
  used INTEGER NOT NULL DEFAULT 0,
  expires INTEGER NOT NULL,
  revoked INTEGER NOT NULL DEFAULT 0,
  at INTEGER NOT NULL
);
UPDATE identity SET seen = at;
`

// seenSchema is for draws: who was not seen for long is found without a look at all who were, and
// read from the index alone. The rows stand anywhere in the table, and each would cost ten times
// as much. Before, the index had no keys.
const seenSchema = `
DROP INDEX IF EXISTS identity_seen;
CREATE INDEX IF NOT EXISTS identity_by_seen ON identity (seen, key);
`

const schema = `
CREATE TABLE identity (
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE CHECK (length(key) = 32),
  at INTEGER NOT NULL
);
CREATE TABLE round (
  id INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  certificate TEXT NOT NULL,
  opening BLOB NOT NULL,
  at INTEGER NOT NULL,
  outcome TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT ''
);
CREATE TABLE journal (
  id INTEGER PRIMARY KEY,
  round INTEGER NOT NULL REFERENCES round(id),
  at INTEGER NOT NULL,
  state TEXT NOT NULL,
  detail TEXT NOT NULL
);
CREATE TABLE survivors (
  round INTEGER NOT NULL REFERENCES round(id),
  shard INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (round, shard)
) WITHOUT ROWID;
CREATE TABLE intent (round INTEGER PRIMARY KEY REFERENCES round(id), body BLOB NOT NULL);
CREATE TABLE ledger (
  seq INTEGER PRIMARY KEY,
  round INTEGER NOT NULL UNIQUE REFERENCES round(id),
  event BLOB NOT NULL,
  note TEXT NOT NULL,
  hash BLOB NOT NULL CHECK (length(hash) = 32)
);
CREATE TABLE checkpoint (
  version INTEGER PRIMARY KEY,
  round INTEGER NOT NULL UNIQUE REFERENCES ledger(round),
  ledger BLOB NOT NULL,
  adapter BLOB,
  optimizer BLOB,
  clip_norm REAL NOT NULL,
  digest BLOB NOT NULL CHECK (length(digest) = 32)
);
CREATE TRIGGER ledger_update BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_delete BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER journal_update BEFORE UPDATE ON journal BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER journal_delete BEFORE DELETE ON journal BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
`

// begin makes or checks the schema and takes the fence.
func (s *Store) begin() error {
	return s.txUnfenced(func(tx *sql.Tx) error {
		if err := s.take(tx); err != nil {
			return err
		}
		var known int
		if err := tx.QueryRow(`SELECT count(*) FROM meta`).Scan(&known); err != nil {
			return err
		}
		if err := checkRestored(tx); err != nil {
			return err
		}
		if known == 0 {
			if _, err := tx.Exec(s.db.dialect(schema + fleetSchema)); err != nil {
				return err
			}
			for k, v := range map[string]string{
				"schema": schemaVersion, "task": s.opt.Task, "job": hex.EncodeToString(s.opt.Job[:]),
				"private": strconv.FormatBool(!s.opt.NotPrivate), "promise": promiseVersion,
				"delta": strconv.FormatFloat(s.opt.Delta, 'g', -1, 64),
			} {
				if err := setMeta(tx, k, v); err != nil {
					return err
				}
			}
		}
		if _, err := tx.Exec(s.db.dialect(historySchema + declinedSchema + logSchema + operatorSchema + agentSchema + hostedSchema + keptSchema)); err != nil {
			return err
		}
		switch v, err := getMeta(tx, "schema"); {
		case err != nil:
			return err
		case v == "2", v == "3":
			if _, err := tx.Exec(fleetSchema); err != nil {
				return err
			}
			if err := setMeta(tx, "schema", schemaVersion); err != nil {
				return err
			}
		case v != schemaVersion:
			return fmt.Errorf("the file has schema %q, this program knows 2 to %s", v, schemaVersion)
		}
		if _, err := tx.Exec(seenSchema); err != nil { // of an older store the column came just now
			return err
		}
		if err := s.checkJob(tx); err != nil {
			return err
		}
		if err := completeLog(tx); err != nil {
			return err
		}
		switch _, err := getMeta(tx, "hosted"); {
		case !s.opt.Hosted && err == nil:
			return ErrHosted
		case !s.opt.Hosted && !errors.Is(err, sql.ErrNoRows):
			return err
		}
		if s.opt.Hosted {
			if err := setMeta(tx, "hosted", "true"); err != nil {
				return err
			}
			if _, err := tx.Exec(`DELETE FROM strike; UPDATE identity SET excluded = '' WHERE excluded <> ''`); err != nil {
				return err
			}
		}
		return setMeta(tx, "fence", s.fence)
	})
}

func getMeta(q querier, key string) (string, error) {
	var v string
	err := q.QueryRow(`SELECT value FROM meta WHERE key = $1`, key).Scan(&v)
	if err != nil {
		return "", fmt.Errorf("meta %q: %w", key, err)
	}
	return v, nil
}

func setMeta(tx *sql.Tx, key, value string) error {
	_, err := tx.Exec(`INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
	return err
}
