package round

import "fmt"

// Step takes one event and returns what must be done because of it.
func (m *Machine) Step(ev Event) []Effect {
	if m.state == Done || m.state == Abandoned {
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
		mb.lost = true
		return m.closeIfSettled()
	case Back:
		if mb := m.members[ev.Device]; mb != nil {
			mb.lost = false
		}
		return nil
	case Deadline:
		if ev.State != m.state || m.storing || m.cutting || !m.started || !m.state.Waits() {
			return nil
		}
		return m.closeState()
	case Sharded:
		return m.sharded(ev.Shards)
	case Stored:
		return m.stored()
	case ShardFailed:
		if ev.Shard < 0 || ev.Shard >= len(m.shards) || m.shards[ev.Shard].failed {
			return nil
		}
		m.shards[ev.Shard].failed = true
		effs := []Effect{FailShard(ev)}
		if m.state == Releasing || m.storing {
			return effs
		}
		return append(effs, m.closeIfSettled()...)
	case Released:
		m.must(m.state == Releasing && !m.storing, ev)
		m.state = Done
		return []Effect{Finish{State: Done, Charged: true}}
	case ReleaseFailed:
		m.must(m.state == Releasing && !m.storing, ev)
		m.state = Abandoned
		return []Effect{Finish{State: Abandoned, Reason: ev.Reason, Charged: true}}
	case Abort:
		return m.abandon(ev.Reason)
	}
	panic(fmt.Sprintf("round: event %T is unknown", ev))
}

// must panics where the driver answers an effect that was not given.
func (m *Machine) must(ok bool, ev Event) {
	if !ok {
		panic(fmt.Sprintf("round: %T in state %v", ev, m.state))
	}
}

func (m *Machine) start() []Effect {
	m.must(!m.started, Start{})
	m.started = true
	if len(m.order) < m.cfg.Floor {
		// The guarantee counts this round like any other: what is released must
		// not tell that the cohort was small.
		m.state = Releasing
		m.storing = true
		return []Effect{PersistIntent{}}
	}
	return append([]Effect{m.await()}, m.closeIfSettled()...)
}

func (m *Machine) await() Effect {
	return Await{State: m.state, Timeout: m.cfg.Limits[m.state].Timeout}
}

func (m *Machine) receive(ev Received) []Effect {
	if r := m.Wants(ev.Device, ev.Turn); r != Accepted {
		return []Effect{Reject{ev.Device, ev.Turn, r}}
	}
	mb := m.members[ev.Device]
	mb.any, mb.answered, mb.lost = true, ev.Turn, false
	return m.closeIfSettled()
}

func (m *Machine) closeIfSettled() []Effect {
	if !m.started || m.storing || m.cutting || !m.state.Waits() || !m.settled() {
		return nil
	}
	// Who is lost while the round gathers may still come: with too few present the
	// deadline decides.
	if m.state == Gathering && len(m.answeredNow(-1)) < m.cfg.Limits[Gathering].Quorum {
		return nil
	}
	return m.closeState()
}

// closeState ends a waiting state: drops who did not answer, fails the shards
// below their threshold, checks the quorum, and goes on.
func (m *Machine) closeState() []Effect {
	var effs []Effect
	var dropped []Device
	for _, d := range m.live() {
		mb := m.members[d]
		if !mb.any || mb.answered != m.state {
			mb.out = true
			dropped = append(dropped, d)
		}
	}
	if len(dropped) > 0 {
		effs = append(effs, Drop{dropped, fmt.Sprintf("did not answer in %v", m.state)})
	}
	for i := range m.shards {
		if m.shards[i].failed {
			continue
		}
		if n := len(m.answeredNow(i)); n < m.shards[i].Threshold {
			m.shards[i].failed = true
			effs = append(effs, FailShard{i, fmt.Sprintf("%d of %d answered in %v, threshold %d",
				n, len(m.shards[i].Members), m.state, m.shards[i].Threshold)})
		}
	}
	if n, q := len(m.answeredNow(-1)), m.cfg.Limits[m.state].Quorum; n < q {
		return append(effs, m.abandon(fmt.Sprintf("%d devices in %v, quorum %d", n, m.state, q))...)
	}
	return append(effs, m.advance()...)
}

// advance leaves a state that closed with a quorum.
func (m *Machine) advance() []Effect {
	switch m.state {
	case Gathering:
		present := m.answeredNow(-1)
		m.state = Keying
		return []Effect{m.await(), Assign{present}}
	case Keying:
		m.cutting = true
		return []Effect{Cut{m.answeredNow(-1)}}
	case Sharing:
		var effs []Effect
		for _, s := range m.survivors() {
			effs = append(effs, DeliverShares(s))
		}
		m.state = Collecting
		return append([]Effect{m.await()}, effs...)
	case Collecting:
		m.storing = true
		return []Effect{PersistSurvivors{m.survivors()}}
	case Confirming:
		m.storing = true
		return []Effect{PersistIntent{}}
	case Unmasking:
		var shards []int
		for _, s := range m.survivors() {
			shards = append(shards, s.Shard)
		}
		m.state = Releasing
		return []Effect{Release{Shards: shards}}
	}
	panic(fmt.Sprintf("round: %v does not wait", m.state))
}

// survivors lists, for each live shard, who answered the present state.
func (m *Machine) survivors() []Survivors {
	var sets []Survivors
	for i := range m.shards {
		if !m.shards[i].failed {
			sets = append(sets, Survivors{i, m.answeredNow(i)})
		}
	}
	return sets
}

func (m *Machine) sharded(shards []Shard) []Effect {
	m.must(m.cutting, Sharded{})
	m.cutting = false
	seen := 0
	for i, s := range shards {
		for _, d := range s.Members {
			mb := m.members[d]
			m.must(mb != nil && !mb.out && mb.shard < 0, Sharded{})
			mb.shard = i
			seen++
		}
		m.shards = append(m.shards, shard{Shard: s})
	}
	m.must(seen == len(m.live()), Sharded{})
	m.state = Sharing
	effs := []Effect{m.await()}
	for i := range m.shards {
		effs = append(effs, SendRoster{i})
	}
	return effs
}

func (m *Machine) stored() []Effect {
	m.must(m.storing, Stored{})
	m.storing = false
	switch m.state {
	case Collecting:
		sets := m.survivors()
		m.state = Confirming
		effs := []Effect{m.await()}
		for _, s := range sets {
			effs = append(effs, AnnounceSurvivors(s))
		}
		// A device may have been lost while the sets were stored.
		return append(effs, m.closeIfSettled()...)
	case Confirming:
		m.charged = true
		sets := m.survivors()
		m.state = Unmasking
		effs := []Effect{m.await()}
		for _, s := range sets {
			effs = append(effs, SendSignatures(s))
		}
		return append(effs, m.closeIfSettled()...)
	case Releasing:
		m.charged = true
		return []Effect{Release{NoiseOnly: true}}
	}
	panic(fmt.Sprintf("round: nothing is stored in %v", m.state))
}

// abandon ends the round without a release. Once the intent is stored the
// round's cost is written first.
func (m *Machine) abandon(reason string) []Effect {
	m.state = Abandoned
	m.storing, m.cutting = false, false
	if m.charged {
		return []Effect{Charge{reason}, Finish{State: Abandoned, Reason: reason, Charged: true}}
	}
	return []Effect{Finish{State: Abandoned, Reason: reason}}
}
