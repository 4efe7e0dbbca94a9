package secagg

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"sync"
)

// A Server is the server's side of one shard, from turn 2 on. It keeps one
// running sum, never a vector. Not safe for concurrent use but for Sum and
// Examine; shards are independent of each other.
type Server struct {
	cfg       Config
	turn      Turn // whose messages are taken
	threshold int
	roster    Hash
	message   Roster
	members   []ID       // by roster index
	index     map[ID]int // inverse of members

	// u2..u5 collect who has sent turns 2..5; each is final once its turn is closed.
	u2, u3, u4, u5 Set
	digest         [TurnDone][]Hash // by turn and index: what was received, to tell a repetition from a conflict

	commit  [][]byte // by dealer, until the end
	sealed  [][]byte // by dealer, until turn 3 is closed
	sum     []uint32 // running sum of the masked vectors mod 2^32, from the first one
	signs   [][sigSize]byte
	reveals []*Reveal
	faults  []Fault // of Unmask

	adding *sync.Mutex // guards sum, added and closed
	added  int         // vectors in sum
	closed bool
}

// Shard is the shard's number in the round.
func (s *Server) Shard() int { return s.message.Shard }

// Threshold is t: the number of devices of this shard that must answer every turn.
func (s *Server) Threshold() int { return s.threshold }

// Members lists identities in roster order.
func (s *Server) Members() []ID { return append([]ID(nil), s.members...) }

// SetEnrolments gives the roster of a Logged round the proof that its members are enrolled, in the
// order of Members. Call it before anything else, because the roster's hash covers it.
func (s *Server) SetEnrolments(proof []byte) error {
	switch {
	case !s.cfg.Logged:
		return fmt.Errorf("%w: the round is not Logged", ErrConfig)
	case s.message.Enrolments != nil || s.u2.Len() > 0 || s.turn != TurnShare:
		return &StateError{Call: "SetEnrolments", Turn: s.turn, Err: ErrConflict}
	case len(proof) < 1 || len(proof) > MaxEnrolments:
		return fmt.Errorf("%w: %d bytes of enrolments, want 1..%d", ErrLength, len(proof), MaxEnrolments)
	}
	s.message.Enrolments = proof
	s.roster = s.message.Hash()
	return nil
}

// Roster is turn 1's answer: the same message for every member. Treat it as
// read-only.
func (s *Server) Roster() *Roster { return &s.message }

// InU3 reports whether a device's vector is in the sum.
func (s *Server) InU3(device ID) bool { return s.in(s.u3, device) }

func (s *Server) in(set Set, device ID) bool {
	i, ok := s.index[device]
	return ok && set.Has(i)
}

// Survivors is the number of vectors in the sum. If all devices are honest, no coordinate of the
// sum is larger than MaxSymbol*Survivors.
func (s *Server) Survivors() int { return s.u3.Len() }

// receive checks what every device message must satisfy: sent by a member of
// the set that may speak, in turn, once, under this roster. It returns the
// sender's index.
func (s *Server) receive(j *Examined) (int, error) {
	fail := func(err error) (int, error) {
		return 0, &DeviceError{Device: j.from, Turn: j.turn, Err: err}
	}
	t := j.turn
	i, ok := s.index[j.from]
	if !ok {
		return fail(fmt.Errorf("%w: not in shard %d", ErrStranger, s.Shard()))
	}
	if seen := s.digest[t][i]; seen == j.digest {
		return fail(ErrRepeated)
	} else if seen != (Hash{}) {
		return fail(ErrConflict)
	}
	var may Set // nil: every member
	switch t {
	case TurnMask:
		may = s.u2
	case TurnConfirm:
		may = s.u3
	case TurnReveal:
		may = s.u4
	}
	switch {
	case j.roster != s.roster:
		return fail(ErrBinding)
	case s.turn < t:
		return fail(ErrOutOfTurn)
	case s.turn > t:
		return fail(ErrLate)
	case may != nil && !may.Has(i):
		return fail(fmt.Errorf("%w: dropped before this turn", ErrStranger))
	case j.verdict != nil:
		return fail(j.verdict)
	}
	return i, nil
}

// A Message is a device's message of turns 2 to 5: Shares, Masked, Confirmation or Reveal.
type Message interface {
	examined(s *Server, from ID) *Examined
}

// Add takes a device's message of the turn that is open: Examine, Admit and, of turn 3, Sum.
func (s *Server) Add(from ID, m Message) error {
	j := s.Examine(from, m)
	if err := s.Admit(j); err != nil {
		return err
	}
	s.Sum(j)
	return nil
}

// Examine makes the expensive checks of a message that do not depend on other messages: hashes,
// lengths, ranges. It may run concurrently with every method of the Server once the previous turn
// is closed. Signatures and commitments are left to VerifyBatch or Admit. Nothing is copied: sealed
// shares must not change until turn 3 is closed, vectors until Sum has added them, and revealed
// shares not at all, as the Server erases them itself.
func (s *Server) Examine(from ID, m Message) *Examined { return m.examined(s, from) }

// Admit takes an examined message into the round. It is cheap, and the caller chooses the order. An
// admitted vector of turn 3 counts at once; Sum must add it before Unmask.
func (s *Server) Admit(j *Examined) error {
	settled(j)
	i, err := s.receive(j)
	if err != nil {
		return err
	}
	j.accept(i)
	s.digest[j.turn][i] = j.digest
	return nil
}

