package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/simulate"
	"github.com/starling-fl/starling/wasm"
)

// Worker takes items from the queue. It keeps nothing but a cache.
type Worker struct {
	// Name is what this worker is called where its results are told to be wrong; default
	// the host's and the process's.
	Name     string
	Version  string
	Engine   string       // what Trainer computes with: items of another are left alone
	Parallel int          // clients that train side by side, at least 1
	Log      *slog.Logger // may be nil
	Trainer  edge.Trainer // nil: compiled programs
	// Done is called after each item with its number of clients; may be nil.
	Done func(clients int)
	// AckWait is how long an item belongs to a worker that has not been heard of:
	// then another gets it. Default 15 s. The last worker that came sets it for all.
	AckWait time.Duration

	broker *Broker

	mu      sync.Mutex
	bases   map[blob]*model.Base // by mu; the last one only
	blobs   map[blob][]byte      // by mu; programs and starts of late
	order   []blob               // of blobs, oldest first; by mu
	working *simulate.Assignment // by mu: the last one made
	of      item                 // whose assignment working is; by mu
}

// keptBlobs is how many programs and starts a worker keeps.
const keptBlobs = 64

// Run works until ctx ends, which is no error. An item in hand is given back.
func (w *Worker) Run(ctx context.Context, b *Broker) error {
	w.broker, w.bases, w.blobs = b, map[blob]*model.Base{}, map[blob][]byte{}
	if w.Log == nil {
		w.Log = slog.New(slog.DiscardHandler)
	}
	if w.Name == "" {
		host, _ := os.Hostname()
		w.Name = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if w.AckWait == 0 {
		w.AckWait = 15 * time.Second
	}
	own := w.Trainer == nil
	if own {
		w.Trainer = edge.NewProgramTrainer(max(1, w.Parallel))
	}
	consumer, err := b.js.CreateOrUpdateConsumer(ctx, itemsStream, jetstream.ConsumerConfig{
		Durable: workersName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: w.AckWait, MaxDeliver: -1, MaxAckPending: -1,
	})
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	var wg sync.WaitGroup
	for range max(1, w.Parallel) {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := w.next(ctx, consumer); err != nil && ctx.Err() == nil {
					w.Log.Warn("no item", "error", err)
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
					}
				}
			}
		})
	}
	wg.Wait()
	if own {
		return w.Trainer.Close()
	}
	return nil
}

// next takes one item, works on it and answers.
func (w *Worker) next(ctx context.Context, consumer jetstream.Consumer) error {
	batch, err := consumer.Fetch(1, jetstream.FetchMaxWait(2*time.Second))
	if err != nil {
		return fmt.Errorf("ask for work: %w", err)
	}
	for m := range batch.Messages() {
		w.handle(ctx, m)
	}
	if err := batch.Error(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("wait for work: %w", err)
	}
	return nil
}

// handle answers an item, or gives it back.
func (w *Worker) handle(ctx context.Context, m jetstream.Msg) {
	back := func(why string, err error, after time.Duration) {
		w.Log.Warn("item given back", "why", why, "error", err)
		if err := m.NakWithDelay(after); err != nil {
			w.Log.Warn("giving back", "error", err)
		}
	}
	data, err := w.broker.unwrap(ctx, sealedItem, m.Data(), maxItem)
	if errors.Is(err, errSeal) {
		back("it is not of a run that this worker has the key of", nil, 5*time.Second)
		return
	} else if err != nil {
		back("it cannot be read", err, 5*time.Second)
		return
	}
	it, err := decodeItem(data)
	if err != nil {
		w.Log.Error("an unreadable item is dropped", "error", err)
		w.settle(m.Term())
		return
	}
	if it.Version != w.Version || it.Engine != w.Engine {
		back(fmt.Sprintf("it was made by %s for %q, this is %s with %q", it.Version, it.Engine, w.Version, w.Engine), nil, 2*time.Second)
		return
	}
	if _, err := w.broker.alive.Get(ctx, it.Run); errors.Is(err, jetstream.ErrKeyNotFound) {
		w.settle(m.Term()) // its run has ended or died
		return
	} else if err != nil {
		back("its run cannot be asked after", err, 2*time.Second)
		return
	}
	working, stop := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() {
		beat := time.NewTicker(w.AckWait / 3)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				w.settle(m.InProgress())
			case <-working.Done():
				return
			}
		}
	})
	o, err := w.work(working, it)
	stop()
	beating.Wait()
	if err != nil {
		if ctx.Err() != nil {
			back("it was interrupted", err, 0)
		} else {
			back("it cannot be done here", err, time.Second) // not again at once
		}
		return
	}
	o.Run, o.Worker = it.Run, w.Name
	answer, err := w.broker.wrap(ctx, sealedResult, o)
	if err == nil {
		_, err = w.broker.js.Publish(ctx, resultsPrefix+it.Run, answer)
	}
	if err != nil {
		back("its result cannot be sent", err, time.Second)
		return
	}
	w.settle(m.Ack())
	if w.Done != nil {
		w.Done(len(it.Clients))
	}
}

