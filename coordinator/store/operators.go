package store

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// operatorSchema holds who may see and steer the coordinator, and what was done by whom.
// Names are never given again, so that an act is one person's for ever.
const operatorSchema = `
CREATE TABLE IF NOT EXISTS operator (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL,
  hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
  at INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  revoked INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS confined (
  name TEXT PRIMARY KEY REFERENCES operator(name),
  job TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS act (
  seq INTEGER PRIMARY KEY,
  body BLOB NOT NULL,
  hash BLOB NOT NULL CHECK (length(hash) = 32)
);
CREATE TRIGGER IF NOT EXISTS act_update BEFORE UPDATE ON act BEGIN SELECT RAISE(ABORT, 'acts are append-only'); END;
CREATE TRIGGER IF NOT EXISTS act_delete BEFORE DELETE ON act BEGIN SELECT RAISE(ABORT, 'acts are append-only'); END;
`

// Role is the set of an operator's rights.
type Role string

// Roles. Each may do all that the earlier ones may.
const (
	RoleViewer   Role = "viewer"   // sees the dashboard, figures and what is released
	RoleOperator Role = "operator" // invites, bans and pardons devices, pauses the job, names viewers, and sees who did
	RoleAdmin    Role = "admin"    // makes and revokes operators, and profiles the program
)

// Roles are all of them, the least first.
var Roles = []Role{RoleViewer, RoleOperator, RoleAdmin}

// Allows reports whether the role includes another.
func (r Role) Allows(need Role) bool {
	least := slices.Index(Roles, need)
	return least >= 0 && slices.Index(Roles, r) >= least
}

// Operator is a person or program that may see or steer the coordinator, by a token. The store
// keeps only the token's hash.
type Operator struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Job     string    `json:"job,omitempty"` // of a server with several, the one that a viewer sees; empty: all
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
	Revoked bool      `json:"revoked,omitempty"`
}

// Limits of operators.
const (
	MaxOperators = 1000 // names ever given
	tokenPrefix  = "starling-operator-"
	tokenSize    = 32 // bytes, drawn at random: nobody guesses one, so that a plain hash keeps it
)

var operatorName = regexp.MustCompile(`^[\pL\pN][\pL\pN ._@+-]{0,63}$`)

// ByFolder is the name for all who act with access to the folder or with its token.
const ByFolder = "(the folder)"

// As returns a Fleet whose acts are recorded as those of the named operator.
func (f *Fleet) As(name string) *Fleet {
	return &Fleet{db: f.db, now: f.now, by: name, within: f.within}
}

// Within returns a Fleet whose AddOperator makes viewers that see only the named job.
func (f *Fleet) Within(job string) *Fleet {
	return &Fleet{db: f.db, now: f.now, by: f.by, within: job}
}

// AddOperator gives a name a role until it expires or is revoked, and returns the token, which is
// not stored and cannot be shown again. The error is ErrFull if there are too many names,
// ErrRequest if the name was used before.
func (f *Fleet) AddOperator(name string, role Role, life time.Duration) (Operator, string, error) {
	now := f.now()
	n := Operator{Name: name, Role: role, Made: now.UTC().Truncate(time.Second), Expires: now.Add(life).UTC().Truncate(time.Second)}
	switch {
	case !operatorName.MatchString(name):
		return n, "", fmt.Errorf("%w: the name %.70q: want 1 to 64 letters, digits and any of \" ._@+-\", the first a letter or digit", ErrRequest, name)
	case !slices.Contains(Roles, role):
		return n, "", fmt.Errorf("%w: the role %.40q: want one of %q", ErrRequest, role, Roles)
	case life < time.Minute || life > MaxLife:
		return n, "", fmt.Errorf("%w: it would expire after %v: want a minute to ten years", ErrRequest, life)
	}
	as := name + " as " + string(role)
	if role == RoleViewer && f.within != "" {
		n.Job = f.within
		as += " of " + n.Job
	}
	secret := make([]byte, tokenSize)
	rand.Read(secret) // ends the program where the system has no randomness
	token := tokenPrefix + hex.EncodeToString(secret)
	hash := sha256.Sum256([]byte(token))
	return n, token, f.acting("add operator", as, func(tx *sql.Tx) error {
		var names, taken int
		if err := tx.QueryRow(`SELECT count(*), count(*) FILTER (WHERE name = $1) FROM operator`, name).Scan(&names, &taken); err != nil {
			return err
		}
		if taken > 0 {
			return fmt.Errorf("%w: the name %q was given before, and acts are noted under it: take another", ErrRequest, name)
		}
		if names >= MaxOperators {
			return fmt.Errorf("%w: %d operators were named, limit %d", ErrFull, names, MaxOperators)
		}
		_, err := tx.Exec(`INSERT INTO operator (id, name, role, hash, at, expires) VALUES (`+next("operator")+`, $1, $2, $3, $4, $5)`,
			name, role, hash[:], n.Made.Unix(), n.Expires.Unix())
		if err == nil && n.Job != "" {
			_, err = tx.Exec(`INSERT INTO confined (name, job) VALUES ($1, $2)`, name, n.Job)
		}
		return err
	})
}

