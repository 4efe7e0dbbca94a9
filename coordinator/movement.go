package coordinator

import (
	"errors"
	"math"
	"time"
)

// still warns the operator of a job that moves by noise alone, and pauses one that never moved:
// the budget that it spends cannot be bought again. A job that moved before may have converged.
func (c *Coordinator) still(r *running) error {
	if s := r.Draw.Silent(); s.Mean > 3*s.Noise && s.Mean > c.t.Units/4 {
		c.log.Warn("many devices reported nothing: they sent zeros because training came to nothing, were not there, or have too few examples",
			"round", r.ID(), "silent", math.Round(s.Mean), "noise", s.Noise, "expected", c.t.Units)
	}
	m := c.core.Movement()
	if !m.Still() {
		return nil
	}
	text := m.String()
	c.status.Reason = text
	c.log.Error("noise alone", "rounds", m.Rounds, "reason", text)
	if m.Moved || c.paused || !c.private() || c.cfg.Host != nil {
		return nil
	}
	c.paused = true // once: an operator who goes on is not asked again
	f, err := c.Fleet()
	if err != nil {
		return err
	}
	c.mustered = time.Time{}
	return errors.Join(f.As("the coordinator").Pause(text), f.Close())
}
