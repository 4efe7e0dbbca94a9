package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/edge"
	"github.com/starling-fl/starling/internal/leaf/pipes"
	"github.com/starling-fl/starling/internal/testkit/watchdog"
	"github.com/starling-fl/starling/job"
	"github.com/starling-fl/starling/quant"
)

// slowly trains for a time of the bubble's clock.
type slowly struct {
	constant
	takes time.Duration
}

func (s slowly) Train(ctx context.Context, t edge.Task) ([]float32, error) {
	select {
	case <-time.After(s.takes):
		return s.constant.Train(ctx, t)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bubbled is a coordinator and its devices in a synctest bubble, over lines that
// can be cut.
type bubbled struct {
	t     *testing.T
	cfg   Config
	lines []*line
	// trainer is device i's; nil: the configuration's.
	trainer func(i int) edge.Trainer
	blobs   []*line // blobs come by a line of their own, of the same network
	co      *coordinator.Coordinator

	mu     sync.Mutex
	seen   []monitor.Status
	events []map[edge.State]int // by device
	errs   []error              // what edge.Run returned, by device
}

// bubble runs a job to its end, or for a day, in a bubble. progress, if any, is
// called in the engine's goroutine; before gets the bubble before anything starts.
func bubble(t *testing.T, cfg Config, before func(b *bubbled), progress func(b *bubbled, p monitor.Status)) (b *bubbled, runErr error) {
	t.Helper()
	// The compressor's pools are made at their first use, and must not belong to a
	// bubble.
	full, _, err := quant.PackUpdate([]float32{1}, nil, "f32", "zstd")
	ok(t, err)
	_, err = quant.UnpackUpdate(full, nil, 1)
	ok(t, err)
	b = &bubbled{t: t, cfg: cfg, errs: make([]error, len(cfg.Clients))}
	synctest.Test(t, func(t *testing.T) {
		cfg := cfg
		cfg.Coordinator.Hosts = []string{} // devices bring their own trainer
		cfg.Coordinator.Progress = func(p monitor.Status) {
			b.mu.Lock()
			b.seen = append(b.seen, p)
			b.mu.Unlock()
			if progress != nil {
				progress(b, p)
			}
		}
		var err error
		b.co, err = coordinator.New(cfg.Coordinator)
		ok(t, err)
		wires := pipes.New()
		served, serving := make(chan error, 1), &http.Server{}
		srv, err := server.New(b.co, server.Config{})
		ok(t, err)
		serving.Handler = srv.Handler()
		go func() { served <- serving.Serve(wires) }()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range cfg.Clients {
			b.lines = append(b.lines, &line{net: wires})
			b.blobs = append(b.blobs, &line{net: wires})
			b.events = append(b.events, map[edge.State]int{})
		}
		if before != nil {
			before(b)
		}
		token := srv.Token("http://coordinator.test", nil)
		var wg sync.WaitGroup
		for i := range cfg.Clients {
			wg.Go(func() { b.errs[i] = b.device(ctx, i, token) })
		}
		watchdog.Within(t, 24*time.Hour, "the job's end", func() { runErr = b.co.Run(ctx) }, b.sides()...)
		watchdog.Within(t, time.Hour, "the devices' end", wg.Wait, b.sides()...)
		ok(t, errors.Join(b.co.Close(), serving.Close()))
		<-served
	})
	return b, runErr
}

func (b *bubbled) device(ctx context.Context, i int, token string) error {
	key, err := edge.NewIdentity()
	if err != nil {
		return err
	}
	client, err := edge.NewHTTPClient(token, b.blobs[i].dial)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	policy, trainer := edge.TrustingPolicy(), b.cfg.Trainer
	if b.trainer != nil {
		trainer = b.trainer(i)
	}
	return edge.Run(ctx, edge.Config{
		Token: token, Identity: key, Data: edge.Examples(b.cfg.Clients[i]), Trainer: trainer, HTTP: client,
		Policy:     &policy, // coordinator and data are in one process
		AllowPlain: true,    // and so is the network
		BackoffMin: 100 * time.Millisecond, BackoffMax: 5 * time.Second,
		Dial: func(ctx context.Context, t string) (edge.Conn, error) {
			return edge.DialSocket(ctx, t, b.lines[i].dial)
		},
		Progress: func(e edge.Event) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.events[i][e.State]++
		},
	})
}

func (b *bubbled) sides() []watchdog.Side {
	return []watchdog.Side{
		func() string { return fmt.Sprintf("coordinator: %+v", b.co.Status()) },
		func() string {
			b.mu.Lock()
			defer b.mu.Unlock()
			return fmt.Sprintf("devices: %v, ended with %v", b.events, b.errs)
		},
	}
}

// An outage of one second to a minute, begun in any state of a round, ends no
// device: it continues with that round or with the next. The coordinator learns of
// it only when the device is back, or by its pings.
func TestOutages(t *testing.T) {
	states := []string{
		round.Gathering.String(), round.Keying.String(), round.Sharing.String(), round.Collecting.String(),
		round.Confirming.String(), round.Unmasking.String(), round.Releasing.String(), monitor.StateCommitted,
	}
	for _, state := range states {
		for _, lasts := range []time.Duration{1, 20, 30, 40, 60} {
			t.Run(fmt.Sprintf("%s/%ds", state, lasts), func(t *testing.T) {
				t.Parallel()
				cfg := config(t, 5)
				cfg.Trainer = slowly{0.02, 25 * time.Second}
				cfg.Coordinator.Job.Rounds = 8
				cfg.Coordinator.Job.Deadlines = job.Default().Deadlines
				cut := false
				b, err := bubble(t, cfg, nil, func(b *bubbled, p monitor.Status) {
					if !cut && p.State == state && (p.Round == 2 || state == monitor.StateCommitted) {
						cut = true
						b.lines[0].cut(lasts * time.Second)
						b.blobs[0].cut(lasts * time.Second)
					}
				})
				if err != nil || !cut {
					t.Fatalf("cut %v, Run ended with %v", cut, err)
				}
				if got := b.co.Result(); got.Rounds != 8 || got.Abandoned != 0 {
					t.Errorf("%d rounds, %d abandoned", got.Rounds, got.Abandoned)
				}
				for i, err := range b.errs {
					if err != nil {
						t.Errorf("device %d ended with %v after %v", i, err, b.events[i])
					}
				}
				if n := b.events[0][edge.Committed]; n < 2 {
					t.Errorf("the device that was cut off finished %d rounds: %v", n, b.events[0])
				}
			})
		}
	}
}
