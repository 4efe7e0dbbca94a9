package participation

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/idle"
)

const (
	// looks is how often a rule is asked.
	looks = 30 * time.Second
	// mostFinishing is how long a device that has to rest may go on with the round that it is in: a device that leaves
	// in the middle costs its shard a survivor.
	mostFinishing = 10 * time.Minute
)

// resting takes part whenever a rule allows it. Between the rounds it leaves when the rule no longer does, and comes
// back when it does again.
type resting struct {
	rests func() (why string, err error)
	join  func(context.Context, *Part) error
	told  io.Writer
	every time.Duration // between looks
	most  time.Duration // to the end of a round
}

// ruled is join under a rule. The owner is told on a stream why the device rests.
func ruled(rule idle.Rule, told io.Writer, join func(context.Context, *Part) error) func(context.Context, *Part) error {
	if rule.Always() {
		return join
	}
	return resting{func() (string, error) { return rule.Rests(time.Now()) }, join, told, looks, mostFinishing}.run
}

// run takes part in a job until it ends or ctx does.
func (r resting) run(ctx context.Context, p *Part) error {
	for {
		if err := r.wait(ctx, p); err != nil {
			return p.Report.ended(ctx, err, "")
		}
		busy := new(busy)
		p.seen = busy.note
		running, leave := context.WithCancel(ctx)
		var watch sync.WaitGroup
		watch.Go(func() { r.watch(running, busy, leave) })
		err := r.join(running, p)
		rests := running.Err() != nil
		leave()
		watch.Wait()
		if err == nil || !rests || ctx.Err() != nil { // nil: the job is over
			return err
		}
		p.back = true
		p.Report.Reason, p.Report.Interrupted, p.Report.sent, p.Report.received = "", false, p.Report.Sent, p.Report.Received
	}
}

// wait waits until the rule allows work, and says once why it does not.
func (r resting) wait(ctx context.Context, p *Part) error {
	look := time.NewTicker(r.every)
	defer look.Stop()
	for said := ""; ; {
		why, err := r.rests()
		if err != nil {
			return err
		}
		if why == "" {
			return nil
		}
		if why != said {
			fmt.Fprintf(r.told, "%sresting: %s\n", p.Prefix, why)
			said = why
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

// watch leaves once the rule no longer allows work and either no round is under way or the round takes too long.
func (r resting) watch(ctx context.Context, busy *busy, leave func()) {
	look := time.NewTicker(r.every)
	defer look.Stop()
	since := time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		switch why, err := r.rests(); {
		case why == "" && err == nil:
			since = time.Time{}
			continue
		case since.IsZero():
			since = time.Now()
		}
		if !busy.is() || time.Since(since) > r.most {
			leave()
			return
		}
	}
}

// busy records whether a device is in a round.
type busy struct {
	mu sync.Mutex
	in bool
}

func (b *busy) note(e edge.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e.State {
	case edge.Keying, edge.Training, edge.Uploading, edge.Collecting, edge.Revealing:
		b.in = true
	case edge.Fetching: // a base before the first round, or what a round needs
	default:
		b.in = false
	}
}

func (b *busy) is() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.in
}
