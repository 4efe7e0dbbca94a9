package edge

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/starling-fl/starling/data/task"
)

// When a device says something is the coordinator's to see, and the coordinator has chosen
// base, tokenizer and the adapter that a round begins with: whatever lasts longer, or
// fails, for some texts tells it who has them. A silent device (Policy.Silent) says
// everything at moments that follow from what is announced and from how fast it is with
// made-up examples:
//
//   - Ready, when the base is there and readingTime has gone by: data is read meanwhile,
//     and longer where there is more of it (see reading);
//   - a turn, at the next beat after what it answers;
//   - the update, at the end of the window that its steps take with made-up examples
//     (see window). What has come to nothing by then, for whatever reason, is zeros.
//
// Refusals follow from job, plan and policy alone, and leave at the next beat.
const (
	beat = 50 * time.Millisecond
	// A device is ready after as long as so many examples of the announced length take to read.
	readExamples = 1024
	readToken    = 4 * time.Microsecond // a megabyte of text a second
	leastReading = 4 * beat
	mostReading  = time.Second
	// slack is for what else a machine does: a step of milliseconds may wait for others'.
	slack = 200 * time.Millisecond
	// measuredFor rounds how long steps take is taken to be what it was.
	measuredFor = 16
	// largeRow is the size of an example from which it may be encoded anew for every step
	// (see mostEncoded), within largeRowTime: a picture of a few million pixels.
	largeRow     = 64 << 10
	largeRowTime = 20 * time.Millisecond
)

// errLate is an update that was not there when it had to leave.
var errLate = errors.New("training was not done by the moment at which a silent device sends (--silent)")

// nextBeat is the first beat after now of those that began at from.
func nextBeat(from, now time.Time) time.Time {
	return from.Add((now.Sub(from)/beat + 1) * beat)
}

// readingTime is how long a device reads before it says that it is ready: by announced sizes
// alone. What takes longer is read while rounds begin, and the update waits for it as long as
// its window lasts.
func readingTime(columns []task.Column, sequence uint32) time.Duration {
	if task.RowBytes(columns) >= largeRow {
		return mostReading
	}
	return min(mostReading, max(leastReading, readExamples*time.Duration(sequence)*readToken))
}

// until waits for a moment, or ctx's end.
func until(ctx context.Context, moment time.Time) error { return sleep(ctx, time.Until(moment)) }

// hold waits, in a silent device, for the beat at which what answers the coordinator's last
// message may leave.
func (c *client) hold(ctx context.Context) error {
	if !c.silent() {
		return nil
	}
	return until(ctx, nextBeat(c.heard, time.Now()))
}

// silent reports whether moments are kept. In a reproducible run nothing is private.
func (c *client) silent() bool { return c.cfg.Policy.Silent && len(c.cfg.Seed) == 0 }

// speed is how long made-up examples take a device, of each program that it has run: a job has
// one for each rank.
type speed struct {
	mu   sync.Mutex
	seen map[measure]*cost // by mu; at most mostMeasured
}

type measure struct {
	program [sha256.Size]byte
	rank    int
}

const mostMeasured = 64

// cost is what a unit's training takes: all of it, with so many steps; each further step; and
// what sending nothing takes.
type cost struct {
	whole, step, zeros time.Duration
	steps              int
	rounds             int // until it is measured anew
}

// measured reports whether the cost is still good, and counts the round.
func (p *speed) measured(of measure) (cost, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.seen[of]
	if k == nil || k.rounds == 0 {
		return cost{}, false
	}
	k.rounds--
	return *k, true
}

func (p *speed) remember(of measure, k cost) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil || len(p.seen) >= mostMeasured {
		p.seen = map[measure]*cost{}
	}
	k.rounds = measuredFor - 1
	p.seen[of] = &k
}

// window is how long a round's work may take, rounded up to one of eight lengths between a
// power of two and the next: what a device's speed is known by is coarse, and a quarter more
// than was measured, and slack.
func (k cost) window(c Contribution, columns []task.Column) time.Duration {
	units, steps := time.Duration(max(1, c.Units)*max(1, c.Groups)), time.Duration(c.Task.Steps)
	more := max(0, steps-time.Duration(k.steps)) + max(0, time.Duration(c.Task.Scored)-1) // whole has one that is scored
	whole := units * (k.whole + more*k.step)
	if task.RowBytes(columns) >= largeRow {
		whole += units * steps * time.Duration(c.Task.Batch) * largeRowTime
	}
	return coarse8(whole + whole/4 + slack + k.reserve())
}

