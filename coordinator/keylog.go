package coordinator

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/secagg/log"
)

// keyLog is the log of enrolled keys as devices are shown it: at one head from a round's
// draw to its end, so that a round's devices see one, and few proofs lead to it.
// Owned by the engine.
type keyLog struct {
	signer ed25519.PrivateKey // nil: the job has no log
	head   log.Head
	note   []byte                // the head, signed
	signed bool                  // by the witness, too
	growth map[int64]wire.Growth // by what a device holds: how the head goes on from there
}

// openLog reads or draws the key that signs heads, announces it, and publishes the head.
func (c *Coordinator) openLog(seed []byte) error {
	if c.t.Job.Shard.Anonymous {
		return nil
	}
	c.keys.signer = ed25519.NewKeyFromSeed(seed)
	c.t.Contract.Job.LogKey = [32]byte(c.keys.signer.Public().(ed25519.PublicKey))
	c.t.Contract.Job.Masking.Logged = true
	c.t.Contract.Job.Masking.Dealt = c.deals()
	return c.publishLog()
}

// deals reports whether rounds' devices are dealt into groups by their own keys. A run from a
// seed must be the same in another log, whose head is another: chance deals there.
func (c *Coordinator) deals() bool { return c.t.Job.Grouped() && c.rnd.Secret() }

// lots has turn 1 of a dealt round place each device where its own key does, under the
// head that the plan binds.
func (c *Coordinator) lots(r *running) {
	if !c.t.Contract.Job.Masking.Dealt {
		return
	}
	deal := &log.Deal{Task: c.task, Round: r.ID(), Head: c.keys.head}
	r.keying.SetGroups(func(from secagg.ID, lot *[secagg.LotSize]byte) (int, error) {
		return deal.Group((*[32]byte)(&from), lot, r.groups)
	})
}

// publishLog makes the head that covers everybody enrolled so far.
func (c *Coordinator) publishLog() error {
	k := &c.keys
	if k.signer == nil {
		return nil
	}
	head, err := c.store.LogHead()
	if err != nil || k.note != nil && head == k.head {
		return err
	}
	k.head, k.growth, k.signed = head, map[int64]wire.Growth{}, false
	k.note, err = head.Sign(k.signer)
	return err
}

// cosignLog has the witness, if there is one, sign the head. A round does not wait for a witness
// that does not answer: devices whose owners require its signature then sit the round out.
func (c *Coordinator) cosignLog(ctx context.Context) {
	k := &c.keys
	if k.signer == nil || k.signed || c.cfg.Cosign == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, witnessTimeout)
	defer stop()
	lines, err := c.cfg.Cosign(ctx, k.head, k.note, func(from int64) ([]log.Hash, error) { return c.store.ProveConsistency(from, k.head.Size) })
	if err == nil {
		var both []byte
		if both, err = log.Cosigned(k.note, lines, c.t.Contract.Job.LogKey); err == nil {
			k.note, k.signed = both, true
		}
	}
	if err != nil {
		c.log.Warn("the witness has not signed the log of enrolled keys", "keys", k.head.Size, "error", err)
	}
}

// witnessTimeout is how long a round waits for the witness.
const witnessTimeout = 5 * time.Second

// grown is how the head continues from the one that a device holds. From one that no log of
// this folder ever had nothing does: the device will say so to its owner.
func (c *Coordinator) grown(held int64) (wire.Growth, error) {
	k := &c.keys
	if k.signer == nil || held <= 0 || held > k.head.Size {
		return wire.Growth{}, nil
	}
	if g, ok := k.growth[held]; ok {
		return g, nil
	}
	proof, err := c.store.ProveConsistency(held, k.head.Size)
	if err != nil {
		return wire.Growth{}, fmt.Errorf("coordinator: the log of enrolled keys: %w", err)
	}
	g := wire.Growth{From: uint64(held)}
	for _, h := range proof {
		g.Hashes = append(g.Hashes, h[:]...)
	}
	k.growth[held] = g
	return g, nil
}

// showLog puts the head into the answer to a device that comes: in a round that of its
// draw, which the device may still have to hear of, else that of all who are enrolled.
func (c *Coordinator) showLog(id [32]byte, held int64, answer *wire.Enrolled) error {
	if c.keys.signer == nil {
		return nil
	}
	// One that the witness has signed is shown until the next draw: who comes stands in the
	// plan's.
	if c.running == nil && !c.keys.signed {
		if err := c.publishLog(); err != nil {
			return errors.Join(link.Refuse(wire.CodeInternal, time.Minute, "the log of enrolled keys cannot be read"), err)
		}
	}
	if held > c.keys.head.Size {
		c.log.Warn("a device holds a longer log of enrolled keys than this folder has: was an older copy of it put back? Such devices refuse to take part",
			"device", short(id), "holds", held, "here", c.keys.head.Size)
	}
	growth, err := c.grown(held)
	if err != nil {
		return errors.Join(link.Refuse(wire.CodeInternal, time.Minute, "the log of enrolled keys cannot be read"), err)
	}
	answer.Head, answer.Growth = c.keys.note, growth
	return nil
}

// assign sends a round's plan, to each device with how the plan's head continues from the
// one that it was shown last.
func (c *Coordinator) assign(r *running, devices []round.Device) error {
	by := map[int64][]round.Device{}
	for _, n := range devices {
		by[c.fleet.At(n).Holds] = append(by[c.fleet.At(n).Holds], n)
	}
	for _, held := range slices.Sorted(maps.Keys(by)) {
		growth, err := c.grown(held)
		if err != nil {
			return err
		}
		c.broadcast(r, by[held], link.Frame(&wire.Assignment{
			Plan: r.plan, Patches: r.patches, Millis: millis(r.limits[round.Keying]), Growth: growth,
		}))
		for _, n := range by[held] {
			c.fleet.At(n).Holds = c.keys.head.Size
		}
	}
	return nil
}

// proveShard gives a shard's roster what proves that its members are enrolled.
func (c *Coordinator) proveShard(s *secagg.Server) error {
	members := s.Members()
	keys := make([][32]byte, len(members))
	for i, id := range members {
		keys[i] = id
	}
	proof, err := c.store.ProveMembers(c.keys.head.Size, keys)
	if err != nil {
		return fmt.Errorf("coordinator: the log of enrolled keys: %w", err)
	}
	b, err := proof.AppendBinary(nil)
	if err != nil {
		return fmt.Errorf("coordinator: the log of enrolled keys: %w", err)
	}
	return s.SetEnrolments(b)
}
