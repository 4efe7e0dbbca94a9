package main

import (
	"fmt"
	"io"
	"time"
)

// countdown says every two seconds how far long work is, and how long the rest takes at
// the same pace.
type countdown struct {
	out         io.Writer
	what        string
	total       int
	began, last time.Time
}

func newCountdown(out io.Writer, what string, total int) *countdown {
	now := time.Now()
	return &countdown{out, what, total, now, now}
}

// reach takes note that the first done are done.
func (c *countdown) reach(done int) {
	if now := time.Now(); now.Sub(c.last) > 2*time.Second && done < c.total {
		c.last = now
		left := now.Sub(c.began) / time.Duration(done) * time.Duration(c.total-done)
		fmt.Fprintf(c.out, "%d of %d %s, %s left\n", done, c.total, c.what, left.Round(time.Second))
	}
}

// pace says every two seconds how far work of unknown length is, and how fast.
type pace struct {
	out         io.Writer
	what        string
	done        int
	began, last time.Time
}

func newPace(out io.Writer, what string) *pace {
	now := time.Now()
	return &pace{out, what, 0, now, now}
}

// add takes note of some more.
func (p *pace) add(n int) {
	p.done += n
	if now := time.Now(); now.Sub(p.last) > 2*time.Second {
		p.last = now
		fmt.Fprintf(p.out, "%d %s, %.1f a second\n", p.done, p.what, float64(p.done)/now.Sub(p.began).Seconds())
	}
}
