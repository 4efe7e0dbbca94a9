package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// pauseKey is the row of the operators' word that no round is to be drawn; empty: one may be.
const pauseKey = "paused"

// A Pause is an operator's order to draw no more rounds until it is withdrawn.
type Pause struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// Pause stops the coordinator from drawing rounds, also after a restart. A round that is running
// goes to its end. A second pause replaces the first.
func (f *Fleet) Pause(reason string) error {
	if len(reason) > MaxNote {
		return fmt.Errorf("%w: a reason of %d bytes, limit %d", ErrRequest, len(reason), MaxNote)
	}
	by := f.by
	if by == "" {
		by = ByFolder
	}
	b, err := json.Marshal(Pause{by, reason})
	if err != nil {
		return prefixed(err)
	}
	return f.acting("pause job", reason, func(tx *sql.Tx) error { return setMeta(tx, pauseKey, string(b)) })
}

// Resume ends the pause. The error is ErrRequest if there is none.
func (f *Fleet) Resume() error {
	return f.acting("resume job", "", func(tx *sql.Tx) error {
		p, err := paused(tx)
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
func (f *Fleet) Paused() (*Pause, error) { return paused(f.db) }

// Paused returns the current pause, or nil.
func (s *Store) Paused() (*Pause, error) { return paused(s.db) }

func paused(q querier) (*Pause, error) {
	text, err := getMeta(q, pauseKey)
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
