package coordinator

import (
	"context"
	"sync"
	"time"

	"github.com/starling-fl/starling/secagg"
)

// Signatures and commitments of many devices are checked at once for a third of what
// they take one by one (secagg.Settle). Where so many are drawn that it matters,
// messages wait a moment for others: the first of a batch waits, and settles all that
// have come meanwhile.
const (
	settleFrom = 256 // devices in the round
	settleMost = 64  // messages in a batch
	settleWait = 100 * time.Millisecond
)

// batches gathers a round's messages.
type batches struct {
	mu   sync.Mutex
	open *batch // takes more; nil: none does
}

type batch struct {
	events []judgedEvent
	full   chan struct{} // closed when nothing more goes in
}

// add returns the batch that ev is the first of, once it is full, settleWait has
// passed or ctx is over; nil where another is the first.
func (b *batches) add(ctx context.Context, ev judgedEvent) []judgedEvent {
	b.mu.Lock()
	own := b.open
	first := own == nil
	if first {
		own = &batch{full: make(chan struct{})}
		b.open = own
	}
	own.events = append(own.events, ev)
	if len(own.events) == settleMost {
		close(own.full)
		b.open = nil
	}
	b.mu.Unlock()
	if !first {
		return nil
	}
	timer := time.NewTimer(settleWait)
	defer timer.Stop()
	select {
	case <-own.full:
	case <-timer.C:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == own {
		b.open = nil
	}
	return own.events
}

// settle has the signatures or commitments of a message checked, with those of others
// where there are many devices, and hands on the events of those that this call was the
// one to check.
func (c *Coordinator) settle(ev judgedEvent) []judgedEvent {
	settled := []judgedEvent{ev}
	if len(ev.r.cohort) >= c.settleFrom {
		settled = ev.r.signed.add(ev.r.life, ev)
	}
	if len(settled) == 0 {
		return nil
	}
	msgs := make([]*secagg.Judged, len(settled))
	for i, ev := range settled {
		msgs[i] = ev.msg
	}
	c.workers.do(func() { secagg.Settle(msgs) })
	return settled
}
