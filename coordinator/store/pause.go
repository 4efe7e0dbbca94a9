package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// pauseKey is the row of the operators' word that no round is to be drawn; empty: one may be. A server of
// several jobs has one row for each.
const pauseKey = "paused"

func pauseKeyOf(job string) string { return pauseKey + "/" + job }

// A Pause is an operator's order to draw no more rounds until it is withdrawn.
type Pause struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

func (p Pause) String() string {
	if p.Reason == "" {
		return p.By
	}
	return p.By + ": " + p.Reason
}

// Pause stops the coordinator from drawing rounds, also after a restart. A round that is running
// goes to its end. A second pause replaces the first.
func (f *Fleet) Pause(reason string) error {
	if len(reason) > MaxNote {
		return fmt.Errorf("%w: a reason of %d bytes, limit %d", ErrRequest, len(reason), MaxNote)
	}
	return f.acting("pause job", reason, func(tx *sql.Tx) error { return f.pause(tx, pauseKey, reason) })
}

// pause stores who pauses, and why.
func (f *Fleet) pause(tx *sql.Tx, key, reason string) error {
	b, err := json.Marshal(Pause{f.actor(), reason})
	if err != nil {
		return err
	}
	return setMeta(tx, key, string(b))
}

// Resume ends the pause. The error is ErrRequest if there is none.
func (f *Fleet) Resume() error {
	return f.acting("resume job", "", func(tx *sql.Tx) error {
		p, err := paused(tx, pauseKey)
		if err != nil {
			return err
		}
		if p == nil {
			return fmt.Errorf("%w: the job is not paused by an operator", ErrRequest)
		}
		return setMeta(tx, pauseKey, "")
	})
}

// Paused returns the current pause, or nil.
func (f *Fleet) Paused() (*Pause, error) { return paused(f.db, pauseKey) }

// Paused returns the current pause, or nil.
func (s *Store) Paused() (*Pause, error) { return paused(s.db, pauseKey) }

func paused(q querier, key string) (*Pause, error) {
	text, err := getMeta(q, key)
	if errors.Is(err, sql.ErrNoRows) || err == nil && text == "" {
		return nil, nil
	}
	if err != nil {
		return nil, prefixed(err)
	}
	p := new(Pause)
	if err := json.Unmarshal([]byte(text), p); err != nil {
		return nil, fmt.Errorf("store: the pause: %w", err)
	}
	return p, nil
}
