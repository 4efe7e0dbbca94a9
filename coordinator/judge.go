package coordinator

import (
	"encoding"
	"runtime"

	"github.com/starling-fl/starling/secagg"
)

// The arithmetic of devices' messages runs beside the engine: decoding, hashing,
// checking signatures, adding vectors up, for all shards at once. The engine keeps
// the order: it starts the work when the machine wants the message, decides when
// the result comes back as an event, and nothing but its decision changes a set or
// closes a turn. Vectors are added in any order; the sum is one of integers mod
// 2^w, so a reproducible run stays the same to the bit.

// judge does what is costly about a message.
type judge func() (*secagg.Judged, error)

// judging decodes a message of a turn and judges it.
func judging[M any, P interface {
	*M
	encoding.BinaryUnmarshaler
}](from secagg.ID, payload []byte, by func(secagg.ID, P) *secagg.Judged) judge {
	return func() (*secagg.Judged, error) {
		m := P(new(M))
		if err := m.UnmarshalBinary(payload); err != nil {
			return nil, err
		}
		return by(from, m), nil
	}
}

// judgedEvent is a message whose arithmetic is done.
type judgedEvent struct {
	r    *running
	d    *device
	turn secagg.Turn
	msg  *secagg.Judged
	err  error
}

func (judgedEvent) engineEvent() {}

// workers bounds what runs at a time, to a processor each.
type workers chan struct{}

func newWorkers() workers { return make(workers, runtime.GOMAXPROCS(0)) }

func (w workers) do(work func()) {
	w <- struct{}{}
	defer func() { <-w }()
	work()
}

// judge has a message judged; there is at most one of a device.
func (c *Coordinator) judge(ev judgedEvent, work judge) {
	c.beside.Go(func() {
		c.workers.do(func() { ev.msg, ev.err = work() })
		judged := []judgedEvent{ev}
		if ev.err == nil && ev.msg.Unsettled() {
			judged = c.settle(ev)
		}
		for _, ev := range judged {
			c.post(c.life, ev)
		}
	})
}

// sum has an admitted vector added; release waits for all of a round.
func (c *Coordinator) sum(r *running, s *secagg.Server, msg *secagg.Judged) {
	r.adding.Go(func() { c.workers.do(func() { s.Sum(msg) }) })
}
