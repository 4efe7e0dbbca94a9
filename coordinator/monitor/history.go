package monitor

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// RoundRecord is a finished round.
type RoundRecord struct {
	RoundID
	Turnout
	Released bool                  `json:"released"`
	Reason   string                `json:"reason,omitempty"` // why nothing was released
	Seconds  float64               `json:"seconds"`
	Ended    int64                 `json:"ended,omitempty"`    // in Unix time, seconds; 0 in records of earlier programs
	Accuracy []metric.RankAccuracy `json:"accuracy,omitempty"` // of its adapter, once measured
	Fleet    *metric.Fleet         `json:"fleet,omitempty"`    // what its devices said of the adapter that it began with
	dp.Guarantees
	Traffic       // of this round, all devices
	Parts   Parts `json:"parts"` // of Traffic
	// SessionsRefused is how many connections and sessions were refused since the round before
	// was over; those of strangers, too.
	SessionsRefused int64 `json:"sessions_refused,omitempty"`

	soFar Parts // since the job began, when the round ended
}

// History stores records of rounds beyond the process, one line each.
type History interface {
	// Remember keeps a line about a round, in place of an earlier one.
	Remember(round uint64, line []byte) error
	// History returns the lines, oldest first.
	History() ([][]byte, error)
}

// maxRecords is how many records are shown, and remembered.
const maxRecords = store.MaxHistory

// Whole reports whether Recall has loaded every round of earlier processes.
func (m *Monitor) Whole() bool { return m.whole }

// Recall loads the history of earlier processes, and stores there from now on.
func (m *Monitor) Recall(h History) error {
	m.history = h
	lines, err := h.History()
	if err != nil {
		return err
	}
	m.whole = len(lines) < maxRecords
	for _, b := range lines {
		rec, err := parseRecord(b)
		if err != nil {
			m.log.Error("a remembered round cannot be read", "error", err)
			continue
		}
		m.tell(func() {
			if m.before = m.before.plus(rec.Parts); rec.soFar != (Parts{}) {
				m.before = rec.soFar
			}
			m.keep(rec)
		})
		if rec.Released {
			m.metrics.LastCommit.Set(float64(rec.Ended))
		}
	}
	return nil
}

// keep appends a record; guarded by mu.
func (m *Monitor) keep(rec RoundRecord) {
	if over := len(m.rounds) - maxRecords + 1; over > 0 {
		m.rounds, m.stamps = slices.Delete(m.rounds, 0, over), slices.Delete(m.stamps, 0, over)
	}
	m.made++
	m.rounds, m.stamps = append(m.rounds, rec), append(m.stamps, m.made)
}

// Ended records a finished round, adds the bytes that crossed the sockets since the last one to it,
// and returns them.
func (m *Monitor) Ended(rec RoundRecord) Traffic {
	now := m.meter.parts()
	m.tell(func() {
		at, began := now.traffic(), m.began.traffic()
		rec.Traffic = Traffic{at.BytesUp - began.BytesUp, at.BytesDown - began.BytesDown}
		rec.Parts, rec.soFar = now.since(m.began), m.before.plus(now)
		refused := m.meter.Refused()
		rec.SessionsRefused, m.refused = refused-m.refused, refused
		m.began = now
		m.keep(rec)
	})
	m.remember(rec)
	return rec.Traffic
}

// Fleet returns what devices reported about released adapters, oldest first.
func (m *Monitor) Fleet() (said []metric.Fleet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rounds {
		if r.Fleet != nil {
			said = append(said, *r.Fleet)
		}
	}
	return said
}

// Measure adds a version's accuracy to its round's record.
func (m *Monitor) Measure(version int, accuracy []metric.RankAccuracy) {
	var changed []RoundRecord
	m.tell(func() {
		for i := range m.rounds {
			if m.rounds[i].Released && m.rounds[i].Version == version {
				m.made++
				m.rounds[i].Accuracy, m.stamps[i] = accuracy, m.made
				changed = append(changed, m.rounds[i])
			}
		}
	})
	for _, rec := range changed {
		m.remember(rec)
	}
}

// remember keeps a record over restarts. A round that cannot be remembered is
// committed all the same.
func (m *Monitor) remember(rec RoundRecord) {
	b, err := json.Marshal(rememberedRound{rec, rec.soFar})
	if err == nil {
		err = m.history.Remember(rec.Round, b)
	}
	if err != nil {
		m.log.Error("the round is not remembered over a restart", "round", rec.Round, "error", err)
	}
}

// rememberedRound is a record as it is in the store.
type rememberedRound struct {
	RoundRecord
	// SoFar is what crossed the sockets since the job began: a process that comes after
	// counts on from there. Zero in those of earlier programs.
	SoFar Parts `json:"so_far"`
}

// parseRecord reads a remembered round. Earlier programs called its number the attempt, and
// round the version that it was to make.
func parseRecord(b []byte) (RoundRecord, error) {
	of := struct {
		rememberedRound
		Attempt uint64 `json:"attempt"`
	}{}
	if err := json.Unmarshal(b, &of); err != nil {
		return RoundRecord{}, fmt.Errorf("coordinator: %w", err)
	}
	if of.Attempt != 0 {
		of.Version, of.Round = int(of.Round), of.Attempt
		if !of.Released {
			of.Version--
		}
	}
	of.soFar = of.SoFar
	return of.RoundRecord, nil
}
