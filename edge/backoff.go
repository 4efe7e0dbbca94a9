package edge

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff yields waits before reconnecting: uniform in 0..ceiling ("full
// jitter", so that a fleet that lost its coordinator at once does not come back
// at once), the ceiling doubling from least to most.
type backoff struct {
	least, most time.Duration
	ceiling     time.Duration
}

// next is the next wait; it is at least floor, with jitter on top.
func (b *backoff) next(floor time.Duration) time.Duration {
	if b.ceiling == 0 {
		b.ceiling = b.least
	}
	wait := floor + rand.N(b.ceiling+1)
	b.ceiling = min(2*b.ceiling, b.most)
	return wait
}

// reset starts over after a session that was of use.
func (b *backoff) reset() { b.ceiling = 0 }

// sleep waits, or returns ctx's error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
