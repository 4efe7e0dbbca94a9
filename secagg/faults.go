package secagg

import "filippo.io/edwards25519"

// A Fault is a device that Unmask found to have misbehaved.
type Fault struct {
	Device ID
	// Proven reports whether the device alone can be to blame, as long as fewer than half of its
	// shard are corrupted. If false, the device dealt the shares by which a shard failed, but the
	// holders of those shares may have caused that together.
	Proven bool
	Reason string
}

// Faults lists the devices that a successful Unmask found to have misbehaved. If Unmask fails, its
// ShardError lists them.
//
// A missing or wrong share may be the fault of the dealer, who sealed garbage, or of the holder,
// who lies about it; between two honest devices there is none. A device is therefore blamed only if
// it has such a share with more than half of the others: a single bad share proves nothing, since a
// dealer could use it to frame anybody.
func (s *Server) Faults() []Fault { return s.faults }

func (r *rebuilder) mark(dealer, holder int) {
	if r.wrong == nil {
		r.wrong = map[int]Set{}
	}
	if r.wrong[dealer] == nil {
		r.wrong[dealer] = newSet(len(r.s.members))
	}
	r.wrong[dealer].add(holder)
}

// bad reports whether a holder's share of a dealer's secret is missing, or was found
// to be wrong.
func (r *rebuilder) bad(dealer, holder int) bool {
	return !r.s.reveals[holder].Held.Has(dealer) || r.wrong[dealer] != nil && r.wrong[dealer].Has(holder)
}

func (r *rebuilder) faults() (found []Fault) {
	s := r.s
	convicted := newSet(len(s.members))
	for i := range s.members {
		if !s.u5.Has(i) {
			continue
		}
		if r.suspects != nil && r.suspects.Has(i) {
			r.examine(i)
		}
		bad, of := 0, 0
		for dealer := range s.members {
			if dealer == i || !s.u2.Has(dealer) {
				continue
			}
			of++
			if r.bad(dealer, i) {
				bad++
			}
		}
		if of > 1 && 2*bad > of {
			convicted.add(i)
			found = append(found, Fault{s.members[i], true, "it revealed wrong shares, or none, of most of its shard"})
		}
	}
	if r.failed == 0 {
		return found
	}
	dealer := r.failed - 1
	bad, of := 0, 0
	for i := range s.members {
		if i == dealer || !s.u5.Has(i) || convicted.Has(i) {
			continue
		}
		of++
		if r.bad(dealer, i) {
			bad++
		}
	}
	switch {
	case convicted.Has(dealer):
	case r.liar:
		found = append(found, Fault{s.members[dealer], true, "its commitments are not those of the key in its roster"})
	case 2*bad > of && of > 1:
		found = append(found, Fault{s.members[dealer], true, "it dealt garbage"})
	case convicted.Len() == 0:
		found = append(found, Fault{s.members[dealer], false, "its secret could not be rebuilt"})
	}
	return found
}

// examine verifies a suspect's shares of all dealers: one that was found wrong says
// little, and unmasking looks at no more than it needs.
func (r *rebuilder) examine(holder int) {
	s := r.s
	for dealer := range s.members {
		if dealer == holder || !s.u2.Has(dealer) || r.bad(dealer, holder) {
			continue
		}
		commit := s.commit[dealer][:s.threshold*pointSize]
		if s.u3.Has(dealer) {
			commit = s.commit[dealer][s.threshold*pointSize:]
		}
		v, err := newVerifier(commit)
		if err == nil && !v.valid(holder, r.share(new(edwards25519.Scalar), dealer, holder)) {
			r.mark(dealer, holder)
		}
	}
}
