package store

import (
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Fleet is the operators' view of the devices in a folder. A coordinator may be running in the same
// folder: it takes changes into account at each session and before each round. Safe for concurrent
// use.
type Fleet struct {
	db  *database
	now func() time.Time
	by  string // who acts; "": ByFolder

	within string // the job that viewers who are named see; "": all
}

// MaxInvitations bounds the invitations that are valid at one time, since a new device's secret is
// compared with each.
const MaxInvitations = 4096

// Limits of what operators may ask for.
const (
	MaxUses = 1_000_000                 // devices of an invitation
	MaxNote = 200                       // bytes of a note, or of the reason of a ban
	MaxLife = 10 * 365 * 24 * time.Hour // of an invitation, or of an operator
)

// OpenFleet opens the folder of a coordinator, or of a server with several jobs, whose fleet it is
// then. The error is ErrNoStore if none has run there.
func OpenFleet(dir string) (*Fleet, error) {
	p, err := placeOf(dir)
	if err != nil {
		return nil, err
	}
	is, err := p.below(FleetFolder).exists()
	if is {
		p = p.below(FleetFolder)
	} else if err == nil {
		is, err = p.exists()
	}
	if err != nil {
		return nil, err
	}
	if !is {
		return nil, fmt.Errorf("%w: %s; start serve with it first", ErrNoStore, dir)
	}
	db, err := p.open(beside)
	if err != nil {
		return nil, err
	}
	f := &Fleet{db: db, now: time.Now}
	v, err := getMeta(db, "schema")
	if err != nil {
		err = fmt.Errorf("%s: %w", p, err)
	}
	if err == nil && !db.postgres { // of an older program's store
		_, err = db.Exec(declinedSchema + operatorSchema + agentSchema + hostedSchema)
	}
	if err == nil && v != schemaVersion {
		err = fmt.Errorf("%s has schema %q, not %s: start serve with it once", p, v, schemaVersion)
	}
	if err != nil {
		return nil, errors.Join(prefixed(err), db.Close())
	}
	return f, nil
}

// Close closes the store.
func (f *Fleet) Close() error { return f.db.Close() }

// Secret is one that a coordinator has drawn and keeps under that name; ErrUnknown if it has not.
func (f *Fleet) Secret(name string) ([]byte, error) {
	secret, err := readSecret(f.db, name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: secret %.40q: start serve once", ErrUnknown, name)
	}
	return secret, ended(err)
}

// Device is an enrolled identity.
type Device struct {
	Identity   string    `json:"identity"` // hexadecimal
	Enrolled   time.Time `json:"enrolled"`
	Seen       time.Time `json:"seen"` // to the hour
	Invitation int64     `json:"invitation,omitempty"`
	Strikes    int       `json:"strikes,omitempty"` // rounds
	Excluded   string    `json:"excluded,omitempty"`

	// Declined is the code with which the device last declined a round because of its owner's
	// limits, as in the protocol; 0: never. DeclinedRound is that round, DeclinedRounds the number
	// of such rounds.
	Declined       uint16 `json:"declined,omitempty"`
	DeclinedRound  uint64 `json:"declined_round,omitempty"`
	DeclinedRounds uint64 `json:"declined_rounds,omitempty"`

	// Agent is what the device calls itself, unverified: program and version, platform, engine.
	// Only a [Fleet.Page] has it.
	Agent string `json:"agent,omitempty"`
}

// Devices lists all devices in the order of their enrolment.
func (f *Fleet) Devices() ([]Device, error) {
	rows, err := f.db.Query(`SELECT identity.key, at, seen, invitation, excluded,
		(SELECT count(DISTINCT round) FROM strike WHERE strike.key = identity.key),
		coalesce(declined.code, 0), coalesce(declined.round, 0), coalesce(declined.rounds, 0)
		FROM identity LEFT JOIN declined ON declined.key = identity.key ORDER BY id`)
	if err != nil {
		return nil, prefixed(err)
	}
	defer rows.Close()
	out := []Device{}
	for rows.Next() {
		var d Device
		var key []byte
		var at, seen int64
		if err := rows.Scan(&key, &at, &seen, &d.Invitation, &d.Excluded, &d.Strikes, &d.Declined, &d.DeclinedRound, &d.DeclinedRounds); err != nil {
			return nil, prefixed(err)
		}
		d.Identity, d.Enrolled, d.Seen = hex.EncodeToString(key), time.Unix(at, 0).UTC(), time.Unix(seen, 0).UTC()
		out = append(out, d)
	}
	return out, rows.Err()
}

// change runs one statement on the one identity that begins with hexadecimal
// digits, notes the act, and returns that identity.
func (f *Fleet) change(act, prefix string, statement func(tx *sql.Tx, key []byte) error) (identity string, err error) {
	prefix = strings.ToLower(prefix)
	if len(prefix) < 8 || len(prefix) > 64 || strings.Trim(prefix, "0123456789abcdef") != "" {
		return "", fmt.Errorf("%w: %q is not 8 to 64 hexadecimal digits of an identity", ErrUnknown, prefix)
	}
	tx, err := f.db.begin()
	if err != nil {
		return "", prefixed(err)
	}
	defer tx.Rollback()
	rows, err := tx.Query(`SELECT key FROM identity WHERE lower(hex(key)) LIKE $1 LIMIT 2`, prefix+"%")
	if err != nil {
		return "", prefixed(err)
	}
	var keys [][]byte
	for rows.Next() {
		var key []byte
		if err := rows.Scan(&key); err != nil {
			return "", prefixed(errors.Join(err, rows.Close()))
		}
		keys = append(keys, key)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return "", prefixed(err)
	}
	if len(keys) != 1 {
		return "", fmt.Errorf("%w: %d enrolled devices begin with %s", ErrUnknown, len(keys), prefix)
	}
	if err := errors.Join(statement(tx, keys[0]), f.note(tx, act, hex.EncodeToString(keys[0]))); err != nil {
		return "", prefixed(err)
	}
	return hex.EncodeToString(keys[0]), ended(tx.Commit())
}

// ended is the error of a last call, nil for none.
func ended(err error) error {
	if err == nil {
		return nil
	}
	return prefixed(err)
}

// Ban excludes a device, given by the first digits of its identity, until Pardon.
func (f *Fleet) Ban(prefix, reason string) (identity string, err error) {
	if reason == "" {
		reason = "banned by the operator"
	}
	if len(reason) > MaxNote {
		return "", fmt.Errorf("%w: a reason of %d bytes, limit %d", ErrRequest, len(reason), MaxNote)
	}
	return f.change("ban", prefix, func(tx *sql.Tx, key []byte) error {
		_, err := tx.Exec(`UPDATE identity SET excluded = $1 WHERE key = $2`, reason, key)
		return err
	})
}

// Pardon readmits a device and deletes its strikes.
func (f *Fleet) Pardon(prefix string) (identity string, err error) {
	return f.change("pardon", prefix, func(tx *sql.Tx, key []byte) error {
		_, err := tx.Exec(`UPDATE identity SET excluded = '' WHERE key = $1`, key)
		if err == nil {
			_, err = tx.Exec(`DELETE FROM strike WHERE key = $1`, key)
		}
		return err
	})
}

// Forget removes a device from the population until it comes back, so that rounds do not wait for
// it. To keep it out, Ban it.
func (f *Fleet) Forget(prefix string) (identity string, err error) {
	return f.change("forget", prefix, forget)
}

// Invitation lets devices enrol.
type Invitation struct {
	ID      int64     `json:"id"`
	Note    string    `json:"note,omitempty"`
	Uses    int       `json:"uses"` // devices
	Used    int       `json:"used"`
	Expires time.Time `json:"expires"`
	Revoked bool      `json:"revoked,omitempty"`
}

// Invite creates an invitation for a number of devices and returns it with its secret, which goes
// into the token.
func (f *Fleet) Invite(note string, uses int, life time.Duration) (Invitation, []byte, error) {
	now := f.now()
	i := Invitation{Note: note, Uses: uses, Expires: now.Add(life).UTC().Truncate(time.Second)}
	switch {
	case uses < 1 || uses > MaxUses:
		return i, nil, fmt.Errorf("%w: an invitation for %d devices, want 1..%d", ErrRequest, uses, MaxUses)
	case life < time.Minute || life > MaxLife:
		return i, nil, fmt.Errorf("%w: an invitation that expires after %v, want a minute to ten years", ErrRequest, life)
	case len(note) > MaxNote:
		return i, nil, fmt.Errorf("%w: a note of %d bytes, limit %d", ErrRequest, len(note), MaxNote)
	}
	secret := make([]byte, 32)
	rand.Read(secret) // ends the program where the system has no randomness
	tx, err := f.db.begin()
	if err != nil {
		return i, nil, prefixed(err)
	}
	defer tx.Rollback()
	var good int
	if err := tx.QueryRow(`SELECT count(*) FROM invitation WHERE used < uses AND expires > $1 AND revoked = 0`, now.Unix()).Scan(&good); err != nil {
		return i, nil, prefixed(err)
	}
	if good >= MaxInvitations {
		return i, nil, fmt.Errorf("%w: %d invitations are open, limit %d; revoke some", ErrFull, good, MaxInvitations)
	}
	if err := tx.QueryRow(`INSERT INTO invitation (id, secret, note, uses, expires, at) VALUES (`+next("invitation")+`, $1, $2, $3, $4, $5) RETURNING id`,
		secret, note, uses, i.Expires.Unix(), now.Unix()).Scan(&i.ID); err != nil {
		return i, nil, prefixed(err)
	}
	if err := f.note(tx, "invite", fmt.Sprintf("invitation %d, %d devices", i.ID, uses)); err != nil {
		return i, nil, prefixed(err)
	}
	return i, secret, ended(tx.Commit())
}

// Invitations lists them all.
func (f *Fleet) Invitations() ([]Invitation, error) {
	rows, err := f.db.Query(`SELECT id, note, uses, used, expires, revoked FROM invitation ORDER BY id`)
	if err != nil {
		return nil, prefixed(err)
	}
	defer rows.Close()
	out := []Invitation{}
	for rows.Next() {
		var i Invitation
		var expires int64
		if err := rows.Scan(&i.ID, &i.Note, &i.Uses, &i.Used, &expires, &i.Revoked); err != nil {
			return nil, prefixed(err)
		}
		i.Expires = time.Unix(expires, 0).UTC()
		out = append(out, i)
	}
	return out, rows.Err()
}

// Revoke ends an invitation: no further device enrols by it. Enrolled devices stay.
func (f *Fleet) Revoke(id int64) error {
	return f.acting("revoke invitation", strconv.FormatInt(id, 10), func(tx *sql.Tx) error {
		res, err := tx.Exec(`UPDATE invitation SET revoked = 1 WHERE id = $1`, id)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, fmt.Errorf("%w: invitation %d", ErrUnknown, id))
		}
		return nil
	})
}

// Reached returns the coordinator's token, without a secret, as last stored by serve; "" before.
func (f *Fleet) Reached() (token string, err error) {
	if token, err = getMeta(f.db, "token"); errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return token, ended(err)
}

// Reached stores the coordinator's token, without its secret, for invitations.
func (s *Store) Reached(token string) error {
	return s.tx(func(tx *sql.Tx) error { return setMeta(tx, "token", token) })
}
