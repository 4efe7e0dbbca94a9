package edge

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/known"
)

// Published names the public place of a base.
type Published struct {
	Name     string // on a hub, owner/name; starling/NAME is one that the programs embed
	Revision string // the commit there; empty: it has none
	MaxBytes int64  // bytes of weights that may come for it, which are stored wider than a job may ask for
}

// String is the name that people use for it.
func (p Published) String() string {
	if p.Revision == "" {
		return p.Name
	}
	return p.Name + "@" + p.Revision
}

// listed is the published base of a hash, by the lists that the device has.
func (c *client) listed(sum [32]byte) (known.Base, bool) {
	if b, ok := known.Default().Find(sum); ok {
		return b, true
	}
	return c.cfg.Known.Find(sum)
}

// knowsTokenizer reports whether some published base has it.
func (c *client) knowsTokenizer(sum [32]byte) bool {
	has := func(b known.Base) bool { return b.Tokenizer == sum }
	return slices.ContainsFunc(known.Default(), has) || slices.ContainsFunc(c.cfg.Known, has)
}

// published says where a job's base can be had: by a list of this device's, and only where
// that has nothing to say, by the coordinator's word. ok is false if nobody names a place.
func (c *client) published(j *job) (from Published, ok bool) {
	from = Published{Name: j.Published.Name, Revision: j.Published.Revision}
	if b, listed := c.listed(j.Base.SHA256); listed {
		from = Published{Name: b.Name, Revision: b.Revision}
		if b.Revision == "-" {
			from.Revision = ""
		}
	}
	// Of four bits a value, and what a model's file holds beside the base.
	from.MaxBytes = 10*int64(j.Base.Size) + 64<<20
	return from, from.Name != ""
}

// fetchBase gets a job's base from where it is published, in the form that the job has.
func (c *client) fetchBase(ctx context.Context, j *job) (*model.Base, error) {
	from, ok := c.published(j)
	if !ok {
		return nil, fmt.Errorf("%w: the job names no public place of it, and it is in no list: the coordinator alone can send it", ErrBase)
	}
	c.events.send(Event{State: Fetching, Text: "base " + from.String()})
	b, err := c.cfg.Fetch(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBase, from, err)
	}
	forms, err := newOwnBase(b)
	if err != nil {
		return nil, err
	}
	own := forms[j.Base.SHA256]
	if own == nil {
		return nil, fmt.Errorf("%w: the job's is %x, which %s is in no form", ErrBase, j.Base.SHA256, from)
	}
	return own, nil
}

// checkTokenizer checks the tokenizer within a base against the one that the job names.
func (j *job) checkTokenizer(b *model.Base) error {
	if have := sha256.Sum256(b.Tokenizer); have != j.Published.Tokenizer {
		return fmt.Errorf("%w: its tokenizer is %x, the job names %x", ErrBase, have, j.Published.Tokenizer)
	}
	return nil
}
