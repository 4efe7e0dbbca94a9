package coordinator

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/starling-fl/starling/coordinator/core"
	"github.com/starling-fl/starling/coordinator/internal/fleet"
	"github.com/starling-fl/starling/coordinator/store"
)

// apart keeps a device's rounds apart where noise cancels between rounds. What counts are releases:
// a device that was drawn for release r, whatever it answered, is drawn for none up to
// r + privacy.separation - 1. A round that released nothing counts for nobody, since its price
// covers a device's being in the next one too (docs/privacy/proofs.md, section 17).
//
// Devices are known by identity: one that was forgotten and comes again rests on.
type apart struct {
	in map[[32]byte]uint64 // the last release that a device was drawn for
}

// resting reports whether a device may not be drawn for the next release.
func (c *Coordinator) resting(d *fleet.Device) bool {
	last, was := c.apart.in[d.ID]
	return was && c.core.Version()+1 < last+uint64(c.t.Job.Privacy.Separation)
}

// available is how many devices could be drawn now.
func (c *Coordinator) available(now time.Time) int {
	if c.t.Job.Banded() {
		return c.fleet.AvailableBut(now, c.resting)
	}
	return c.fleet.Available(now)
}

// roll is who is drawn of. In a cohort of a fixed size only those who are there are: nothing hangs
// on who is. A run that repeats must not depend on who is fast.
func (c *Coordinator) roll(now time.Time) (fleet.Roll, error) {
	there := c.t.Job.Fixed() && c.rnd.Secret()
	switch banded := c.t.Job.Banded(); {
	case there && banded:
		return c.fleet.There(now, c.resting)
	case there:
		return c.fleet.There(now, nil)
	case banded:
		return c.fleet.RollBut(c.resting)
	}
	return c.fleet.Roll()
}

// keeps is what the store keeps of a round that is about to be committed, nil if later ones need
// nothing of it.
func (c *Coordinator) keeps(r *running) *store.Kept {
	noise, rows, ok := c.core.NextNoise()
	if !ok {
		return nil
	}
	k := &store.Kept{Noise: noise, Noises: rows, Cohorts: c.t.Job.Privacy.Separation - 1}
	for _, p := range r.parts {
		k.Cohort = append(k.Cohort, p.device.ID)
	}
	slices.SortFunc(k.Cohort, func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
	return k
}

// rest has the cohort of a committed round rest; k may be nil.
func (a *apart) rest(k *store.Kept) {
	if k == nil {
		return
	}
	for _, id := range k.Cohort {
		if a.in == nil {
			a.in = map[[32]byte]uint64{}
		}
		a.in[id] = max(a.in[id], k.Version)
	}
}

// resumeKept takes over what the store keeps of the releases up to version, and returns their noise
// as core.Snapshot has it.
func (c *Coordinator) resumeKept(version uint64) (noise []byte, err error) {
	if !c.t.Job.Banded() {
		return nil, nil
	}
	kept, err := c.store.Kept()
	if err != nil {
		return nil, err
	}
	if want := min(version, uint64(c.t.Job.Privacy.Separation-1)); uint64(len(kept)) != want {
		return nil, core.RefuseJob("the devices of %d last rounds are kept, of %d it must be: without them none can be drawn", len(kept), want)
	}
	for i, k := range kept {
		if k.Version != version-uint64(i) {
			return nil, fmt.Errorf("coordinator: of the last rounds that of release %d is kept where %d is expected", k.Version, version-uint64(i))
		}
		c.apart.rest(&k)
		noise = append(noise, k.Noise...)
	}
	return noise, nil
}
