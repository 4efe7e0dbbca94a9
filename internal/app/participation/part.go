package participation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/app/accounts"
	"github.com/starling-fl/starling/internal/leaf/terminal"
)

// Report summarizes a device's contributions to a job.
type Report struct {
	RoundsCommitted int    `json:"rounds_committed"`
	RoundsDropped   int    `json:"rounds_dropped"`
	RoundsAbandoned int    `json:"rounds_abandoned"`
	RoundsZeros     int    `json:"rounds_zeros,omitempty"` // in which training came to nothing: zeros were sent
	Sent            int64  `json:"bytes_sent"`
	Received        int64  `json:"bytes_received"`
	Examples        int    `json:"examples"`
	Interrupted     bool   `json:"interrupted,omitempty"` // by a signal, before the job ended
	Reason          string `json:"reason"`                // why it ended

	Spent edge.Spent `json:"spent"` // what all jobs so far have cost the data, as seen from here

	zeros uint64 // the last round of RoundsZeros
	why   string // the last that training came to

	sent, received int64 // before the device rested last
}

// MostJoined bounds the jobs that one command takes part in: each holds its base.
const MostJoined = 8

// Part is a device's part in one job.
type Part struct {
	Token  string
	Policy *edge.Policy
	Note   string          // on the policy, for the owner; "" for none
	Prefix string          // of its lines, where there are several
	Found  *edge.Discovery // nil: the owner named the job, and may be asked
	Report Report

	seen func(edge.Event) // nil, or follows the device's events
	back bool             // the device rested: its owner has read what the job asks for
}

// JoinAll takes part in all of the jobs until the last has ended.
func JoinAll(ctx context.Context, parts []*Part, join func(context.Context, *Part) error) []error {
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { errs[i] = join(ctx, p) })
	}
	wg.Wait()
	return errs
}

// count follows a device's events in one job.
func (r *Report) count(e edge.Event) {
	r.Sent, r.Received = r.sent+e.Up, r.received+e.Down
	if e.Zeros && e.Round != r.zeros { // each provider of a round says so
		r.zeros, r.why = e.Round, e.Text
		r.RoundsZeros++
	}
	switch e.State {
	case edge.Committed:
		r.RoundsCommitted++
	case edge.Dropped:
		r.RoundsDropped++
	case edge.Abandoned:
		r.RoundsAbandoned++
	case edge.Finished:
		r.Reason = e.Text
	}
}

// ended says how a part ended.
func (r *Report) ended(ctx context.Context, err error, identity string) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		err = fmt.Errorf("interrupted after %d rounds; the same command takes part again", r.RoundsCommitted)
		r.Interrupted = true
	case errors.Is(err, edge.ErrDuplicate):
		err = fmt.Errorf("%w, on another machine or by another program: %s; give this one its own: --identity FILE", err, identity)
	}
	r.Reason = edge.Explain(err)
	return uninvited(err)
}

// Emit reports what was given: of one job as it is, of several one after another.
func Emit(to *terminal.Streams, parts []*Part, errs []error) error {
	if len(parts) > 1 {
		for i, p := range parts {
			if errs[i] != nil {
				errs[i] = fmt.Errorf("job %d: %w", i+1, errs[i])
			}
			if p.Found == nil { // else it was said
				fmt.Fprintf(to.Stderr, "%sended: %s\n", p.Prefix, edge.Escape(p.Report.Reason, false))
			}
		}
	}
	err := errors.Join(errs...)
	for i, p := range parts {
		if errs[i] != nil && !to.JSON { // with --json what was given is given, however it ended
			if p.Report.Interrupted {
				fmt.Fprintf(to.Stderr, "%s%s. What was sent stays in the sums that it is part of\n", p.Prefix, p.Report.given())
			}
			continue
		}
		if e := to.Emit(p.Report, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s%s; the job ended: %s\n", p.Prefix, p.Report.given(), p.Report.Reason)
			return err
		}); e != nil {
			return errors.Join(err, e)
		}
	}
	return err
}

// tried is how long a round is tried before joining, beside what is fetched for it.
const tried = time.Second

// printQuote says what a round takes here, by a trial on made-up examples; nothing where that
// cannot be tried.
func printQuote(ctx context.Context, w io.Writer, cfg edge.Config, cores, examples int) {
	q, err := edge.AskQuote(ctx, cfg, cores, tried)
	if err != nil {
		return // of what is wrong with the coordinator joining says more
	}
	fmt.Fprintf(w, "a round takes about %s of computing here, %s down, %s up and %s of memory; the base is %s, once (tried on made-up examples)\n",
		spoken(time.Duration(q.Work(examples)*float64(time.Second))), terminal.Bytes(int64(q.Round.Down)), terminal.Bytes(int64(q.Round.Up)),
		terminal.Bytes(q.Memory), terminal.Bytes(int64(q.Base)))
}

// given is what the device has done, in words.
func (r *Report) given() string {
	zeros := ""
	if r.RoundsZeros > 0 {
		zeros = fmt.Sprintf(", %d of them with zeros for an update (%s)", r.RoundsZeros, r.why)
	}
	return fmt.Sprintf("took part in %d rounds (%d dropped, %d abandoned)%s, sent %s, received %s",
		r.RoundsCommitted, r.RoundsDropped, r.RoundsAbandoned, zeros, terminal.Bytes(r.Sent), terminal.Bytes(r.Received))
}

// promised is how many rounds the job has that the data gave to last.
func promised(account *edge.Account) uint64 {
	if jobs := accounts.SortedJobs(account); len(jobs) > 0 {
		return jobs[0].Promised
	}
	return 0
}

// uninvited says whom to ask, of an invitation that does not open the job.
func uninvited(err error) error {
	refused := new(edge.RefusedError)
	if errors.As(err, &refused) && refused.Uninvited() {
		return fmt.Errorf("your invitation was used, has ended, was taken back, or its token is not whole: ask its sender for a new one (%w)", err)
	}
	return err
}
