package round

import (
	"fmt"
	"math"
	"slices"
)

// Take processes one event and returns the effects to carry out.
func (m *Machine) Take(ev Event) []Effect {
	if m.end != 0 {
		if r, ok := ev.(Received); ok {
			return []Effect{Reject{r.Device, r.Turn, Late}}
		}
		return nil
	}
	switch ev := ev.(type) {
	case Start:
		return m.start()
	case Received:
		return m.receive(ev)
	case Lost:
		mb := m.members[ev.Device]
		if mb == nil || mb.lost {
			return nil
		}
		// If coins drew the cohort a device that is lost once the round is assigned is
		// so for good. If it could come back, how long the others' state stays open would
		// decide whether it is in, and with that one slow device's coin.
		m.set(mb, func() { mb.lost, mb.expelled = true, m.cfg.Drawn && mb.group.state > Gathering })
		return m.closeIfSettled(mb.group)
	case Expelled:
		mb := m.members[ev.Device]
		if mb == nil || mb.expelled {
			return nil
		}
		m.set(mb, func() { mb.lost, mb.expelled = true, true })
		return m.closeIfSettled(mb.group)
	case Back:
		if mb := m.members[ev.Device]; mb != nil && !mb.expelled {
			m.set(mb, func() { mb.lost = false })
		}
		return nil
	case Deadline:
		g := m.group(ev.Shard)
		if g == nil || g.failed || g.state != ev.State || !m.waits(g) {
			return nil
		}
		return m.closeState(g)
	case Sharded:
		return m.sharded(ev)
	case Stored:
		return m.stored(ev)
	case ShardFailed:
		if g := m.group(ev.Shard); g != nil && g != &m.cohort && !g.failed {
			return append(m.fail(g, ev.Reason), m.releaseIfReady()...)
		}
		return nil
	case Released:
		m.must(m.releasing(), ev)
		m.end = Done
		return []Effect{Finish{State: Done, Charged: true}}
	case ReleaseFailed:
		m.must(m.releasing(), ev)
		m.end = Abandoned
		return []Effect{Finish{State: Abandoned, Reason: ev.Reason, Charged: true}}
	case Abort:
		return m.abandon(ev.Reason)
	}
	panic(fmt.Sprintf("round: event %T is unknown", ev))
}

// must panics where the driver answers an effect that was not given.
func (m *Machine) must(ok bool, ev Event) {
	if !ok {
		panic(fmt.Sprintf("round: %T in state %v", ev, m.State()))
	}
}

// group is what an event means: the cohort until it is cut, a shard afterwards.
func (m *Machine) group(shard int) *group {
	switch {
	case shard == Whole && m.shards == nil:
		return &m.cohort
	case shard >= 0 && shard < len(m.shards):
		return m.shards[shard]
	}
	return nil
}

// waits reports whether a group waits for devices.
func (m *Machine) waits(g *group) bool {
	return m.started && g.state.Waits() && !m.busy(g) && (g != &m.cohort || m.shards == nil)
}

// releasing reports whether Release was given.
func (m *Machine) releasing() bool { return m.cohort.state == Releasing && !m.cohort.storing }

func (m *Machine) start() []Effect {
	m.must(!m.started, Start{})
	m.started = true
	if len(m.members) < m.cfg.Floor {
		// The guarantee counts this round like any other: what is released must
		// not tell that the cohort was small.
		return []Effect{m.noiseOnly()}
	}
	return append([]Effect{m.await(&m.cohort)}, m.closeIfSettled(&m.cohort)...)
}

// noiseOnly goes to a release without a sum.
func (m *Machine) noiseOnly() Effect {
	m.cohort.state, m.cohort.storing, m.asked = Releasing, true, true
	return PersistIntent{}
}

func (m *Machine) await(g *group) Effect {
	timeout := m.cfg.Limits[g.state].Timeout
	if m.hurried {
		timeout = min(timeout, m.cfg.Grace)
	}
	return Await{g.index, g.state, timeout}
}

func (m *Machine) receive(ev Received) []Effect {
	if r := m.Wants(ev.Device, ev.Turn); r != Accepted {
		return []Effect{Reject{ev.Device, ev.Turn, r}}
	}
	mb := m.members[ev.Device]
	m.set(mb, func() { mb.any, mb.answered, mb.lost = true, ev.Turn, false })
	return m.closeIfSettled(mb.group)
}

func (m *Machine) closeIfSettled(g *group) []Effect {
	if g.failed || g.open > 0 || !m.waits(g) {
		return nil
	}
	// Who is lost while the round gathers may still come: with too few present the
	// deadline decides.
	if g.state == Gathering && g.answered < m.cfg.Limits[Gathering].Quorum && m.hopes(g) {
		return nil
	}
	return m.closeState(g)
}

// hopes reports whether somebody who is lost may come back.
func (m *Machine) hopes(g *group) bool {
	return slices.ContainsFunc(g.order, func(d Device) bool { mb := m.members[d]; return mb.lost && !mb.expelled && !mb.out })
}

// closeState ends a group's waiting state: drops who did not answer, holds who did
// against quorum or threshold, and goes on.
func (m *Machine) closeState(g *group) []Effect {
	var effs []Effect
	var dropped []Device
	for _, d := range g.order {
		if mb := m.members[d]; !mb.out && (!mb.has() || m.cfg.Drawn && mb.lost && g.state == Gathering) {
			m.set(mb, func() { mb.out = true })
			dropped = append(dropped, d)
		}
	}
	if len(dropped) > 0 {
		effs = append(effs, Drop{dropped, g.state})
	}
	if g == &m.cohort {
		if q := m.cfg.Limits[g.state].Quorum; g.answered < q {
			if m.cfg.Drawn {
				return append(effs, m.noiseOnly())
			}
			return append(effs, m.abandon(fmt.Sprintf("%d devices in %v, quorum %d", g.answered, g.state, q))...)
		}
	} else if g.answered < g.threshold {
		effs = append(effs, m.fail(g, fmt.Sprintf("%d of %d answered in %v, threshold %d",
			g.answered, len(g.order), g.state, g.threshold))...)
		return append(effs, m.releaseIfReady()...)
	}
	return append(effs, m.advance(g)...)
}

