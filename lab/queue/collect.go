package queue

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/simulate"
)

// itemClients is how many clients an item has at most: enough that a message is
// little beside their training, few enough that a dead worker costs little.
const itemClients = 16

// Reducer hands rounds to workers and adds up what they send. It belongs to one
// simulation.
type Reducer struct {
	broker  *Broker
	version string
	engine  string
	log     *slog.Logger
	run     string
	number  uint64 // of the next item
	// Patience is after how long without a result the log says so, and items that are
	// settled without one are handed out again; default 30 s.
	Patience time.Duration
	// Audit is the share of results that is computed again; by default none.
	Audit Audit
}

// NewReducer begins a run. version names the program and engine what it trains with:
// workers of another leave its items alone. log may be nil.
func NewReducer(b *Broker, version, engine string, log *slog.Logger) *Reducer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Reducer{broker: b, version: version, engine: engine, log: log, run: nuid.Next(), Patience: 30 * time.Second}
}

// Collect implements [simulate.Collect].
func (r *Reducer) Collect(ctx context.Context, a *simulate.Assignment, n int, put func(at int) (simulate.Client, error)) (*simulate.Tally, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	total := a.NewTally(n)
	if n == 0 {
		return total, nil
	}
	it, err := r.prepare(ctx, a)
	if err != nil {
		return nil, err
	}
	results, err := r.broker.js.OrderedConsumer(ctx, resultsStream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{resultsPrefix + r.run}, DeliverPolicy: jetstream.DeliverNewPolicy,
	})
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	messages, err := results.Messages()
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	stop := context.AfterFunc(ctx, messages.Stop)
	defer func() { stop(); messages.Stop() }()
	if err := r.live(ctx); err != nil {
		return nil, err
	}
	waiting := map[uint64]*pending{}
	for from := 0; from < n; from += itemClients {
		p := &pending{}
		for at := from; at < min(n, from+itemClients); at++ {
			p.places = append(p.places, at)
		}
		if err := r.publish(ctx, it, p, put, waiting); err != nil {
			return nil, err
		}
	}
	beat := time.NewTicker(aliveFor / 3)
	defer beat.Stop()
	arrived := make(chan *outcome)
	failed := make(chan error, 1)
	done := make(chan struct{})
	defer func() { cancel(); messages.Stop(); <-done }()
	go func() {
		defer close(done)
		r.receive(ctx, messages, limit(a), arrived, failed)
	}()
	audits := make(chan error, (n+itemClients-1)/itemClients)
	auditing := 0
	defer func() { // before the assignment and its trainer are used for something else
		cancel()
		for ; auditing > 0; auditing-- {
			if err := <-audits; err != nil {
				continue // the round has ended otherwise
			}
		}
	}()
	silence := time.NewTicker(r.Patience)
	defer silence.Stop()
	for len(waiting) > 0 || auditing > 0 {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case err := <-failed:
			return nil, err
		case <-beat.C:
			if err := r.live(ctx); err != nil {
				return nil, err
			}
		case <-silence.C:
			if len(waiting) == 0 {
				continue
			}
			r.log.Warn("waiting for workers: start some with starling worker", "engine", r.engine, "items", len(waiting), "silent_for", r.Patience)
			if err := r.find(ctx, it, put, waiting); err != nil {
				return nil, err
			}
		case err := <-audits:
			auditing--
			if err != nil {
				return nil, err
			}
		case o := <-arrived:
			silence.Reset(r.Patience)
			p, ours := waiting[o.Number]
			if !ours || o.Run != r.run {
				continue // said twice, or of a round that is over
			}
			delete(waiting, o.Number)
			t, err := o.tally(a, p.places, n)
			if o.Failed != "" {
				err = fmt.Errorf("a worker: %.1000q", o.Failed)
			}
			if err != nil {
				r.log.Warn("a result is refused", "worker", o.Worker, "error", err)
				if p.tries == maxTries {
					return nil, fmt.Errorf("queue: the clients at places %d to %d were tried %d times, the last by %.80q: %w",
						p.places[0], p.places[len(p.places)-1], p.tries, o.Worker, err)
				}
				if err := r.publish(ctx, it, p, put, waiting); err != nil {
					return nil, err
				}
				continue
			}
			total.Merge(t)
			if r.Audit.drawn() {
				auditing++
				go func() { audits <- r.Audit.hold(ctx, a, n, audited{o.Worker, p.places, t}, put) }()
			}
		}
	}
	return total, nil
}

