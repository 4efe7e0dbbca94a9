package coordinator

import (
	"time"
)

// Signatures and commitments of many devices are checked at once for a third of what
// they take one by one (secagg.VerifyBatch), and a goroutine a message costs as much as what
// it does for many of them. Where so many are drawn that it matters, messages wait a
// moment for others.
const (
	settleFrom  = 256     // devices in the round
	settleMost  = 64      // messages in a batch
	settleBytes = 4 << 20 // and what they take, but for one that alone takes more
	settleWait  = 50 * time.Millisecond
)

// batch is messages of a round that wait to be judged together; owned by the engine.
type batch struct {
	waiting judgedEvent
	bytes   int
	// timer rings when the first has waited long enough. Each batch has its own: a timer
	// that is set anew has the runtime walk over all there are, one a connection.
	timer *time.Timer
}

// add returns what is to be judged now, if the batch is full with a message of so many
// bytes.
func (b *batch) add(j judgement, bytes int) judgedEvent {
	if len(b.waiting) == 0 {
		b.timer = time.NewTimer(settleWait)
	}
	b.waiting, b.bytes = append(b.waiting, j), b.bytes+bytes
	if len(b.waiting) < settleMost && b.bytes < settleBytes {
		return nil
	}
	return b.take()
}

// ripe is the channel that yields when the batch is to be judged; none where nothing waits.
func (b *batch) ripe() <-chan time.Time {
	if b.timer == nil {
		return nil
	}
	return b.timer.C
}

// take empties the batch.
func (b *batch) take() judgedEvent {
	if b.timer != nil {
		b.timer.Stop()
	}
	all := b.waiting
	*b = batch{}
	return all
}
