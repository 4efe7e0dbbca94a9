package coordinator

import (
	"encoding"
	"runtime"

	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
)

// The arithmetic of devices' messages runs beside the engine: decoding, hashing,
// checking signatures, adding vectors up, for all shards at once. The engine keeps
// the order: it starts the work when the machine wants the message, decides when
// the result comes back as an event, and nothing but its decision changes a set or
// closes a turn. Vectors are added in any order; the sum is one of integers mod
// 2^w, so a reproducible run stays the same to the bit.

// judge makes the expensive checks of a message.
type judge func() (*secagg.Examined, error)

// judging decodes a message of a turn and examines it.
func judging[M any, P interface {
	*M
	encoding.BinaryUnmarshaler
}](from secagg.ID, payload []byte, by func(secagg.ID, P) *secagg.Examined) judge {
	return func() (*secagg.Examined, error) {
		m := P(new(M))
		if err := m.UnmarshalBinary(payload); err != nil {
			return nil, err
		}
		return by(from, m), nil
	}
}

// examining is judging for a message within a shard.
func examining[M any, P interface {
	*M
	encoding.BinaryUnmarshaler
	secagg.Message
}](s *secagg.Server, from secagg.ID, payload []byte) judge {
	return judging(from, payload, func(from secagg.ID, m P) *secagg.Examined { return s.Examine(from, m) })
}

// judgement is a message whose expensive checks are to be made, or are made.
type judgement struct {
	r    *running
	d    *fleet.Device
	turn secagg.Turn
	work judge
	msg  *secagg.Examined
	err  error
}

// judgedEvent is a batch of examined messages, all of one round.
type judgedEvent []judgement

func (judgedEvent) engineEvent() {}

// workers bounds how many goroutines compute at a time: one for each processor.
type workers chan struct{}

func newWorkers() workers { return make(workers, runtime.GOMAXPROCS(0)) }

func (w workers) do(work func()) {
	w <- struct{}{}
	defer func() { <-w }()
	work()
}

// judge has a message of so many bytes judged, in a large round with others; there is at
// most one of a device.
func (c *Coordinator) judge(j judgement, bytes int) {
	all := judgedEvent{j}
	if len(j.r.Cohort()) >= c.settleFrom {
		all = j.r.unjudged.add(j, bytes)
	}
	c.judgeAll(all)
}

// judgeAll judges messages, and settles their signatures and commitments at once.
func (c *Coordinator) judgeAll(all judgedEvent) {
	if len(all) == 0 {
		return
	}
	c.beside.Go(func() {
		c.workers.do(func() {
			var unsettled []*secagg.Examined
			for i := range all {
				j := &all[i]
				j.msg, j.err = j.work()
				j.work = nil
				if j.err == nil && j.msg.Unverified() {
					unsettled = append(unsettled, j.msg)
				}
			}
			if len(unsettled) > 0 {
				secagg.VerifyBatch(unsettled)
			}
		})
		c.post(c.life, all)
	})
}

// addend is an admitted vector, the shard that sums it, and the update that holds its bytes.
type addend struct {
	to     *secagg.Server
	msg    *secagg.Examined
	update []byte
}

// add has admitted vectors added; release waits for all of a round.
func (c *Coordinator) add(r *running) {
	if all := r.admitted; len(all) > 0 {
		r.admitted = nil
		r.adding.Go(func() {
			c.workers.do(func() {
				for _, v := range all {
					v.to.Sum(v.msg)
					wire.Recycle(v.update)
				}
			})
		})
	}
}
