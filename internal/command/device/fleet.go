package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/starling-fl/starling/dataset"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/command"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/task"
)

// checkFleet checks the flags of --fleet against each other.
func (f *joinFlags) checkFleet(args []string) error {
	switch given := f.policy.flags.Changed; {
	case !f.fleet && (given("tasks") || given("pool") || given("look")):
		return command.Usagef("--tasks, --pool and --look are for --fleet")
	case !f.fleet:
		return nil
	case len(args) != 1:
		return command.Usagef("--fleet takes one token: it finds the jobs itself")
	case f.askAgain:
		return command.Usagef("--fleet asks nothing: leave out --ask-again")
	case f.look < time.Second || f.look > 24*time.Hour:
		return command.Usagef("--look is %v, want a second to a day", f.look)
	}
	for _, name := range f.tasks {
		if kind, err := model.ParseTask(name); err != nil || kind.String() != name {
			return command.Usagef("--tasks: %q, want some of %q", name, model.TaskNames())
		}
	}
	return nil
}

// foundFor is what jobs may learn of a file.
func (f *joinFlags) foundFor(set *dataset.Set) *edge.Discovery {
	if len(f.tasks) == 0 {
		return &edge.Discovery{Tasks: []string{task.For(set.Form()).String()}}
	}
	return &edge.Discovery{Tasks: f.tasks}
}

const (
	// mostFoundADay bounds the jobs that are tried within a day: each may have a base fetched,
	// a program made and steps of it run before anything counts toward the policy.
	mostFoundADay = 32
	// unlisted is how many looks in a row a job may be missing from the list.
	unlisted = 2
)

// follower takes part in the jobs that a coordinator lists.
type follower struct {
	flags  joinFlags
	fleet  *part // whose token leads to the coordinator
	stderr io.Writer
	found  *edge.Discovery
	join   func(context.Context, *part) error

	ended  chan *taken
	open   map[string]*taken // by token, which names the job
	over   map[string]bool   // those that are not tried again
	began  []time.Time       // within a day
	parts  []*part
	errors []error
	said   string // last, of what cannot be reached
}

// taken is a job that is taken part in.
type taken struct {
	*part
	name    string
	stop    context.CancelFunc
	err     error
	missing int // looks in a row
}

// follow takes part until ctx is done, and waits until all that it began has ended.
func (f *follower) follow(ctx context.Context) ([]*part, []error) {
	f.ended, f.open, f.over = make(chan *taken), map[string]*taken{}, map[string]bool{}
	if f.fleet.note != "" {
		fmt.Fprintln(f.stderr, "note: "+f.fleet.note)
	}
	var wg sync.WaitGroup
	look := time.NewTimer(0)
	defer look.Stop()
	for ctx.Err() == nil || len(f.open) > 0 {
		select {
		case <-look.C:
			f.look(ctx, &wg)
			look.Reset(f.flags.look/2 + rand.N(f.flags.look)) // not all devices at once
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
func (f *follower) look(ctx context.Context, wg *sync.WaitGroup) {
	listed, err := edge.AskJobs(ctx, edge.Config{Token: f.fleet.token, Policy: f.fleet.policy, AllowPlain: f.flags.plain})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if said := edge.Explain(err); said != f.said {
			f.said = said
			fmt.Fprintf(f.stderr, "jobs cannot be looked for, which is tried again: %s\n", edge.Escape(said, false))
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
		} else if offer.Pool == f.flags.pool && !f.over[offer.Token] {
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
func (f *follower) begin(ctx context.Context, wg *sync.WaitGroup, offer edge.Offer) {
	now := time.Now()
	for len(f.began) > 0 && now.Sub(f.began[0]) > 24*time.Hour {
		f.began = f.began[1:]
	}
	if len(f.open) >= mostJoined || len(f.began) >= mostFoundADay {
		return // at a later look
	}
	f.began = append(f.began, now)
	own := *f.fleet
	own.token, own.found, own.prefix, own.note = offer.Token, f.found, "job "+offer.Name+": ", ""
	running, stop := context.WithCancel(ctx)
	t := &taken{part: &own, name: offer.Name, stop: stop}
	f.open[offer.Token] = t
	wg.Go(func() {
		defer stop()
		t.err = f.join(running, t.part)
		f.ended <- t
	})
}

// end notes how a job ended. What ended for a reason that may pass is tried again when it is
// listed: that nobody answered, or that it was not listed any more.
func (f *follower) end(ctx context.Context, t *taken) {
	delete(f.open, t.token)
	gone := t.missing >= unlisted
	f.over[t.token] = !gone && !errors.Is(t.err, edge.ErrUnreachable)
	fmt.Fprintf(f.stderr, "%sended: %s\n", t.prefix, edge.Escape(t.report.Reason, false))
	f.parts = append(f.parts, t.part)
	if ctx.Err() == nil {
		t.err = nil // it was said, and the others go on
	}
	f.errors = append(f.errors, t.err)
}