func (w *Worker) settle(err error) {
	if err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		w.Log.Warn("acknowledging", "error", err)
	}
}

// work lets an item's clients contribute. An error is this worker's trouble; what
// would fail everywhere is in the outcome.
func (w *Worker) work(ctx context.Context, it *item) (*outcome, error) {
	a, err := w.assignment(ctx, it)
	if errors.Is(err, simulate.ErrConfig) {
		return &outcome{Number: it.Number, Failed: err.Error()}, nil
	} else if err != nil {
		return nil, err
	}
	o := &outcome{Number: it.Number}
	sum := make([]int64, a.Size())
	for _, c := range it.Clients {
		set, err := c.set()
		if err != nil {
			return nil, err
		}
		symbols, norms, err := a.Contribute(ctx, w.Trainer, simulate.Client{Number: c.Number, Seed: c.Seed, Set: set})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, wasm.ErrArithmetic) { // others may have it
			return nil, err
		}
		if err != nil { //lint:ignore nilerr the outcome carries it to anyone who asked
			return &outcome{Number: it.Number, Failed: err.Error()}, nil
		}
		if symbols == nil {
			o.Empty++
		}
		for i, v := range symbols {
			sum[i] += int64(v)
		}
		o.Places, o.Norms = append(o.Places, c.Place), append(o.Norms, norms)
	}
	o.Sum = varints(sum)
	return o, nil
}

// assignment is what the item's clients share: the last one's, or a new one.
func (w *Worker) assignment(ctx context.Context, it *item) (*simulate.Assignment, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.working != nil && w.of.Plan == it.Plan && w.of.Base == it.Base && w.of.Program == it.Program && w.of.Start == it.Start {
		return w.working, nil
	}
	base := w.bases[it.Base]
	if base == nil {
		b, err := w.broker.get(ctx, w.broker.objects, it.Base, maxBase)
		if err != nil {
			return nil, err
		}
		if base, err = model.OpenBlob(bytes.NewReader(b), int64(len(b))); err != nil {
			return nil, fmt.Errorf("%w: base: %w", simulate.ErrConfig, err)
		}
		clear(w.bases)
		w.bases[it.Base] = base
	}
	program, err := w.blob(ctx, it.Program, maxProgram)
	if err != nil {
		return nil, err
	}
	packed, err := w.blob(ctx, it.Start, 5*int64(it.Plan.Dim)+1<<16)
	if err != nil {
		return nil, err
	}
	start, err := quant.UnpackUpdate(packed, nil, it.Plan.Dim)
	if err != nil {
		return nil, fmt.Errorf("%w: start: %w", simulate.ErrConfig, err)
	}
	a, err := simulate.NewAssignment(it.Plan, base, it.Base, program, start)
	if err != nil {
		return nil, err
	}
	w.working, w.of = a, *it
	w.of.Clients = nil
	return a, nil
}

// blob is called with mu held.
func (w *Worker) blob(ctx context.Context, sum blob, most int64) ([]byte, error) {
	if b, ok := w.blobs[sum]; ok {
		return b, nil
	}
	b, err := w.broker.get(ctx, w.broker.objects, sum, most)
	if err != nil {
		return nil, err
	}
	w.blobs[sum] = b
	if w.order = append(w.order, sum); len(w.order) > keptBlobs {
		delete(w.blobs, w.order[0])
		w.order = w.order[1:]
	}
	return b, nil
}
