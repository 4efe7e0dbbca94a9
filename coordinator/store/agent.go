package store

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// agentSchema holds what devices call themselves: program and version, platform, engine.
// As with history, nothing follows from it.
const agentSchema = `CREATE TABLE IF NOT EXISTS agent (key BLOB PRIMARY KEY CHECK (length(key) = 32), said TEXT NOT NULL) WITHOUT ROWID;`

// MaxAgent bounds, in bytes, the stored name of a device's program.
const MaxAgent = 64

// Agent stores the device's own name for its program, if it has changed.
func (s *Store) Agent(key [32]byte, said string) error {
	if len(said) > MaxAgent {
		return fmt.Errorf("store: an agent of %d bytes, limit %d", len(said), MaxAgent)
	}
	said = plain(said)
	var was string
	switch err := s.db.QueryRow(`SELECT said FROM agent WHERE key = $1`, key[:]).Scan(&was); {
	case err == nil && was == said:
		return nil
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return prefixed(err)
	}
	return s.tx(func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO agent (key, said) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET said = excluded.said`, key[:], said)
		return err
	})
}

// Summary counts a fleet's devices.
type Summary struct {
	Enrolled  int `json:"enrolled"`
	Excluded  int `json:"excluded"`
	Struck    int `json:"struck"`    // have strikes
	Declining int `json:"declining"` // declined a round for a limit of their owners'
	// Programs and Platforms are what devices say of themselves, the commonest first; those
	// beyond MaxGroups are the last, "others".
	Programs  []Group `json:"programs"`
	Platforms []Group `json:"platforms"`
	Seen      []Group `json:"seen"` // by when they were seen last, see seenWithin
}

// Group is a number of devices of one kind.
type Group struct {
	Name    string `json:"name"`
	Devices int    `json:"devices"`
}

// MaxGroups bounds the groups of one kind, since devices choose these names.
const MaxGroups = 12

// seenWithin are the classes of when a device was seen last. It is kept to the hour.
var seenWithin = []struct {
	name string
	ago  time.Duration
}{{"within 2 hours", 2 * time.Hour}, {"within a day", 24 * time.Hour}, {"within a week", 7 * 24 * time.Hour}, {"within 30 days", 30 * 24 * time.Hour}}

// Summary counts the fleet's devices.
func (f *Fleet) Summary() (Summary, error) {
	var s Summary
	err := f.db.QueryRow(`SELECT count(*), count(*) FILTER (WHERE excluded <> ''), (SELECT count(DISTINCT key) FROM strike), (SELECT count(*) FROM declined)
		FROM identity`).Scan(&s.Enrolled, &s.Excluded, &s.Struck, &s.Declining)
	if err != nil {
		return s, prefixed(err)
	}
	if s.Seen, err = f.seen(s.Enrolled); err != nil {
		return s, err
	}
	s.Programs, s.Platforms, err = f.agents(s.Enrolled)
	return s, err
}

func (f *Fleet) seen(enrolled int) ([]Group, error) {
	var out []Group
	counted, now := 0, f.now()
	for _, class := range seenWithin {
		var n int
		if err := f.db.QueryRow(`SELECT count(*) FROM identity WHERE seen > $1`, now.Add(-class.ago).Unix()).Scan(&n); err != nil {
			return nil, prefixed(err)
		}
		out = append(out, Group{class.name, n - counted})
		counted = n
	}
	var forgotten int
	if err := f.db.QueryRow(`SELECT count(*) FROM identity WHERE seen = 0`).Scan(&forgotten); err != nil {
		return nil, prefixed(err)
	}
	return append(out, Group{"longer ago", enrolled - counted - forgotten}, Group{"forgotten", forgotten}), nil
}

// agents groups what devices say of themselves. Of those who say the rarest things, and of those
// who have said nothing since it is kept, nothing is known.
func (f *Fleet) agents(enrolled int) (programs, platforms []Group, err error) {
	rows, err := f.db.Query(`SELECT said, count(*) AS n FROM agent GROUP BY said ORDER BY n DESC LIMIT 1000`)
	if err != nil {
		return nil, nil, prefixed(err)
	}
	defer rows.Close()
	program, platform := map[string]int{}, map[string]int{}
	known := 0
	for rows.Next() {
		var said string
		var n int
		if err := rows.Scan(&said, &n); err != nil {
			return nil, nil, prefixed(err)
		}
		what, where := parsed(said)
		program[what], platform[where], known = program[what]+n, platform[where]+n, known+n
	}
	if err := rows.Err(); err != nil {
		return nil, nil, prefixed(err)
	}
	if rest := enrolled - known; rest > 0 {
		program["unknown"], platform["unknown"] = program["unknown"]+rest, platform["unknown"]+rest
	}
	return commonest(program), commonest(platform), nil
}

// parsed splits what a device calls itself: "starling/1.2.3 linux/amd64 wazero" into program and
// platform. An engine of browsers alone is a platform, too.
func parsed(said string) (program, platform string) {
	words := strings.Fields(said)
	if len(words) == 0 {
		return "unknown", "unknown"
	}
	switch platform = "unknown"; {
	case words[len(words)-1] == "v8":
		platform = "browser"
	case len(words) > 1 && strings.Contains(words[1], "/"):
		platform = words[1]
	}
	return words[0], platform
}

func commonest(of map[string]int) []Group {
	out := []Group{}
	for name, n := range of {
		out = append(out, Group{name, n})
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Devices, a.Devices), strings.Compare(a.Name, b.Name))
	})
	if len(out) > MaxGroups {
		others := Group{Name: "others"}
		for _, g := range out[MaxGroups-1:] {
			others.Devices += g.Devices
		}
		out = append(out[:MaxGroups-1:MaxGroups-1], others)
	}
	return out
}
