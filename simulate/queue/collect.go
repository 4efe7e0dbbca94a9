package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// Patience is after how long without a result the log says so; default 30 s.
	Patience time.Duration
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
	waiting, err := r.publish(ctx, it, n, put)
	if err != nil {
		return nil, err
	}
	beat := time.NewTicker(aliveFor / 3)
	defer beat.Stop()
	arrived := make(chan *outcome)
	failed := make(chan error, 1)
	done := make(chan struct{})
	defer func() { cancel(); messages.Stop(); <-done }()
	go func() {
		defer close(done)
		r.receive(ctx, messages, arrived, failed)
	}()
	silence := time.NewTicker(r.Patience)
	defer silence.Stop()
	for len(waiting) > 0 {
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
			r.log.Warn("waiting for workers: start some with starling worker", "engine", r.engine, "items", len(waiting), "silent_for", r.Patience)
		case o := <-arrived:
			silence.Reset(r.Patience)
			places, ours := waiting[o.Number]
			if !ours {
				continue // said twice, or of a round that is over
			}
			if o.Failed != "" {
				return nil, fmt.Errorf("queue: a worker: %s", o.Failed)
			}
			t, err := o.tally(a, places, n)
			if err != nil {
				return nil, err
			}
			delete(waiting, o.Number)
			total.Merge(t)
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

// publish queues the cohort's items and returns the places of each.
func (r *Reducer) publish(ctx context.Context, it *item, n int, put func(at int) (simulate.Client, error)) (map[uint64][]int, error) {
	waiting := map[uint64][]int{}
	for from := 0; from < n; from += itemClients {
		one := *it
		one.Number, one.Clients = r.number, nil
		r.number++
		for at := from; at < min(n, from+itemClients); at++ {
			c, err := put(at)
			if err != nil {
				return nil, err
			}
			one.Clients = append(one.Clients, flatten(at, c))
			waiting[one.Number] = append(waiting[one.Number], at)
		}
		data, err := r.broker.wrap(ctx, one)
		if err != nil {
			return nil, err
		}
		if _, err := r.broker.js.Publish(ctx, itemsSubject, data, jetstream.WithMsgID(fmt.Sprintf("%s/%d", r.run, one.Number))); err != nil {
			return nil, fmt.Errorf("queue: %w", err)
		}
	}
	return waiting, nil
}

// receive hands on outcomes until ctx ends.
func (r *Reducer) receive(ctx context.Context, messages jetstream.MessagesContext, to chan<- *outcome, failed chan<- error) {
	for {
		m, err := messages.Next()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, jetstream.ErrMsgIteratorClosed) {
				failed <- fmt.Errorf("queue: results: %w", err)
			}
			return
		}
		data, err := r.broker.unwrap(ctx, m.Data())
		if err != nil {
			r.log.Warn("a result cannot be read", "error", err)
			continue
		}
		var o outcome
		if err := decoder.Unmarshal(data, &o); err != nil {
			r.log.Warn("a result cannot be read", "error", err)
			continue
		}
		select {
		case to <- &o:
		case <-ctx.Done():
			return
		}
	}
}
