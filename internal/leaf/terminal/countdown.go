package terminal

import (
	"fmt"
	"io"
	"time"
)

// Countdown says every two seconds how far long work is, and how long the rest takes at
// the same pace.
type Countdown struct {
	out         io.Writer
	what        string
	total       int
	began, last time.Time
}

// NewCountdown starts a countdown of total items named what.
func NewCountdown(out io.Writer, what string, total int) *Countdown {
	now := time.Now()
	return &Countdown{out, what, total, now, now}
}

// Reach takes note that the first done are done.
func (c *Countdown) Reach(done int) {
	if now := time.Now(); now.Sub(c.last) > 2*time.Second && done < c.total {
		c.last = now
		left := now.Sub(c.began) / time.Duration(done) * time.Duration(c.total-done)
		fmt.Fprintf(c.out, "%d of %d %s, %s left\n", done, c.total, c.what, left.Round(time.Second))
	}
}

// Pace says every two seconds how far work of unknown length is, and how fast.
type Pace struct {
	out         io.Writer
	what        string
	done        int
	began, last time.Time
}

// NewPace starts a count of items named what.
func NewPace(out io.Writer, what string) *Pace {
	now := time.Now()
	return &Pace{out, what, 0, now, now}
}

// Add takes note of some more.
func (p *Pace) Add(n int) {
	p.done += n
	if now := time.Now(); now.Sub(p.last) > 2*time.Second {
		p.last = now
		fmt.Fprintf(p.out, "%d %s, %.1f a second\n", p.done, p.what, float64(p.done)/now.Sub(p.began).Seconds())
	}
}
