package edge

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/secagg"
	"github.com/starling-fl/starling/secagg/log"
)

// dealOf returns the deal that places a round's devices into groups.
func dealOf(p *wire.Plan, head log.Head) *log.Deal {
	return &log.Deal{Task: p.Task, Round: p.Round, Head: head}
}

// drawLot has this device draw, with its identity, in a round that is dealt.
func (r *round) drawLot(identity ed25519.PrivateKey) error {
	if !r.cfg.Dealt {
		return nil
	}
	lot, err := dealOf(r.plan, r.head).Prove(identity)
	if err != nil {
		return err
	}
	return r.sec.SetLot(lot)
}

// checkDeal checks what each device of a roster drew against its key, the round and the
// head that the plan binds: all are in one of the plan's groups, or the shard is refused.
func checkDeal(cfg *secagg.Config, p *wire.Plan, head log.Head, roster *secagg.Roster) error {
	if !cfg.Dealt {
		return nil
	}
	deal, first := dealOf(p, head), 0
	for i := range roster.Entries {
		e := &roster.Entries[i]
		id, _ := e.Member(cfg)
		group, err := deal.Group((*[32]byte)(&id), &e.Lot, int(p.Groups))
		if err != nil {
			return fmt.Errorf("device %x: %w", id[:6], err)
		}
		if i == 0 {
			first = group
		} else if group != first {
			return fmt.Errorf("devices of the groups %d and %d of %d are in one shard: %w", first, group, p.Groups, log.ErrDeal)
		}
	}
	return nil
}

// checkGroups refuses a plan that deals otherwise than the job announced.
func (j *job) checkGroups(p *wire.Plan) error {
	if j.Dealt && p.Groups == 0 {
		return errors.New("plan names no groups, and the job's devices are dealt into some by their own keys")
	}
	if !j.Dealt && p.Groups != 0 {
		return fmt.Errorf("plan names %d groups, but the job deals no groups", p.Groups)
	}
	return nil
}