// prepare stores what a round's items refer to, each round what has aged meanwhile. A
// base is encoded only where it is missing.
func (r *Reducer) prepare(ctx context.Context, a *simulate.Assignment) (*item, error) {
	it := &item{Version: r.version, Engine: r.engine, Run: r.run, Plan: a.Plan, Base: blob(a.BaseSHA256)}
	there, err := r.broker.has(ctx, it.Base)
	if err != nil {
		return nil, err
	}
	if !there {
		b, err := a.Base.Blob()
		if err != nil {
			return nil, fmt.Errorf("queue: base: %w", err)
		}
		if it.Base, err = r.broker.put(ctx, b); err != nil {
			return nil, err
		}
		if it.Base != blob(a.BaseSHA256) {
			return nil, errors.New("queue: the base's blob is another")
		}
	}
	if it.Program, err = r.broker.put(ctx, a.Program); err != nil {
		return nil, err
	}
	start, _, err := quant.PackUpdate(a.Start, nil, "f32", "none")
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	it.Start, err = r.broker.put(ctx, start)
	return it, err
}

// live says that this run is not dead.
func (r *Reducer) live(ctx context.Context) error {
	if _, err := r.broker.alive.Put(ctx, r.run, nil); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	return nil
}

// pending is an item without a result.
type pending struct {
	places   []int  // of its clients
	tries    int    // how often it was handed out
	sequence uint64 // of its message
}

// maxTries is how often an item is handed out whose results are refused.
const maxTries = 4

// publish hands an item out, under a number of its own each time.
func (r *Reducer) publish(ctx context.Context, it *item, p *pending, put func(at int) (simulate.Client, error), waiting map[uint64]*pending) error {
	one := *it
	one.Number, one.Clients = r.number, nil
	r.number++
	for _, at := range p.places {
		c, err := put(at)
		if err != nil {
			return err
		}
		flat, err := flatten(at, c)
		if err != nil {
			return err
		}
		one.Clients = append(one.Clients, flat)
	}
	data, err := r.broker.wrap(ctx, sealedItem, one)
	if err != nil {
		return err
	}
	ack, err := r.broker.js.Publish(ctx, itemsSubject, data)
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	p.tries++
	p.sequence = ack.Sequence
	waiting[one.Number] = p
	return nil
}

// find hands out again what somebody took from the queue without a result that can be read.
func (r *Reducer) find(ctx context.Context, it *item, put func(at int) (simulate.Client, error), waiting map[uint64]*pending) error {
	items, err := r.broker.js.Stream(ctx, itemsStream)
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	for number, p := range maps.Clone(waiting) {
		_, err := items.GetMsg(ctx, p.sequence)
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // it waits, or somebody has it in hand
		}
		if p.tries == maxTries {
			return fmt.Errorf("queue: the clients at places %d to %d were taken %d times without a readable result: a worker is hostile, "+
				"or another writer uses the queue", p.places[0], p.places[len(p.places)-1], p.tries)
		}
		r.log.Warn("an item got no result: handing it out again", "item", number)
		delete(waiting, number)
		if err := r.publish(ctx, it, p, put, waiting); err != nil {
			return err
		}
	}
	return nil
}

// limit is how many bytes a result may have.
func limit(a *simulate.Assignment) int64 {
	return 1<<16 + int64(a.Size())*binary.MaxVarintLen64 + int64(itemClients)*(32+9*int64(max(1, a.Providers)))
}

// receive passes on outcomes until ctx ends.
func (r *Reducer) receive(ctx context.Context, messages jetstream.MessagesContext, most int64, to chan<- *outcome, failed chan<- error) {
	for unread := 0; ; {
		m, err := messages.Next()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, jetstream.ErrMsgIteratorClosed) {
				failed <- fmt.Errorf("queue: results: %w", err)
			}
			return
		}
		data, err := r.broker.unwrap(ctx, sealedResult, m.Data(), most)
		var o outcome
		if err == nil {
			err = decoder.Unmarshal(data, &o)
		}
		if err != nil {
			if unread++; unread&(unread-1) == 0 { // anyone who floods us shall not fill our log, too
				r.log.Warn("results that cannot be read", "so_far", unread, "error", err)
			}
			continue
		}
		select {
		case to <- &o:
		case <-ctx.Done():
			return
		}
	}
}