// advance leaves a state that closed with enough devices.
func (m *Machine) advance(g *group) []Effect {
	switch present := m.present(g); g.state {
	case Gathering:
		m.enter(g, Keying)
		return []Effect{m.await(g), Assign{present}}
	case Keying:
		m.cutting = true
		return []Effect{Cut{present}}
	case Sharing:
		m.enter(g, Collecting)
		return []Effect{m.await(g), DeliverShares{g.index, present}}
	case Collecting:
		g.storing = true
		return []Effect{PersistSurvivors{g.index, present}}
	case Confirming:
		if m.charged {
			return m.unmask(g)
		}
		g.storing = true
		if m.asked {
			return nil // the intent is on its way to the disk
		}
		m.asked = true
		return []Effect{PersistIntent{}}
	case Unmasking:
		m.enter(g, Releasing)
		return m.releaseIfReady()
	}
	panic(fmt.Sprintf("round: %v does not wait", g.state))
}

// unmask sends a shard what lets it reveal; the intent is stored.
func (m *Machine) unmask(g *group) []Effect {
	present := m.present(g)
	m.enter(g, Unmasking)
	effs := []Effect{m.await(g), SendSignatures{g.index, present}}
	// A device may have been lost while the intent was stored.
	return append(effs, m.closeIfSettled(g)...)
}

// fail leaves a shard out.
func (m *Machine) fail(g *group, reason string) []Effect {
	m.at[g.state]--
	g.failed, m.failure = true, reason
	for _, d := range g.order {
		if mb := m.members[d]; !mb.gone() {
			mb.excused = true
		}
	}
	return []Effect{FailShard{g.index, reason}}
}

// releaseIfReady goes on when no shard is waited for any more, and hurries the
// last ones when enough of the others have revealed.
func (m *Machine) releaseIfReady() []Effect {
	if m.end != 0 || m.cohort.state == Releasing {
		return nil
	}
	live, ready := 0, m.at[Releasing]
	for _, n := range m.at {
		live += n
	}
	switch {
	case live == 0:
		return m.abandon("every shard failed, the last: " + m.failure)
	case ready == live:
		m.cohort.state = Releasing
		var shards []int
		for _, g := range m.shards {
			if !g.failed {
				shards = append(shards, g.index)
			}
		}
		return []Effect{Release{Shards: shards}}
	case m.hurried || float64(ready) < math.Ceil(m.cfg.Enough*float64(live)-1e-9):
		return nil
	}
	m.hurried = true
	var effs []Effect
	for _, g := range m.shards {
		if !g.failed && m.waits(g) {
			effs = append(effs, m.await(g))
		}
	}
	return effs
}

func (m *Machine) sharded(ev Sharded) []Effect {
	m.must(m.cutting, ev)
	m.cutting = false
	for _, d := range ev.Left {
		mb := m.members[d]
		m.must(mb != nil && !mb.out && mb.group == &m.cohort, ev)
		m.set(mb, func() { mb.out = true })
	}
	seen := 0
	for i, s := range ev.Shards {
		g := &group{index: i, order: slices.Sorted(slices.Values(s.Members)), threshold: s.Threshold, state: Sharing}
		for _, d := range g.order {
			mb := m.members[d]
			m.must(mb != nil && !mb.out && mb.group == &m.cohort, ev)
			mb.group = g
			seen++
		}
		m.shards = append(m.shards, g)
		m.at[Sharing]++
	}
	m.must(seen == m.cohort.answered && seen > 0, ev)
	var effs []Effect
	for _, g := range m.shards {
		m.enter(g, Sharing)
		effs = append(effs, m.await(g), SendRoster{g.index})
	}
	// Devices may have been lost while the cohort was cut.
	for _, g := range m.shards {
		if m.end == 0 {
			effs = append(effs, m.closeIfSettled(g)...)
		}
	}
	return effs
}

func (m *Machine) stored(ev Stored) []Effect {
	if ev.Shard == Whole {
		m.must(m.asked && !m.charged, ev)
		m.charged = true
		if m.cohort.storing {
			m.cohort.storing = false
			return []Effect{Release{NoiseOnly: true}}
		}
		var effs []Effect
		for _, g := range m.shards {
			if g.state == Confirming && g.storing && m.end == 0 {
				g.storing = false
				if !g.failed {
					effs = append(effs, m.unmask(g)...)
				}
			}
		}
		return effs
	}
	g := m.group(ev.Shard)
	m.must(g != nil && g.state == Collecting && g.storing, ev)
	g.storing = false
	if g.failed {
		return nil
	}
	present := m.present(g)
	m.enter(g, Confirming)
	effs := []Effect{m.await(g), AnnounceSurvivors{g.index, present}}
	// A device may have been lost while the set was stored.
	return append(effs, m.closeIfSettled(g)...)
}

// abandon ends the round without a release. Once the intent may be on the disk the
// round's cost is written first; of a drawn cohort it is from the start.
func (m *Machine) abandon(reason string) []Effect {
	m.end = Abandoned
	if m.asked || m.cfg.Drawn {
		return []Effect{Charge{reason}, Finish{State: Abandoned, Reason: reason, Charged: true}}
	}
	return []Effect{Finish{State: Abandoned, Reason: reason}}
}
