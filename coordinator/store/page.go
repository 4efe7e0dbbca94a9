package store

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// MaxPage bounds the devices of a page.
const MaxPage = 500

// PageQuery selects the devices of a page.
type PageQuery struct {
	Prefix string // hexadecimal digits that the identity begins with
	Held   bool   // only those with strikes, or excluded
	Offset int    // so many are left out
	Limit  int    // 1..MaxPage
}

// Page lists some devices: the excluded first, then by strikes, then in the order of their
// enrolment. found is the number of all devices that match.
func (f *Fleet) Page(w PageQuery) (page []Device, found int, err error) {
	begins := strings.ToUpper(w.Prefix)
	switch {
	case len(begins) > 64 || strings.Trim(begins, "0123456789ABCDEF") != "":
		return nil, 0, fmt.Errorf("%w: an identity begins with at most 64 hexadecimal digits", ErrRequest)
	case w.Limit < 1 || w.Limit > MaxPage:
		return nil, 0, fmt.Errorf("%w: a page of %d devices, want 1..%d", ErrRequest, w.Limit, MaxPage)
	case w.Offset < 0:
		return nil, 0, fmt.Errorf("%w: a page from device %d", ErrRequest, w.Offset)
	}
	const from = ` FROM identity LEFT JOIN (SELECT key, count(DISTINCT round) AS n FROM strike GROUP BY key) AS struck ON struck.key = identity.key
		LEFT JOIN declined ON declined.key = identity.key LEFT JOIN agent ON agent.key = identity.key
		WHERE hex(identity.key) LIKE $1 AND (NOT $2 OR excluded <> '' OR struck.n > 0)`
	if err := f.db.QueryRow(`SELECT count(*)`+from, begins+"%", w.Held).Scan(&found); err != nil {
		return nil, 0, prefixed(err)
	}
	rows, err := f.db.Query(`SELECT identity.key, at, seen, invitation, excluded, coalesce(struck.n, 0),
		coalesce(declined.code, 0), coalesce(declined.round, 0), coalesce(declined.rounds, 0), coalesce(agent.said, '')`+from+
		` ORDER BY excluded <> '' DESC, coalesce(struck.n, 0) DESC, id LIMIT $3 OFFSET $4`, begins+"%", w.Held, w.Limit, w.Offset)
	if err != nil {
		return nil, 0, prefixed(err)
	}
	defer rows.Close()
	page = []Device{}
	for rows.Next() {
		var d Device
		var key []byte
		var at, seen int64
		if err := rows.Scan(&key, &at, &seen, &d.Invitation, &d.Excluded, &d.Strikes, &d.Declined, &d.DeclinedRound, &d.DeclinedRounds, &d.Agent); err != nil {
			return nil, 0, prefixed(err)
		}
		d.Identity, d.Enrolled, d.Seen = hex.EncodeToString(key), time.Unix(at, 0).UTC(), time.Unix(seen, 0).UTC()
		page = append(page, d)
	}
	return page, found, ended(rows.Err())
}
