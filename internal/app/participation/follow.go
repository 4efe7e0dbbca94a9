package participation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/starling-fl/starling/edge"
)

const (
	// mostFoundADay bounds the jobs that are tried within a day: each may have a base fetched,
	// a program made and steps of it run before anything counts toward the policy.
	mostFoundADay = 32
	// unlisted is how many looks in a row a job may be missing from the list.
	unlisted = 2
)

// Follower takes part in the jobs that a coordinator lists.
type Follower struct {
	Fleet  *Part // whose token leads to the coordinator
	Found  *edge.Discovery
	Pool   string        // whose jobs are taken
	Look   time.Duration // between looks at the list, on average
	Plain  bool          // a coordinator on another machine may be asked over http
	Stderr io.Writer
	Join   func(context.Context, *Part) error

	ended  chan *taken
	open   map[string]*taken // by token, which names the job
	over   map[string]bool   // those that are not tried again
	began  []time.Time       // within a day
	parts  []*Part
	errors []error
	said   string // last, of what cannot be reached
}

// taken is a job that is taken part in.
type taken struct {
	*Part
	name    string
	stop    context.CancelFunc
	err     error
	missing int // looks in a row
}

// Follow takes part until ctx is done, and waits until all that it began has ended.
func (f *Follower) Follow(ctx context.Context) ([]*Part, []error) {
	f.ended, f.open, f.over = make(chan *taken), map[string]*taken{}, map[string]bool{}
	if f.Fleet.Note != "" {
		fmt.Fprintln(f.Stderr, "note: "+f.Fleet.Note)
	}
	var wg sync.WaitGroup
	look := time.NewTimer(0)
	defer look.Stop()
	for ctx.Err() == nil || len(f.open) > 0 {
		select {
		case <-look.C:
			f.look(ctx, &wg)
			look.Reset(f.Look/2 + rand.N(f.Look)) // not all devices at once
		case t := <-f.ended:
			f.end(ctx, t)
		case <-ctx.Done():
			for len(f.open) > 0 {
				f.end(ctx, <-f.ended)
			}
		}
	}
	wg.Wait()
	if len(f.parts) == 0 {
		return nil, []error{fmt.Errorf("interrupted before any job was taken part in: %w", ctx.Err())}
	}
	return f.parts, f.errors
}

// look takes part in the jobs that are new, and leaves those that are gone.
func (f *Follower) look(ctx context.Context, wg *sync.WaitGroup) {
	listed, err := edge.AskJobs(ctx, edge.Config{Token: f.Fleet.Token, Policy: f.Fleet.Policy, AllowPlain: f.Plain})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if said := edge.Explain(err); said != f.said {
			f.said = said
			fmt.Fprintf(f.Stderr, "jobs cannot be looked for, which is tried again: %s\n", edge.Escape(said, false))
		}
		return
	}
	f.said = ""
	for _, t := range f.open {
		t.missing++
	}
	for _, offer := range listed {
		if t := f.open[offer.Token]; t != nil {
			t.missing = 0
		} else if offer.Pool == f.Pool && !f.over[offer.Token] {
			f.begin(ctx, wg, offer)
		}
	}
	for _, t := range f.open {
		if t.missing >= unlisted {
			t.stop()
		}
	}
}

// begin takes part in a job, where there is room.
func (f *Follower) begin(ctx context.Context, wg *sync.WaitGroup, offer edge.Offer) {
	now := time.Now()
	for len(f.began) > 0 && now.Sub(f.began[0]) > 24*time.Hour {
		f.began = f.began[1:]
	}
	if len(f.open) >= MostJoined || len(f.began) >= mostFoundADay {
		return // at a later look
	}
	f.began = append(f.began, now)
	own := *f.Fleet
	own.Token, own.Found, own.Prefix, own.Note = offer.Token, f.Found, "job "+offer.Name+": ", ""
	running, stop := context.WithCancel(ctx)
	t := &taken{Part: &own, name: offer.Name, stop: stop}
	f.open[offer.Token] = t
	wg.Go(func() {
		defer stop()
		t.err = f.Join(running, t.Part)
		f.ended <- t
	})
}

// end notes how a job ended. What ended for a reason that may pass is tried again when it is
// listed: that nobody answered, or that it was not listed any more.
func (f *Follower) end(ctx context.Context, t *taken) {
	delete(f.open, t.Token)
	gone := t.missing >= unlisted
	f.over[t.Token] = !gone && !errors.Is(t.err, edge.ErrUnreachable)
	fmt.Fprintf(f.Stderr, "%sended: %s\n", t.Prefix, edge.Escape(t.Report.Reason, false))
	f.parts = append(f.parts, t.Part)
	if ctx.Err() == nil {
		t.err = nil // it was said, and the others go on
	}
	f.errors = append(f.errors, t.err)
}
