package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/model/evaluate/metric"
)

// exporting is an export of the checkpoint that failed and is still due. What is
// committed is in the store: the folder that shows it may come later, and a full
// disk or a process without a free file ends no job.
type exporting struct {
	due      bool
	measured []metric.RankAccuracy
	failures int // in a row
	again    time.Time
}

// exportPatience is how long the end of a job waits for its last export.
const exportPatience = 2 * time.Minute

// exportSoon exports the checkpoint now or, if that fails, as soon as possible.
func (c *Coordinator) exportSoon(measured []metric.RankAccuracy) {
	c.exporting.due, c.exporting.measured = true, measured
	c.exportDue()
}

// exportDue retries an export that is due, and waits twice as long after each failure.
func (c *Coordinator) exportDue() {
	e := &c.exporting
	if !e.due {
		return
	}
	if err := c.export(e.measured); err != nil {
		e.failures++
		wait := min(time.Second<<min(e.failures-1, 6), time.Minute)
		e.again = time.Now().Add(wait)
		c.log.Error("the checkpoint could not be exported", "version", c.core.Version(), "failures", e.failures, "again_in", wait, "error", err)
		return
	}
	if e.failures > 0 {
		c.log.Info("the checkpoint is exported", "version", c.core.Version(), "after_failures", e.failures)
	}
	*e = exporting{}
}

// exportLast exports the last checkpoint, trying for exportPatience. After an error everything is
// in the store for the next start.
func (c *Coordinator) exportLast(ctx context.Context, measured []metric.RankAccuracy) error {
	c.exportSoon(measured)
	for until := time.Now().Add(exportPatience); c.exporting.due; {
		if !time.Now().Before(until) {
			return fmt.Errorf("coordinator: the checkpoint could not be exported to %s; it is kept: fix the cause and start again", c.checkpointDir())
		}
		if err := c.pump(ctx, c.exporting.again); err != nil {
			return err
		}
	}
	return nil
}

// ErrRolledBack is a store that is older than a release made from its folder.
var ErrRolledBack = errors.New("coordinator: the ledger has forgotten rounds that were released")

// catchUp exports the last checkpoint where a crash came between its commit and
// its export. A checkpoint of a round that the ledger does not have is what is left of
// a newer store: to continue from the older one would spend the same budget again.
func (c *Coordinator) catchUp() error {
	forgot := func(info model.CheckpointInfo, at string) error {
		if !c.rnd.Secret() || info.Job != c.t.Job.Name || info.Version <= int(c.core.Version()) {
			return nil
		}
		return fmt.Errorf("%w: %s holds version %d, %s ends at version %d: put the newest copy of %s back; if this is another run, give it a folder of its own",
			ErrRolledBack, at, info.Version, store.FileName, c.core.Version(), store.FileName)
	}
	if at := c.cfg.Elsewhere; at != nil {
		if err := forgot(*at, "what was released elsewhere"); err != nil {
			return err
		}
	}
	var info model.CheckpointInfo
	b, err := os.ReadFile(filepath.Join(c.checkpointDir(), model.CheckpointFile))
	if err == nil {
		info, err = model.ParseCheckpointInfo(b)
	}
	if err == nil {
		if err := forgot(info, c.checkpointDir()); err != nil {
			return err
		}
	}
	if c.core.Version() == 0 {
		return nil
	}
	if err == nil && info.Version == int(c.core.Version()) {
		written, err := os.ReadFile(filepath.Join(c.checkpointDir(), model.AdapterFile))
		if want, e := model.EncodeAdapter(c.core.Adapter()); err == nil && e == nil && bytes.Equal(written, want) {
			if c.cfg.Released != nil && (c.cfg.Elsewhere == nil || c.cfg.Elsewhere.Version < info.Version) {
				c.cfg.Released(info.Version, c.checkpointDir())
			}
			return nil
		}
	}
	c.exportSoon(nil)
	return nil
}
