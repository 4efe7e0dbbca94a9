package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/starling-fl/starling/evaluate/metric"
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

// exportSoon exports the checkpoint, now or when it can be.
func (c *Coordinator) exportSoon(measured []metric.RankAccuracy) {
	c.exporting.due, c.exporting.measured = true, measured
	c.exportDue()
}

// exportDue tries what is due, waiting twice as long after each failure.
func (c *Coordinator) exportDue() {
	e := &c.exporting
	if !e.due {
		return
	}
	if err := c.export(e.measured); err != nil {
		e.failures++
		wait := min(time.Second<<min(e.failures-1, 6), time.Minute)
		e.again = time.Now().Add(wait)
		c.log.Error("the checkpoint could not be exported", "version", c.core.version, "failures", e.failures, "again_in", wait, "error", err)
		return
	}
	if e.failures > 0 {
		c.log.Info("the checkpoint is exported", "version", c.core.version, "after_failures", e.failures)
	}
	*e = exporting{}
}

// exportLast makes the last checkpoint's export, and gives it exportPatience. An
// error leaves everything in the store, for the next start.
func (c *Coordinator) exportLast(ctx context.Context, measured []metric.RankAccuracy) error {
	c.exportSoon(measured)
	for until := time.Now().Add(exportPatience); c.exporting.due; {
		if !time.Now().Before(until) {
			return fmt.Errorf("coordinator: the checkpoint could not be exported to %s; it is kept: mend that and start again", c.checkpointDir())
		}
		if err := c.pump(ctx, c.exporting.again); err != nil {
			return err
		}
	}
	return nil
}
