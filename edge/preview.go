package edge

import (
	"context"
	"fmt"
	"time"

	"github.com/starling-fl/starling/data/dataset"
)

// aboutPath is where a coordinator says what its job is, to anyone who asks.
const aboutPath = "/v1/job"

// mostAbout bounds that answer, bytes.
const mostAbout = 4 << 20

// enrolWithin bounds what a device prepares before it enrols: a base that takes longer to fetch must not
// keep a job from beginning with the others.
const enrolWithin = 20 * time.Second

// preview asks what the job is, checks it against what the owner allows and what this device
// holds, and prepares all that a round needs, before the device enrols: one that refuses would be
// counted in the population, and waited for, for ever. The device then enrols in this job and no
// other. It enrols first, and leaves if it must, where a coordinator does not answer or preparing
// takes longer than enrolWithin.
func (c *client) preview(ctx context.Context) error {
	if c.job == nil {
		if err := c.askJob(ctx); err != nil || c.job == nil {
			return err
		}
		c.previewed = true
	}
	if !c.previewed || c.prepared || c.prep != nil {
		return nil
	}
	c.startPrepare()
	enough := time.NewTimer(enrolWithin)
	defer enough.Stop()
	select {
	case err := <-c.prep:
		c.prep, c.prepared = nil, err == nil
		return err
	case <-enough.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// askJob takes the job that the coordinator announces to anybody, if it does.
func (c *client) askJob(ctx context.Context) error {
	b, _, id, err := c.blobs.announced(ctx, c.cfg.Handshake)
	c.events.down.Add(int64(len(b)))
	if err != nil {
		c.cfg.Log.Debug("no word of the job before joining", "err", err)
		return nil // dialling meets the same
	}
	c.asked = id
	j, err := c.parseJob(b)
	if err != nil {
		return err
	}
	c.heard = time.Now()
	if _, err = c.examples(j.Labels, int(j.Providers)); err != nil {
		return err // to its owner: nobody is dialled
	}
	// One that cannot afford a round would enrol, be waited for and decline them all. Nobody is told: what
	// the data has spent follows from coins.
	if !c.cfg.Account.member(id, c.identity()) {
		if err := c.cfg.Account.affordFirst(j, c.cfg.Policy); err != nil {
			return untold(err)
		}
	}
	c.job = j
	return c.hold(ctx)
}

// examples are this device's, over a job's labels. providers is the most that
// it may hold; 0: any number.
func (c *client) examples(labels []string, providers int) (*dataset.Set, error) {
	set, err := c.cfg.Data(labels)
	if err != nil {
		return nil, untold(fmt.Errorf("%w: %w", ErrData, err))
	}
	if len(set.Examples) == 0 {
		return nil, untold(fmt.Errorf("%w: no examples", ErrData))
	}
	for _, e := range set.Examples {
		for _, l := range e.Classes() {
			if len(labels) > 0 && (l < 0 || l >= len(labels)) {
				return nil, untold(fmt.Errorf("%w: label number %d, the job has %d labels", ErrData, l, len(labels)))
			}
		}
	}
	parts := []*dataset.Set{set}
	if providers > 0 {
		if _, parts, err = divide(set, providers); err != nil {
			return nil, untold(err)
		}
	}
	return set, untold(c.cfg.Policy.checkEnough(parts))
}
