package edge

import (
	"sync"
	"sync/atomic"
)

// A State is what a device is doing, as shown to its owner.
type State string

// The states, in the order in which a round meets them.
const (
	Connecting State = "connecting"
	Preparing  State = "preparing" // fetching the base, reading local data
	Waiting    State = "waiting"   // for the next round
	Keying     State = "keying"
	Fetching   State = "fetching" // a blob; Done of Total bytes
	Training   State = "training" // Done of Total steps
	Uploading  State = "uploading"
	Collecting State = "collecting" // waiting for the shard's other devices
	Revealing  State = "revealing"
	Committed  State = "committed" // the round released a new adapter
	Abandoned  State = "abandoned" // the round released nothing
	Dropped    State = "dropped"   // the round went on without this device
	Refused    State = "refused"   // this device declined; Text says why
	Backoff    State = "backoff"   // not connected; Text says why
	Finished   State = "finished"
)

// An Event reports progress.
type Event struct {
	State   State  `json:"state"`
	Round   uint64 `json:"round,omitempty"`   // its number, which counts abandoned ones, too
	Version uint64 `json:"version,omitempty"` // of the adapter that the round starts from: committed rounds
	Rank    int    `json:"rank,omitempty"`
	Shard   int    `json:"shard,omitempty"` // devices in this device's shard
	Done    int64  `json:"done,omitempty"`
	Total   int64  `json:"total,omitempty"`
	Text    string `json:"text,omitempty"`
	// Zeros reports that training failed, as Text says, and that this device sends zeros. Only its owner is told.
	Zeros bool  `json:"zeros,omitempty"`
	Up    int64 `json:"up"`   // bytes of messages sent so far
	Down  int64 `json:"down"` // bytes of messages and blobs received so far
	// Peers is what the log of enrolled keys proves about the shard; nil if it is not known yet, or
	// if the job has no log.
	Peers *Peers `json:"peers,omitempty"`
	// Limits are the owner's limits that a refused round exceeds.
	Limits []PolicyError `json:"limits,omitempty"`
	// Limited reports that a limit of the owner's own caused a backoff, not a broken connection.
	Limited bool `json:"limited,omitempty"`
}

// events passes events on, one at a time.
type events struct {
	up, down atomic.Int64

	mu sync.Mutex
	to func(Event) // called under mu
}

func (e *events) send(v Event) {
	if e.to == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	v.Text = Escape(v.Text, false) // much of it is the coordinator's
	v.Up, v.Down = e.up.Load(), e.down.Load()
	e.to(v)
}