// reserve is what of a window is left for zeros.
func (k cost) reserve() time.Duration { return 2*k.zeros + beat }

// coarse8 rounds up to four significant bits.
func coarse8(d time.Duration) time.Duration {
	shift := max(0, bits.Len64(uint64(d))-4)
	return (d + 1<<shift - 1) >> shift << shift
}

// contribute is Contribute, in a window that does not depend on the data: it ends at the
// window's end, with zeros where training did not come to anything. dual keeps what is
// returned, and nothing else that was tried: nil keeps nothing.
func (c *client) contribute(ctx context.Context, j *job, dual *Dual, k Contribution) ([]int32, error) {
	if !c.silent() {
		k.Dual = dual.Round()
		symbols, err := Contribute(ctx, c.trainer, j.read.data, k)
		if err == nil {
			k.Dual.Keep()
		}
		return symbols, err
	}
	size, err := c.measure(ctx, j, k)
	if err != nil {
		return nil, err
	}
	window := size.window(k, j.form.Columns())
	began := time.Now()
	inTime, cancel := context.WithDeadline(ctx, began.Add(window-size.reserve()))
	defer cancel()
	type came struct {
		symbols []int32
		err     error
		unread  error // of data that could not be read, or is not what its owner asks for
	}
	done, failed := make(chan came, 1), k.Failed
	trained := dual.Round()
	c.wg.Go(func() {
		var x came
		x.unread = j.read.wait(inTime)
		nothing := x.unread != nil
		if !nothing {
			k := k
			k.Failed = func(err error) { nothing = true; failed(err) }
			k.Dual = trained
			x.symbols, x.err = Contribute(inTime, c.trainer, j.read.data, k)
		}
		done <- x
		if nothing || x.err != nil {
			c.pretend(inTime, j, k)
		}
	})
	x, said := came{}, trained
	select {
	case x = <-done:
	case <-inTime.Done():
		x.err = errLate
	}
	if x.err != nil || x.unread != nil {
		beyond := new(PolicyError)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err() //nolint:wrapcheck // the round's end
		case x.unread != nil: // by the owner's limits too: a refusal would tell how much there is
			if x.err = x.unread; inTime.Err() != nil {
				x.err = errLate
			}
		case errors.As(x.err, &beyond), errors.Is(x.err, ErrMisfit):
			return nil, x.err // which hold for any data
		case inTime.Err() != nil:
			x.err = errLate
		}
		c.cfg.Log.Warn("training came to nothing", "round", k.Round, "err", x.err)
		failed(x.err)
		k := k // the other one may still be at work
		k.Dual = dual.Round()
		said = k.Dual
		if x.symbols, err = c.zeros(ctx, k); err != nil {
			return nil, err
		}
	}
	if err := until(ctx, began.Add(window)); err != nil {
		clear(x.symbols)
		return nil, err
	}
	said.Keep()
	return x.symbols, nil
}

// pretend trains on made-up examples, for nothing: a device that is busy answers later, in a
// browser above all, and one whose training has failed must not answer sooner.
func (c *client) pretend(ctx context.Context, j *job, k Contribution) {
	k.Noise, k.Failed, k.Progress, k.Groups, k.Task.Epochs = nil, nil, nil, 0, 0
	symbols, err := Contribute(ctx, c.trainer, j.madeUp(k.Task.Batch), k)
	clear(symbols)
	if err != nil && ctx.Err() == nil {
		c.cfg.Log.Debug("made-up examples could not be trained on", "err", err)
	}
}

// zeros is the contribution of a device that has nothing to contribute, with the noise of one
// that has.
func (c *client) zeros(ctx context.Context, k Contribution) ([]int32, error) {
	k.Noise, k.Progress = nil, nil
	return Contribute(ctx, c.trainer, &Data{}, k)
}

