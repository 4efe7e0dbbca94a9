package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/coordinator/server"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/evaluation"
)

// fitness is a served job that can or cannot be served here.
type fitness struct {
	why  atomic.Value
	asks atomic.Int32
}

func (*fitness) Serve(context.Context, *server.Endpoint) error      { return nil }
func (*fitness) ServeAdmin(context.Context, *server.Endpoint) error { return nil }
func (*fitness) AdminAt(string) error                               { return nil }
func (f *fitness) Unfit(context.Context) string {
	f.asks.Add(1)
	return f.why.Load().(string)
}

type lease struct{ standsBy bool }

func (lease) Owns() bool       { return true }
func (l lease) StandsBy() bool { return l.standsBy }

// TestWatch: an owner leaves its lease where it cannot serve for two looks in a row and another one can, and not else.
func TestWatch(t *testing.T) {
	for name, c := range map[string]struct {
		why      string
		standsBy bool
		heals    time.Duration
		want     bool
	}{
		"cut off":              {"gateways: none", true, time.Hour, true},
		"nobody stands by":     {"gateways: none", false, time.Hour, false},
		"it can serve":         {"", true, time.Hour, false},
		"back within one look": {"gateways: none", true, lookEvery + lookEvery/2, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, yield := context.WithCancelCause(t.Context())
				f := &fitness{}
				f.why.Store(c.why)
				go watch(ctx, f, lease{c.standsBy}, orSilent(nil), yield)
				time.Sleep(c.heals)
				f.why.Store("")
				time.Sleep(time.Minute)
				if got := errors.Is(context.Cause(ctx), errYielded); got != c.want {
					t.Errorf("yielded: %v", got)
				}
				if n := f.asks.Load(); !c.standsBy && n > 0 {
					t.Errorf("%d checks, one of which writes to the store, for nobody", n)
				}
				yield(nil)
			})
		})
	}
}

// TestAgain: what a service depends on may go away and come back; what is wrong from the start, or with the job, is an
// error at once.
func TestAgain(t *testing.T) {
	for name, c := range map[string]struct {
		ends   []error
		begins int // the run that reaches its state first
		runs   int
	}{
		"a wrong address":       {[]error{store.ErrUnreachable, nil}, 9, 1},
		"no NATS at first":      {[]error{relay.ErrUnreachable, nil}, 9, 1},
		"a database's failover": {[]error{fmt.Errorf("commit: %w", store.ErrUnreachable), store.ErrUnreachable, store.ErrUnreachable, nil}, 0, 4},
		"its place was taken":   {[]error{store.ErrFenced, nil}, 0, 2},
		"NATS is away":          {[]error{errYielded, relay.ErrUnreachable, nil}, 0, 3},
		"a fault of the job":    {[]error{errors.New("the job cannot go on"), nil}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				_, err := (&Config{Stderr: io.Discard}).again(t.Context(), func(begun *bool) (evaluation.Printer, error) {
					*begun = runs == c.begins
					err := c.ends[runs]
					runs++
					return nil, err
				})
				if runs != c.runs || !errors.Is(err, c.ends[runs-1]) {
					t.Errorf("%d runs, %v; want %d", runs, err, c.runs)
				}
			})
		})
	}
}