// Operators lists them all, in the order in which they were named.
func (f *Fleet) Operators() ([]Operator, error) {
	rows, err := f.db.Query(operatorQuery + ` ORDER BY id`)
	if err != nil {
		return nil, prefixed(err)
	}
	defer rows.Close()
	out := []Operator{}
	for rows.Next() {
		n, err := scanOperator(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, rows.Err()
}

const operatorQuery = `SELECT operator.name, role, coalesce(job, ''), at, expires, revoked FROM operator LEFT JOIN confined ON confined.name = operator.name`

func scanOperator(row interface{ Scan(...any) error }) (n Operator, err error) {
	var at, expires int64
	if err := row.Scan(&n.Name, &n.Role, &n.Job, &at, &expires, &n.Revoked); err != nil {
		return n, prefixed(err)
	}
	n.Made, n.Expires = time.Unix(at, 0).UTC(), time.Unix(expires, 0).UTC()
	return n, nil
}

// RevokeOperator ends a name's token at once.
func (f *Fleet) RevokeOperator(name string) error {
	return f.acting("revoke operator", name, func(tx *sql.Tx) error {
		res, err := tx.Exec(`UPDATE operator SET revoked = 1 WHERE name = $1`, name)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, fmt.Errorf("%w: operator %.70q", ErrUnknown, name))
		}
		return nil
	})
}

// IsOperatorToken reports whether a text has the form of an operator's token.
func IsOperatorToken(text string) bool {
	return len(text) == len(tokenPrefix)+2*tokenSize && strings.HasPrefix(text, tokenPrefix)
}

// OperatorByToken returns the operator that a token belongs to. The error is ErrUnknown if there is
// none, or if it is revoked or expired.
func (f *Fleet) OperatorByToken(token string) (Operator, error) {
	if !IsOperatorToken(token) {
		return Operator{}, fmt.Errorf("%w: operator", ErrUnknown)
	}
	hash := sha256.Sum256([]byte(token))
	n, err := scanOperator(f.db.QueryRow(operatorQuery+` WHERE hash = $1`, hash[:]))
	if errors.Is(err, sql.ErrNoRows) || err == nil && (n.Revoked || !f.now().Before(n.Expires)) {
		return Operator{}, fmt.Errorf("%w: operator", ErrUnknown)
	}
	return n, err
}

// An Act is an operator's change to the fleet.
type Act struct {
	Seq     int64     `json:"seq"` // from 1
	At      time.Time `json:"at"`
	By      string    `json:"by"` // an operator's name, or ByFolder
	Act     string    `json:"act"`
	Subject string    `json:"subject"`
}

// actLabel begins what an act's hash is of.
const actLabel = "starling/1 act\x00"

func chained(before, body []byte) [32]byte {
	return sha256.Sum256(slices.Concat([]byte(actLabel), before, body))
}

// acting makes a change and notes it, or neither.
func (f *Fleet) acting(act, subject string, change func(*sql.Tx) error) error {
	tx, err := f.db.Begin()
	if err != nil {
		return prefixed(err)
	}
	defer tx.Rollback()
	if err := change(tx); err != nil {
		return prefixed(err)
	}
	if err := f.note(tx, act, subject); err != nil {
		return prefixed(err)
	}
	return ended(tx.Commit())
}

// actor is who acts, as the chain and a pause name them.
func (f *Fleet) actor() string { return cmp.Or(f.by, ByFolder) }

// note adds an act to the chain.
func (f *Fleet) note(tx *sql.Tx, act, subject string) error {
	a := Act{At: f.now().UTC().Truncate(time.Second), By: f.actor(), Act: act, Subject: subject}
	before := make([]byte, 32)
	err := tx.QueryRow(`SELECT seq, hash FROM act ORDER BY seq DESC LIMIT 1`).Scan(&a.Seq, &before)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	a.Seq++
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	hash := chained(before, body)
	_, err = tx.Exec(`INSERT INTO act (seq, body, hash) VALUES ($1, $2, $3)`, a.Seq, body, hash[:])
	return err
}

// Acts lists all acts, the first first, with the last hash of their chain, to be kept elsewhere.
// The error is ErrLedger if the chain is broken.
func (f *Fleet) Acts() (acts []Act, head [32]byte, err error) {
	rows, err := f.db.Query(`SELECT seq, body, hash FROM act ORDER BY seq`)
	if err != nil {
		return nil, head, prefixed(err)
	}
	defer rows.Close()
	acts = []Act{}
	for rows.Next() {
		var seq int64
		var body, hash []byte
		if err := rows.Scan(&seq, &body, &hash); err != nil {
			return nil, head, prefixed(err)
		}
		var a Act
		if err := json.Unmarshal(body, &a); err != nil || a.Seq != seq || seq != int64(len(acts)+1) || chained(head[:], body) != [32]byte(hash) {
			return nil, head, fmt.Errorf("%w: act %d of the operators is not as it was noted", ErrLedger, seq)
		}
		head = [32]byte(hash)
		acts = append(acts, a)
	}
	return acts, head, ended(rows.Err())
}