// measure finds what made-up examples take: in the first round of a program, and every so many
// from then on. Data that is still being read waits meanwhile, so that how long that takes
// does not show.
func (c *client) measure(ctx context.Context, j *job, k Contribution) (cost, error) {
	which := measure{sha256.Sum256(k.Task.Program), k.Task.Rank}
	if known, ok := c.speed.measured(which); ok {
		return known, nil
	}
	j.read.quiet.Lock()
	defer j.read.quiet.Unlock()
	data := j.madeUp(k.Task.Batch)
	k.Work /= float64(max(1, k.Units) * max(1, k.Groups)) // as Contribute divides it
	k.Noise, k.Failed, k.Units, k.Groups, k.Task.Epochs, k.MinExamples = nil, nil, 1, 0, 0, 0
	most := max(1, k.Task.Steps)
	var of cost
	for _, steps := range []int{1, min(3, most)} { // the first loads the program
		var last time.Time
		k.Task.Steps, of.steps, of.step = steps, steps, 0
		k.Progress = func(done, _ int64) {
			now := time.Now()
			if done > 1 {
				of.step = max(of.step, now.Sub(last))
			}
			last = now
		}
		from := time.Now()
		symbols, err := Contribute(ctx, c.trainer, data, k)
		if err != nil {
			return cost{}, err
		}
		of.whole = time.Since(from)
		clear(symbols)
	}
	if of.step == 0 { // a trainer that tells no steps
		of.step = of.whole / time.Duration(of.steps)
	}
	from := time.Now()
	if _, err := c.zeros(ctx, k); err != nil {
		return cost{}, err
	}
	of.zeros = time.Since(from)
	c.speed.remember(which, of)
	return of, nil
}

// madeUp is a batch of examples in the job's form that nobody has, and that take a program as
// long as any: every row counts, and nothing is padding, which programs leave out.
func (j *job) madeUp(batch int) *Data {
	columns, rows := j.form.Columns(), max(1, batch)
	l := &local{columns: columns, n: rows, rows: task.NewBatch(columns, rows)}
	if j.HeldOut > 0 { // scored, too, and as many are trained on
		l.n, l.rows = 2*rows, task.NewBatch(columns, 2*rows)
		for i := range rows {
			l.held = append(l.held, rows+i)
		}
	}
	for _, v := range l.rows {
		limit := uint32(max(1, v.Limit))
		for i := range v.I32 {
			x := uint32(i) * 2654435761 % limit
			if int(x) == j.layout.Config.PadTokenID {
				x = (x + 1) % limit
			}
			v.I32[i] = int32(x)
		}
		for i := range v.F32 {
			v.F32[i] = 1
		}
	}
	return &Data{units: []unit{{data: l}}}
}

// reading is the data of a job on its way from its owner's source into the task's columns: in
// a goroutine of its own where the device is silent.
type reading struct {
	once sync.Once
	done chan struct{} // closed when data and err are there
	data *Data         // whose contributions the noise hides
	err  error

	quiet sync.Mutex // held while nothing else may take time
	since time.Time  // by quiet: when reading last let others go on
}

// wait waits for the data.
func (r *reading) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pause is called between two examples: it waits while something is measured, and lets a
// browser do other things.
func (r *reading) pause(ctx context.Context) error {
	r.quiet.Lock()
	now := time.Now()
	long := now.Sub(r.since) > 20*time.Millisecond
	if long {
		r.since = now
	}
	r.quiet.Unlock()
	if !long {
		return nil
	}
	return sleep(ctx, time.Millisecond)
}

// readSilently reads the data while the device goes on, and returns when readingTime has gone
// by, whatever has become of it. Only the owner is told of data that cannot be used: this device
// takes part with zeros.
func (c *client) readSilently(ctx context.Context, j *job) error {
	from := time.Now()
	c.wg.Go(func() {
		j.read.once.Do(func() {
			defer close(j.read.done)
			if j.read.data, j.read.err = c.readData(j, func() error { return j.read.pause(c.life) }); j.read.err != nil && c.life.Err() == nil {
				c.cfg.Log.Warn("the data cannot be used", "err", j.read.err)
				c.events.send(Event{State: Preparing, Text: fmt.Sprintf("%s: this device takes part with zeros, so that nobody can tell; stop it and fix the cause", Explain(j.read.err)), Limits: PolicyErrors(j.read.err)})
			}
		})
	})
	return until(ctx, from.Add(readingTime(j.form.Columns(), j.Sequence)))
}
