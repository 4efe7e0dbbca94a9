package secagg

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"filippo.io/edwards25519"
)

// Turn 5, of a device of U4. The shares are the Server's from then on.
func (m *Reveal) examined(s *Server, from ID) *Examined {
	j := &Examined{from: from, turn: TurnReveal, roster: m.Roster, digest: digest(m)}
	if i, ok := s.index[from]; ok {
		j.verdict = s.judgeReveal(i, m)
	}
	j.accept = func(i int) {
		s.reveals[i] = m
		s.u5.add(i)
	}
	return j
}

func (s *Server) judgeReveal(i int, m *Reveal) error {
	switch {
	case !m.Held.fits(len(s.members)) || !m.Held.subset(s.u2):
		return fmt.Errorf("%w: shares of devices outside U2", ErrSet)
	case !m.Held.Has(i):
		return fmt.Errorf("%w: no share of itself", ErrSet)
	case len(m.Shares) != m.Held.Len()*scalarSize:
		return fmt.Errorf("%w: shares of %d bytes, want %d", ErrLength, len(m.Shares), m.Held.Len()*scalarSize)
	}
	for j := 0; j < len(m.Shares); j += scalarSize {
		if _, err := new(edwards25519.Scalar).SetCanonicalBytes(m.Shares[j : j+scalarSize]); err != nil {
			return fmt.Errorf("%w: share %d is not a scalar", ErrRange, j/scalarSize)
		}
	}
	return nil
}

// Unmask rebuilds the secrets and returns the exact sum of the vectors of U3, one value per symbol,
// lifted into -2^(b-1)..2^(b-1)-1, and closes the shard.
//
// A ShardError that wraps ErrBelowThreshold, ErrShare or ErrCommitment changes nothing. After the
// first two Unmask may succeed once more devices have revealed. ErrCommitment is final: a device
// that dropped out had shared another key than the one in its roster entry.
func (s *Server) Unmask() ([]int64, error) {
	m, err := s.remaining()
	if err != nil {
		return nil, err
	}
	defer m.erase()
	masks := m.sum()
	defer clear(masks)
	out := make([]int64, len(s.sum))
	for i, x := range s.sum {
		out[i] = centre(x-masks[i], s.cfg.Width)
	}
	s.Close()
	return out, nil
}

// remaining rebuilds the secrets and returns the masks that are still in the sum.
func (s *Server) remaining() (*masks, error) {
	if err := s.closing("Unmask", TurnReveal, s.u5); err != nil {
		return nil, err
	}
	s.adding.Lock()
	added := s.added
	s.adding.Unlock()
	if want := s.u3.Len(); added != want { // the masks of what is missing would stay in
		return nil, fmt.Errorf("secagg: shard %d: %d of %d admitted vectors were added", s.Shard(), added, want)
	}
	r := rebuilder{s: s, coefficients: map[string][]*edwards25519.Scalar{}}
	defer r.erase()
	m := &masks{dim: s.cfg.Dim, width: s.cfg.Width, roster: s.roster, survivors: s.u3.clone(), dropped: newSet(len(s.members)),
		selves: make([]byte, 0, maskKeyLen*s.u3.Len()), private: make([]byte, 0, scalarSize*(s.u2.Len()-s.u3.Len()))} // which are not copied
	err := r.fill(m)
	faults := r.faults()
	if err != nil {
		m.erase()
		return nil, &ShardError{Shard: s.Shard(), Turn: TurnReveal, Err: err, Faults: faults}
	}
	s.faults = faults
	return m, nil
}

// fill rebuilds every secret of U2.
func (r *rebuilder) fill(m *masks) error {
	s := r.s
	for i := range s.members {
		if !s.u2.Has(i) {
			continue
		}
		secret, err := r.rebuild(i)
		if err != nil {
			r.failed, r.liar = i+1, errors.Is(err, ErrCommitment)
			return err
		}
		if s.u3.Has(i) {
			k := selfMaskKey(secret[:], &s.roster)
			m.selves = append(m.selves, k[:]...)
			clear(secret[:])
			continue
		}
		k := maskPrivateBytes(secret[:], &s.message.Plan)
		clear(secret[:])
		m.dropped.add(i)
		m.private = append(m.private, k[:]...)
		priv := x25519Private(&k)
		if !bytes.Equal(priv.PublicKey().Bytes(), s.message.Entries[i].Keys.Mask[:]) {
			r.failed, r.liar = i+1, true
			return fmt.Errorf("%w: device %x shared another key than the roster's, and dropped", ErrCommitment, s.members[i][:4])
		}
	}
	for v := range s.members {
		if s.u3.Has(v) && m.dropped.Len() > 0 {
			m.peers = append(m.peers, s.message.Entries[v].Keys.Mask[:]...)
		}
	}
	return nil
}

