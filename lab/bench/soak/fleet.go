//go:build linux

package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/edge"
)

// fleet is the devices.
type fleet struct {
	o   options
	log *slog.Logger
	wg  sync.WaitGroup

	mu         sync.Mutex
	devices    []*device
	errs       []error // by mu: ends that nobody asked for
	gone, back int     // by mu
}

// device is one identity; it is not running while it is away.
type device struct {
	key       ed25519.PrivateKey
	stop      context.CancelFunc // nil while it is away
	committed int                // rounds
	last      edge.State
}

func newFleet(o options, log *slog.Logger) (*fleet, error) {
	f := &fleet{o: o, log: log}
	for range o.devices {
		key, err := edge.NewIdentity()
		if err != nil {
			return nil, fmt.Errorf("identity: %w", err)
		}
		f.devices = append(f.devices, &device{key: key})
	}
	return f, nil
}

func (f *fleet) start(ctx context.Context, token string) {
	for i := range f.devices {
		f.run(ctx, i, token)
	}
}

// run starts a device.
func (f *fleet) run(ctx context.Context, i int, token string) {
	ctx, stop := context.WithCancel(ctx)
	f.mu.Lock()
	d := f.devices[i]
	d.stop = stop
	f.mu.Unlock()
	f.wg.Go(func() {
		defer stop()
		err := edge.Run(ctx, edge.Config{
			Token: token, Identity: d.key, Data: edge.Examples(examples(i)), Trainer: idle{}, Agent: "soak",
			Log: f.log.With("device", i), BackoffMin: 200 * time.Millisecond, BackoffMax: 5 * time.Second,
			Progress: func(e edge.Event) {
				f.mu.Lock()
				defer f.mu.Unlock()
				d.last = e.State
				if e.State == edge.Committed {
					d.committed++
				}
			},
		})
		if !errors.Is(err, context.Canceled) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.errs = append(f.errs, fmt.Errorf("device %d ended in state %v: %w", i, d.last, errors.Join(err, errEnded)))
		}
	})
}

var errEnded = errors.New("nobody asked it to")

// churn takes one device away, at any point of what it does, for up to a period.
func (f *fleet) churn(ctx context.Context, token string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := rand.IntN(len(f.devices))
	d := f.devices[i]
	if d.stop == nil {
		return // it is away
	}
	d.stop()
	d.stop = nil
	f.gone++
	f.wg.Go(func() {
		select {
		case <-time.After(time.Duration(rand.Int64N(int64(f.o.every)))):
		case <-ctx.Done():
			return
		}
		f.mu.Lock()
		f.back++
		f.mu.Unlock()
		f.run(ctx, i, token)
	})
}

// wait ends with all devices.
func (f *fleet) wait() error {
	f.wg.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.errs...)
}

func (f *fleet) committed() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := make([]int, len(f.devices))
	for i, d := range f.devices {
		n[i] = d.committed
	}
	return n
}

// working is how many devices are in a round now, or have just made one.
func (f *fleet) working() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.devices {
		switch d.last {
		case edge.Keying, edge.Fetching, edge.Training, edge.Uploading, edge.Collecting, edge.Revealing, edge.Committed:
			if d.stop != nil {
				n++
			}
		}
	}
	return n
}

// behind are the devices that have finished no round since before.
func (f *fleet) behind(before []int) (late []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, d := range f.devices {
		if d.committed <= before[i] {
			late = append(late, fmt.Sprintf("%d (%v)", i, d.last))
		}
	}
	return late
}

func (f *fleet) allBeyond(before []int) bool { return len(f.behind(before)) == 0 }

// idle takes its time and learns nothing.
type idle struct{}

func (idle) Train(ctx context.Context, t edge.Task) ([]float32, error) {
	select {
	case <-time.After(time.Second + time.Duration(rand.Int64N(int64(2*time.Second)))):
		return make([]float32, len(t.Start)), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (idle) Close() error { return nil }

func examples(i int) *dataset.Set {
	return &dataset.Set{Labels: labels, Examples: []dataset.Example{{Text: fmt.Sprintf("fox %d", i), Label: i % 2}}}
}
