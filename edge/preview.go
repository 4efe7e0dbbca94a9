package edge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/starling-fl/starling/data/dataset"
)

// aboutPath is where a coordinator says what its job is, to anyone who asks.
const aboutPath = "/v1/job"

// mostAbout bounds that answer, bytes.
const mostAbout = 4 << 20

// preview asks what the job is and checks it against this device's data before
// the device enrols: one that could not take part would be counted in the
// population, and waited for, for ever. What it is told binds nobody, the job
// that is enrolled in is checked again; a coordinator that does not answer is
// joined without.
func (c *client) preview(ctx context.Context) error {
	if c.previewed || c.job != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Handshake)
	defer cancel()
	resp, err := c.blobs.client.open(ctx, strings.TrimRight(c.token.URL, "/")+aboutPath, 0, "")
	if err != nil {
		c.cfg.Log.Debug("no word of the job before joining", "err", err)
		return nil // dialling meets the same
	}
	defer resp.body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.body, mostAbout))
	c.events.down.Add(int64(len(b)))
	var about struct {
		Labels    []string `json:"labels"`
		Providers int      `json:"providers"`
	}
	if err == nil && resp.status == statusOK {
		err = json.Unmarshal(b, &about)
	}
	if err != nil || resp.status != statusOK || len(about.Labels) == 0 {
		c.cfg.Log.Debug("no word of the job before joining", "status", resp.status, "err", err)
		return nil
	}
	c.previewed = true
	c.heard = time.Now()
	if _, err = c.examples(about.Labels, about.Providers); err != nil {
		return err // to its owner: nobody is dialled
	}
	if err := c.previewJob(ctx); err != nil {
		return err
	}
	return c.hold(ctx)
}

// previewJob checks the job as the coordinator announces it to anyone who asks.
func (c *client) previewJob(ctx context.Context) error {
	announced, task, err := c.blobs.announced(ctx, c.cfg.Handshake)
	if err != nil {
		c.cfg.Log.Debug("no announcement of the job before joining", "err", err)
		return nil
	}
	return c.checkJob(&job{Job: *announced, task: task})
}

// examples are this device's, over a job's labels. providers is the most that
// it may hold; 0: any number.
func (c *client) examples(labels []string, providers int) (*dataset.Set, error) {
	set, err := c.cfg.Data(labels)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrData, err)
	}
	if len(set.Examples) == 0 {
		return nil, fmt.Errorf("%w: no examples", ErrData)
	}
	for _, e := range set.Examples {
		for _, l := range e.Classes() {
			if len(labels) > 0 && (l < 0 || l >= len(labels)) {
				return nil, fmt.Errorf("%w: label number %d, the job has %d labels", ErrData, l, len(labels))
			}
		}
	}
	parts := []*dataset.Set{set}
	if providers > 0 {
		if _, parts, err = divide(set, providers); err != nil {
			return nil, err
		}
	}
	return set, c.cfg.Policy.checkEnough(parts)
}
