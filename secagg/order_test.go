package secagg

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// An exhaustive exploration of one small shard: every order in which honest
// devices send, messages arrive (late ones too) and the server closes its turns;
// a device that stops sending, or whose message never arrives, has dropped. In
// every state reached, every message that has no business there is tried as well.

// world is one state. Clients and servers are never changed in place: a step
// clones them first.
type world struct {
	server  *Server
	clients []*Client
	flight  []wireMessage // by device: sent and not yet arrived
}

func cloneClient(c *Client) *Client {
	d := *c
	d.signer = slices.Clone(c.signer)
	d.shares = slices.Clone(c.shares)
	d.agreed = slices.Clone(c.agreed)
	d.held = c.held.clone()
	return &d
}

func cloneServer(s *Server) *Server {
	d := *s
	d.u2, d.u3, d.u4, d.u5 = s.u2.clone(), s.u3.clone(), s.u4.clone(), s.u5.clone()
	for t := range d.digest {
		d.digest[t] = slices.Clone(s.digest[t])
	}
	d.commit, d.sealed = slices.Clone(s.commit), slices.Clone(s.sealed)
	d.sum, d.signs = slices.Clone(s.sum), slices.Clone(s.signs)
	d.reveals = make([]*Reveal, len(s.reveals))
	for i, m := range s.reveals {
		if m != nil {
			d.reveals[i] = &Reveal{m.Roster, m.Held.clone(), slices.Clone(m.Shares)}
		}
	}
	return &d
}

type explorer struct {
	t        *testing.T
	r        *round
	seen     map[string]bool
	steps    map[string]clientStep // by device, turn and sets
	answers  map[string]any        // server messages, by kind and sets
	masked   map[*Client][]byte    // turn 3's bytes, which their sender keeps
	checked  map[string]bool
	unmasked map[string]bool
	late     int
}

type clientStep struct {
	after *Client
	sent  wireMessage
}

func sets(s *Server) string { return fmt.Sprint(s.turn, s.u2, s.u3, s.u4, s.u5) }

func (w *world) key() string {
	k := sets(w.server)
	for i, c := range w.clients {
		k += fmt.Sprint(" ", c.next, w.flight[i] != nil)
	}
	return k
}

// answer is what the server said to device i before turn t, or nil.
func (e *explorer) answer(s *Server, i int, t Turn) any {
	id := s.members[i]
	switch {
	case t == TurnShare:
		return s.Roster()
	case t == TurnMask && s.turn > TurnShare && s.u2.Has(i):
		// Remembered: a device may be slow to act on it.
		k := fmt.Sprint("delivery", i, s.u2)
		if e.answers[k] == nil {
			e.answers[k] = s.Delivery(id)
		}
		return e.answers[k]
	case t == TurnConfirm && s.turn > TurnMask && s.u3.Has(i):
		return &Survivors{Roster: s.roster, U2: s.u2.clone(), U3: s.u3.clone()}
	case t == TurnReveal && s.turn > TurnConfirm && s.u4.Has(i):
		return s.confirmations()
	}
	return nil
}

// play hands a client a server message.
func play(c *Client, m any, symbols []int32) (wireMessage, error) {
	switch m := m.(type) {
	case *Roster:
		return c.Share(m)
	case *Delivery:
		if err := c.Deliver(m); err != nil {
			return nil, err
		}
		return c.Mask(symbols)
	case *Survivors:
		return c.Confirm(m)
	case *Confirmations:
		return c.Reveal(m)
	}
	panic("no server message")
}

// hand hands the server a device's message.
func hand(s *Server, from ID, m wireMessage) (Turn, error) {
	switch m := m.(type) {
	case *Shares:
		return TurnShare, s.Add(from, m)
	case *Masked:
		return TurnMask, s.Add(from, m)
	case *Confirmation:
		return TurnConfirm, s.Add(from, m)
	case *Reveal:
		return TurnReveal, s.Add(from, m)
	}
	panic("no device message")
}

func (e *explorer) explore(w *world, inFlight bool) {
	k := w.key()
	if e.seen[k] {
		return
	}
	e.seen[k] = true
	s := w.server
	e.misuse(w)
	for i, c := range w.clients {
		// A device sends.
		if m := e.answer(s, i, c.next); m != nil && w.flight[i] == nil {
			k := fmt.Sprint(i, c.next, s.u2, s.u3, s.u4)
			if c.next == TurnShare {
				k = fmt.Sprint(i, "dealt") // once, whatever else has happened: dealing draws randomness
			}
			step, ok := e.steps[k]
			if !ok {
				after := cloneClient(c)
				sent, err := play(after, m, e.r.byID[s.members[i]].symbols)
				if err != nil {
					e.t.Fatalf("device %d, turn %d: %v", i, c.next, err)
				}
				step = clientStep{after, sent}
				if e.masked[after] = e.masked[c]; c.next == TurnMask {
					if e.masked[after], err = sent.AppendBinary(nil); err != nil {
						e.t.Fatal(err)
					}
				}
				e.steps[k] = step
			}
			next := &world{s, slices.Clone(w.clients), slices.Clone(w.flight)}
			next.clients[i], next.flight[i] = step.after, step.sent
			if inFlight {
				e.explore(next, true)
			} else {
				e.arrive(next, i, false)
			}
		}
		if w.flight[i] != nil {
			e.arrive(w, i, inFlight)
		}
	}
	// The server closes.
	closed := cloneServer(s)
	have := map[Turn]Set{TurnShare: s.u2, TurnMask: s.u3, TurnConfirm: s.u4, TurnReveal: s.u5}[s.turn].Len()
	var err error
	switch s.turn {
	case TurnShare:
		err = closed.CloseSharing()
	case TurnMask:
		_, err = closed.CloseCollecting()
	case TurnConfirm:
		_, err = closed.CloseConfirming()
	case TurnReveal:
		e.unmask(s)
		return
	}
	if (err == nil) != (have >= s.threshold) {
		e.t.Fatalf("closing turn %d with %d devices: %v", s.turn, have, err)
	}
	if err == nil {
		e.explore(&world{closed, w.clients, w.flight}, inFlight)
	}
}