func (s *Server) closing(call string, t Turn, have Set) error {
	if s.turn != t {
		cause := ErrOutOfTurn
		if s.turn > t {
			cause = ErrLate
		}
		return &StateError{Call: call, Turn: s.turn, Err: cause}
	}
	if n := have.Len(); n < s.threshold {
		return &ShardError{Shard: s.Shard(), Turn: t,
			Err: fmt.Errorf("%w: %d of %d devices, threshold %d", ErrBelowThreshold, n, len(s.members), s.threshold)}
	}
	return nil
}

// Turn 2: commitments that are no points are refused; what they commit to is looked at when a
// secret is rebuilt.
func (m *Shares) examined(s *Server, from ID) *Examined {
	j := &Examined{from: from, turn: TurnShare, roster: m.Roster, digest: digest(m)}
	if want := 2 * s.threshold * pointSize; len(m.Commit) != want {
		j.verdict = fmt.Errorf("%w: commitments of %d bytes, want %d", ErrLength, len(m.Commit), want)
	} else if want := (len(s.members) - 1) * s.cfg.Suite.sealedSize(); len(m.Sealed) != want {
		j.verdict = fmt.Errorf("%w: sealed shares of %d bytes, want %d", ErrLength, len(m.Sealed), want)
	}
	commit, sealed := bytes.Clone(m.Commit), m.Sealed // which are let go much later, and sooner
	if j.verdict == nil {
		j.points = commit
	}
	j.accept = func(i int) {
		s.commit[i], s.sealed[i] = commit, sealed
		s.u2.add(i)
	}
	return j
}

// CloseSharing fixes U2. A ShardError if fewer than t devices shared: nothing is
// changed, the turn stays open.
func (s *Server) CloseSharing() error {
	if err := s.closing("CloseSharing", TurnShare, s.u2); err != nil {
		return err
	}
	s.turn = TurnMask
	return nil
}

// Delivery is turn 2's answer to a member of U2; nil for anyone else, before
// CloseSharing, and after CloseCollecting.
func (s *Server) Delivery(to ID) *Delivery {
	i, ok := s.index[to]
	if !ok || s.turn != TurnMask || !s.u2.Has(i) {
		return nil
	}
	size := s.cfg.Suite.sealedSize()
	m := &Delivery{Roster: s.roster, U2: s.u2.clone(), Sealed: make([]byte, 0, (s.u2.Len()-1)*size)}
	for dealer := range s.members {
		if dealer == i || !s.u2.Has(dealer) {
			continue
		}
		at := i // position in the dealer's list, which leaves the dealer out
		if i > dealer {
			at--
		}
		m.Sealed = append(m.Sealed, s.sealed[dealer][at*size:(at+1)*size]...)
	}
	return m
}

// Turn 3: a vector is added to the running sum, which keeps no reference to it.
func (m *Masked) examined(s *Server, from ID) *Examined {
	var head Masked // what the hash covers: the vector is large, so hash it in place
	head.roster = m.roster
	enc, _ := head.AppendBinary(nil)
	sum := sha256.Sum256(m.packed)
	return &Examined{from: from, turn: TurnMask, roster: m.roster, digest: sha256.Sum256(append(enc, sum[:]...)),
		verdict: checkPacked(m.packed, s.cfg.Dim, s.cfg.Width), packed: m.packed,
		accept: func(i int) { s.u3.add(i) }}
}

// Sum adds an admitted vector of turn 3 to the running sum. It may run concurrently with every
// method of the Server but Unmask. Vectors may be added in any order.
func (s *Server) Sum(j *Examined) {
	s.adding.Lock()
	defer s.adding.Unlock()
	if j.packed == nil || s.closed {
		return
	}
	if s.sum == nil {
		s.sum = make([]uint32, s.cfg.Dim)
	}
	addPacked(s.sum, j.packed, s.cfg.Width)
	j.packed = nil
	s.added++
}

// CloseCollecting fixes U3. Persist the encoding of the result before sending it
// to the members of U3. A ShardError if fewer than t devices masked: nothing is
// changed, the turn stays open.
func (s *Server) CloseCollecting() (*Survivors, error) {
	if err := s.closing("CloseCollecting", TurnMask, s.u3); err != nil {
		return nil, err
	}
	s.turn = TurnConfirm
	s.sealed = nil
	return &Survivors{Roster: s.roster, U2: s.u2.clone(), U3: s.u3.clone()}, nil
}

// Turn 4, of a survivor.
func (m *Confirmation) examined(s *Server, from ID) *Examined {
	j := &Examined{from: from, turn: TurnConfirm, roster: m.Roster, digest: digest(m)}
	sign := m.Sign
	if i, ok := s.index[from]; ok {
		j.claim("survivor set", &s.message.Entries[i].Keys.Verify, setStatement(&s.roster, s.u2, s.u3), &sign)
	}
	j.accept = func(i int) {
		s.signs[i] = sign
		s.u4.add(i)
	}
	return j
}

// CloseConfirming fixes U4. A ShardError if fewer than t devices signed: nothing
// is changed, the turn stays open.
func (s *Server) CloseConfirming() (*Confirmations, error) {
	if err := s.closing("CloseConfirming", TurnConfirm, s.u4); err != nil {
		return nil, err
	}
	s.turn = TurnReveal
	return s.confirmations(), nil
}

func (s *Server) confirmations() *Confirmations {
	m := &Confirmations{Roster: s.roster, U4: s.u4.clone()}
	for i := range s.members {
		if s.u4.Has(i) {
			m.Signs = append(m.Signs, s.signs[i][:]...)
		}
	}
	return m
}
