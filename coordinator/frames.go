package coordinator

import (
	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
)

// frames are the longest that devices of this job have to send. The protocol's own
// limits hold for every job there may be: ten thousand devices that use them up would
// fill a machine.
type frames struct {
	turns  [secagg.TurnReveal + 1]int // payloads by turn; 0 of the one that does not travel as a turn
	turn   int                        // a whole frame of the longest of them
	update int
}

// frameHead is an upper bound of what surrounds a turn's payload or an update's data in a frame.
const frameHead = 64

// longest takes them of the largest shard and rank.
func longest(t *core.Terms) (f frames, err error) {
	ranks := t.Job.Ranks()
	v, err := t.Vector(ranks[len(ranks)-1], 1, [32]byte{}) // of any norm
	if err != nil {
		return f, err
	}
	cfg := t.Contract.Masking(v)
	for turn := secagg.TurnAdvertise; turn <= secagg.TurnReveal; turn++ {
		if turn != secagg.TurnMask {
			f.turns[turn] = cfg.MaxMessage(turn)
			f.turn = max(f.turn, f.turns[turn]+frameHead)
		}
	}
	// A lower rank's vector may be padded to more than a higher's, never to twice that.
	f.update = min(2*(cfg.MaxMessage(secagg.TurnMask)+updateOverhead), wire.MaxChunk) + frameHead
	return f, nil
}

// MaxFrame is the largest frame, in bytes, that a device may send whose first byte is kind.
func (c *Coordinator) MaxFrame(kind byte) int {
	most := wire.MostBytes(wire.Kind(kind), wire.FromDevice)
	switch wire.Kind(kind) {
	case wire.KindTurn:
		return min(most, c.frames.turn)
	case wire.KindUpdate:
		return min(most, c.frames.update)
	}
	return most
}

// tooLong refuses a turn that is longer than any of its number.
func (c *Coordinator) tooLong(message wire.Message) error {
	m, is := message.(*wire.Turn)
	if !is {
		return nil
	}
	if most := c.frames.turns[m.Number]; most > 0 && len(m.Payload) > most {
		return link.Refuse(wire.CodeProtocol, 0, "turn %d has %d bytes, at most %d in this job", m.Number, len(m.Payload), most)
	}
	return nil
}
