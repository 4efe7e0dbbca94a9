package admin

import (
	"fmt"
	"strings"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/usage"
	"github.com/starling-fl/starling/internal/protocol/wire"
)

// TokenConfig is a join token that is wanted. Fields are the flags of 'starling token create'.
type TokenConfig struct {
	Uses int           // devices that may enrol by it
	Life time.Duration // how long they may
	Note string        // for the list
	URL  string        // how devices reach the coordinator; "": as serve said
	Of   string        // the job that it leads to, of a server with several; "": all of them, or the one
}

// Check refuses values that no fleet would accept.
func (c TokenConfig) Check() error {
	switch {
	case c.Uses < 1 || c.Uses > store.MaxUses:
		return usage.Errorf("--uses is %d, want 1..%d", c.Uses, store.MaxUses)
	case c.Life < time.Minute || c.Life > store.MaxLife:
		return usage.Errorf("--expires is %v, want a minute to ten years", c.Life)
	case len(c.Note) > store.MaxNote:
		return usage.Errorf("--note has %d bytes, limit %d", len(c.Note), store.MaxNote)
	}
	return nil
}

// NewToken makes an invitation to a fleet, and the join token of it.
func NewToken(f Fleet, c TokenConfig) (i store.Invitation, token string, err error) {
	if err := c.Check(); err != nil {
		return i, "", err
	}
	reached, err := f.Reached()
	if err != nil {
		return i, "", err
	}
	if reached == "" {
		return i, "", fmt.Errorf("it is not known how devices reach this coordinator: start serve with this folder once")
	}
	t, err := wire.ParseToken(reached)
	if err != nil {
		return i, "", err
	}
	if c.URL != "" {
		t.URL = c.URL
	}
	if t.URL, err = below(f, t.URL, c.Of); err != nil {
		return i, "", err
	}
	if err := t.Validate(); err != nil {
		return i, "", usage.Wrap(err)
	}
	i, t.Secret, err = f.Invite(c.Note, c.Uses, c.Life)
	return i, t.String(), err
}

// below is where a server has a job, at the address itself if it has one alone.
func below(h Fleet, url, name string) (string, error) {
	all, err := h.Jobs()
	if err != nil && name == "" {
		return url, nil // of one job, whose listener knows of no others
	}
	if err != nil || name == "" { // of all jobs of the fleet: join --fleet
		return url, err
	}
	for _, j := range all {
		if j.Name == name {
			return strings.TrimRight(url, "/") + wire.JobPath + name, nil
		}
	}
	return "", usage.Errorf("--of is %q: give one of the jobs that starling job list names, or leave it out for all of them", name)
}