// arrive delivers device i's message: accepted in its turn, late afterwards.
func (e *explorer) arrive(w *world, i int, inFlight bool) {
	s := cloneServer(w.server)
	turn, err := hand(s, s.members[i], w.flight[i])
	if w.server.turn == turn {
		if err != nil {
			e.t.Fatalf("device %d, turn %d: %v", i, turn, err)
		}
	} else {
		if !errors.Is(err, ErrLate) {
			e.t.Fatalf("device %d, turn %d in turn %d: %v", i, turn, w.server.turn, err)
		}
		e.late++
	}
	next := &world{s, w.clients, slices.Clone(w.flight)}
	next.flight[i] = nil
	e.explore(next, inFlight)
}

// unmask succeeds exactly if t devices revealed, with the plain sum of U3.
func (e *explorer) unmask(s *Server) {
	k := sets(s)
	if e.unmasked[k] {
		return
	}
	e.unmasked[k] = true
	want := make([]int64, e.r.cfg.Dim)
	for i, id := range s.members {
		if s.u3.Has(i) {
			for j, x := range e.r.byID[id].symbols {
				want[j] += int64(x)
			}
		}
	}
	got, err := cloneServer(s).Unmask()
	if (err == nil) != (s.u5.Len() >= s.threshold) {
		e.t.Fatalf("unmasking with %d reveals: %v", s.u5.Len(), err)
	}
	if err == nil && !slices.Equal(got, want) {
		e.t.Fatalf("state %s: wrong sum", k)
	}
}

// misuse tries, on the clients, every server message but the one that is next, and
// on the server every message it has had, once per state of the machine tried.
func (e *explorer) misuse(w *world) {
	s := w.server
	for i, c := range w.clients {
		for t := TurnShare; t <= TurnReveal; t++ {
			m := e.answer(s, i, t)
			if m == nil || t == c.next {
				continue
			}
			k := fmt.Sprint(i, c.next, c.u2, c.u3, t, s.u2, s.u3, s.u4)
			if e.checked[k] {
				continue
			}
			e.checked[k] = true
			err := unchanged(e.t, k, func() error { _, err := play(c, m, e.r.byID[s.members[i]].symbols); return err }, c)
			want := ErrRepeated
			if t > c.next {
				want = ErrOutOfTurn
			}
			if !errors.Is(err, want) {
				e.t.Fatalf("client %s: %v, want %v", k, err, want)
			}
		}
		for t := TurnShare; t < c.next && t < TurnDone; t++ {
			k := fmt.Sprint("server", sets(s), i, t)
			if e.checked[k] || w.flight[i] != nil && t == c.next-1 {
				continue
			}
			e.checked[k] = true
			var m wireMessage
			switch t {
			case TurnShare:
				m = parse(e.t, new(Shares), c.sent[t])
			case TurnMask:
				m = parse(e.t, new(Masked), e.masked[c])
			case TurnConfirm:
				m = parse(e.t, new(Confirmation), c.sent[t])
			case TurnReveal:
				m = parse(e.t, new(Reveal), c.sent[t])
			}
			err := unchanged(e.t, k, func() error { _, err := hand(s, s.members[i], m); return err }, s)
			// It is known already, or came after its turn.
			if !errors.Is(err, ErrRepeated) && !errors.Is(err, ErrLate) {
				e.t.Fatalf("%s: %v", k, err)
			}
			if t != TurnConfirm {
				continue // the session says who sends; a signature says so itself
			}
			for j, id := range s.members {
				if j == i || s.digest[t][j] != (Hash{}) {
					continue
				}
				err = unchanged(e.t, k, func() error { _, err := hand(s, id, m); return err }, s)
				if !errors.Is(err, ErrSignature) && !errors.Is(err, ErrLate) && !errors.Is(err, ErrStranger) {
					e.t.Fatalf("%s, passed off by %d: %v", k, j, err)
				}
			}
		}
	}
}

func parse[M interface{ UnmarshalBinary([]byte) error }](t *testing.T, m M, b []byte) M {
	t.Helper()
	if err := m.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEveryOrder(t *testing.T) {
	for _, c := range []struct {
		devices  int
		inFlight bool // messages may overtake each other and come late; else they arrive as sent
		states   int  // at least so many are expected
	}{{3, true, 500}, {4, true, 1000}} {
		r := newRound(t, fmt.Sprint("orders", c.devices), testConfig(2, 11, 12, c.devices), c.devices)
		r.key()
		s := r.shards[0]
		w := &world{server: s, flight: make([]wireMessage, c.devices)}
		for _, id := range s.Members() {
			w.clients = append(w.clients, r.byID[id].c)
		}
		e := &explorer{t, r, map[string]bool{}, map[string]clientStep{}, map[string]any{}, map[*Client][]byte{}, map[string]bool{}, map[string]bool{}, 0}
		e.explore(w, c.inFlight)
		t.Logf("%d devices: %d states, %d ways to unmask, %d refusals, %d late messages", c.devices, len(e.seen), len(e.unmasked), len(e.checked), e.late)
		if len(e.seen) < c.states || len(e.unmasked) < 10 || e.late == 0 {
			t.Errorf("%d devices: only %d states, %d unmaskings, %d late messages", c.devices, len(e.seen), len(e.unmasked), e.late)
		}
	}
}