// A rebuilder finds secrets from the reveals. Devices caught with a wrong share
// are asked last for the secrets that follow.
type rebuilder struct {
	s            *Server
	suspects     Set
	coefficients map[string][]*edwards25519.Scalar // Lagrange's, by the set of holders
	wrong        map[int]Set                       // by dealer: holders whose share of its secret was found wrong
	failed       int                               // one more than the dealer whose secret could not be rebuilt
	liar         bool                              // that dealer's own commitments convict it
}

func (r *rebuilder) erase() { clear(r.coefficients) }

// rebuild returns the self-mask scalar of a survivor, the mask key's scalar of a
// device that dropped. The scalar is right if it opens the dealer's first
// commitment; only if it does not are single shares verified.
func (r *rebuilder) rebuild(dealer int) (secret [scalarSize]byte, err error) {
	s := r.s
	commit := s.commit[dealer][:s.threshold*pointSize] // the mask key's
	if s.u3.Has(dealer) {
		commit = s.commit[dealer][s.threshold*pointSize:]
	}
	if r.suspects == nil {
		r.suspects = newSet(len(s.members))
	}
	var holders []int
	for _, suspect := range []bool{false, true} {
		for i := range s.members {
			if s.u5.Has(i) && s.reveals[i].Held.Has(dealer) && r.suspects.Has(i) == suspect {
				holders = append(holders, i)
			}
		}
	}
	if len(holders) < s.threshold {
		return secret, fmt.Errorf("%w: %d shares of device %x, threshold %d", ErrShare, len(holders), s.members[dealer][:4], s.threshold)
	}
	a := r.combine(dealer, holders[:s.threshold])
	if !opens(commit[:pointSize], a) {
		if a, err = r.sift(dealer, commit, holders); err != nil {
			return secret, err
		}
	}
	copy(secret[:], a.Bytes())
	a.Set(edwards25519.NewScalar())
	return secret, nil
}

// sift verifies the holders' shares one by one and rebuilds from valid ones.
func (r *rebuilder) sift(dealer int, commit []byte, holders []int) (*edwards25519.Scalar, error) {
	s := r.s
	v, err := newVerifier(commit)
	if err != nil {
		return nil, fmt.Errorf("device %x: %w", s.members[dealer][:4], err)
	}
	var good []int
	for _, i := range holders {
		if v.valid(i, r.share(new(edwards25519.Scalar), dealer, i)) {
			good = append(good, i)
		} else {
			r.suspects.add(i)
			r.mark(dealer, i)
		}
		if len(good) == s.threshold {
			a := r.combine(dealer, good)
			if !opens(commit[:pointSize], a) {
				// The dealer's commitments are not of the prime-order group.
				return nil, fmt.Errorf("%w: of device %x", ErrCommitment, s.members[dealer][:4])
			}
			return a, nil
		}
	}
	return nil, fmt.Errorf("%w: %d of %d shares of device %x are valid, threshold %d",
		ErrShare, len(good), len(holders), s.members[dealer][:4], s.threshold)
}

// share sets a to the share of dealer's secret that holder revealed, and returns it.
func (r *rebuilder) share(a *edwards25519.Scalar, dealer, holder int) *edwards25519.Scalar {
	m := r.s.reveals[holder]
	at := 0
	for i := range dealer {
		if m.Held.Has(i) {
			at++
		}
	}
	if _, err := a.SetCanonicalBytes(m.Shares[at*scalarSize : (at+1)*scalarSize]); err != nil {
		panic(err) // AddReveal has checked
	}
	return a
}

func (r *rebuilder) combine(dealer int, holders []int) *edwards25519.Scalar {
	set := newSet(len(r.s.members))
	sorted := slices.Sorted(slices.Values(holders))
	shares := make([]edwards25519.Scalar, len(sorted))
	for j, i := range sorted {
		set.add(i)
		r.share(&shares[j], dealer, i)
	}
	c := r.coefficients[string(set)]
	if c == nil {
		c = lagrange(sorted)
		r.coefficients[string(set)] = c
	}
	a := combine(c, shares)
	clear(shares)
	return a
}

// Close erases all that the server holds of the shard. Unmask does so too. It may be called several
// times.
func (s *Server) Close() {
	s.adding.Lock()
	defer s.adding.Unlock()
	s.closed = true
	clear(s.sum)
	for _, m := range s.reveals {
		if m != nil {
			clear(m.Shares)
		}
	}
	s.sum, s.sealed, s.commit, s.signs = nil, nil, nil, nil
	clear(s.reveals)
	s.turn = TurnDone
}
