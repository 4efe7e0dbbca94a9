package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/starling-fl/starling/coordinator/relay"
	"github.com/starling-fl/starling/coordinator/store"
	"github.com/starling-fl/starling/internal/app/evaluation"
)

// errYielded ends an owner that cannot serve while another coordinator, which can, waits for its lease.
var errYielded = errors.New("this coordinator cannot serve and left its lease to the one on standby")

const (
	lookEvery  = 2 * time.Second
	mostPauses = 15 * time.Second // between two tries to serve again
)

// watch ends run by yield once this process cannot serve and another one can, at two looks in a row.
func watch(ctx context.Context, s served, of leased, log *slog.Logger, yield context.CancelCauseFunc) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for failed := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		why := ""
		if of.StandsBy() { // else nothing follows, and nothing is looked at: a check of the store writes
			why = s.Unfit(ctx)
		}
		if why == "" {
			failed = 0
			continue
		}
		if failed++; failed > 1 {
			log.Error("this coordinator cannot serve: the one on standby takes over", "why", why)
			yield(errYielded)
			return
		}
	}
}

// passes reports whether an end is of what a service depends on, and not of its job: the same process may serve later.
func passes(err error) bool {
	for _, passing := range []error{errYielded, store.ErrUnreachable, store.ErrFenced, store.ErrLeased, relay.ErrUnreachable} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

// again runs once more what ended by something that passes, if it had served or stood by before: at its first start
// a wrong address is an error at once. It waits longer each time, and after yielding as long as another coordinator
// needs to take the lease.
func (c *Config) again(ctx context.Context, run func(begun *bool) (evaluation.Printer, error)) (evaluation.Printer, error) {
	ever := false
	for pause := time.Second; ; pause = min(2*pause, mostPauses) {
		begun := false
		report, err := run(&begun)
		ever = ever || begun
		if !ever || !passes(err) || ctx.Err() != nil {
			return report, err
		}
		if begun {
			pause = time.Second
		}
		wait := pause
		if errors.Is(err, errYielded) {
			wait = 2 * store.LeaseTerm
		}
		fmt.Fprintf(c.Stderr, "%v; trying again in %v\n", err, wait)
		orSilent(c.Log).Warn("serving ended and is tried again", "error", err, "in", wait)
		select {
		case <-ctx.Done():
			return report, err
		case <-time.After(wait):
		}
	}
}
