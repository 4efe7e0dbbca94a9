package secagg

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// TestSettleAgreesWithJudge: whichever messages of two turns are bad, and how, many
// settled at once get the verdicts that each gets by itself.
func TestSettleAgreesWithJudge(t *testing.T) {
	for _, identified := range []bool{false, true} {
		t.Run(fmt.Sprintf("identified %t", identified), func(t *testing.T) { settleAgrees(t, identified) })
	}
}

func settleAgrees(t *testing.T, identified bool) {
	const n = 7
	cfg := testConfig(3, 11, 12, n)
	if identified {
		cfg.Identified, cfg.Authority = true, [32]byte{}
	}
	r := newRound(t, fmt.Sprintf("settle %t", identified), cfg, n)
	low := oddSign(t, newDRBG("settle"), []byte("another statement"), 3, 5)
	damage := map[string]func(m *Advertise){
		"none":              func(*Advertise) {},
		"signature":         func(m *Advertise) { m.Sign[5] ^= 4 },
		"S":                 func(m *Advertise) { m.Sign[63] |= 0xe0 },
		"nonce of no point": func(m *Advertise) { copy(m.Sign[:], []byte{2, 31: 0}); m.Sign[31] = 0 },
		"another's":         func(m *Advertise) { m.Sign = low.sign },
		"identity":          func(m *Advertise) { m.Vouch[50] ^= 1 },
		"order 8":           func(m *Advertise) { copy(m.Sign[:32], torsion(t).Bytes()) },
		"mask key":          func(m *Advertise) { m.Keys.Mask[0] ^= 1 },
		"plan":              func(m *Advertise) { m.Plan[0] ^= 1 },
	}
	var sent []*Advertise
	for _, d := range r.devices {
		m, err := d.c.Advertise()
		r.must(err)
		sent = append(sent, m)
	}
	agree := func(what string, examine, judge func(i int) *Examined) (refused int) {
		t.Helper()
		var together []*Examined
		for i := range n {
			j := examine(i)
			if j.verdict == nil && !j.Unverified() {
				t.Errorf("%s: message %d has nothing to check", what, i)
			}
			together = append(together, j)
		}
		VerifyBatch(together)
		for i, j := range together {
			alone := judge(i)
			if j.Unverified() || fmt.Sprint(j.verdict) != fmt.Sprint(alone.verdict) {
				t.Errorf("%s: message %d: %v at once, %v alone", what, i, j.verdict, alone.verdict)
			}
			if alone.verdict != nil {
				refused++
			}
		}
		return refused
	}
	for name, spoil := range damage {
		for at := range n {
			messages := make([]Advertise, n)
			for i := range messages {
				messages[i] = *sent[i]
			}
			spoil(&messages[at])
			refused := agree(name,
				func(i int) *Examined { return r.keying.Examine(r.devices[i].id, &messages[i]) },
				func(i int) *Examined { return settled(r.keying.Examine(r.devices[i].id, &messages[i])) })
			want := 1
			if name == "none" {
				want = 0
			}
			if refused != want {
				t.Fatalf("%s: %d of %d were refused, want %d", name, refused, n, want)
			}
		}
	}
	// Who was not settled is settled by Admit, not let in.
	bad := *sent[0]
	damage["signature"](&bad)
	if err := r.keying.Admit(r.keying.Examine(r.devices[0].id, &bad)); !errors.Is(err, ErrSignature) {
		t.Errorf("admitted unsettled: %v", err)
	}
	VerifyBatch(nil)
	for i, d := range r.devices {
		r.must(r.keying.Admit(r.keying.Examine(d.id, sent[i])))
	}
	shards, err := r.keying.Cut(r.rand)
	r.must(err)
	s := shards[0]
	var shared []*Shares
	for _, d := range r.devices {
		m, err := d.c.Share(s.Roster())
		r.must(err)
		shared = append(shared, m)
	}
	none := append([]byte{2}, make([]byte, pointSize-1)...) // y = 2 is not a point's
	for at := range n {
		for wrong := range 3 {
			messages := make([]Shares, n)
			for i := range messages {
				messages[i] = Shares{shared[i].Roster, bytes.Clone(shared[i].Commit), shared[i].Sealed}
			}
			for k := range wrong {
				copy(messages[at].Commit[k*pointSize:], none)
			}
			if refused := agree("shares",
				func(i int) *Examined { return s.Examine(r.devices[i].id, &messages[i]) },
				func(i int) *Examined { return settled(s.Examine(r.devices[i].id, &messages[i])) }); refused != min(wrong, 1) {
				t.Fatalf("%d no points: %d messages were refused", wrong, refused)
			}
		}
	}
	garbage := *shared[0]
	garbage.Commit = bytes.Repeat(none, len(garbage.Commit)/pointSize)
	if err := s.Admit(s.Examine(r.devices[0].id, &garbage)); !errors.Is(err, ErrCommitment) {
		t.Errorf("admitted unsettled: %v", err)
	}
	for i, d := range r.devices {
		r.must(s.Add(d.id, shared[i]))
	}
	r.must(s.CloseSharing())
	for _, d := range r.devices {
		r.must(d.c.Deliver(s.Delivery(d.id)))
		m, err := d.c.Mask(d.symbols)
		r.must(err)
		r.must(s.Add(d.id, m))
	}
	sv, err := s.CloseCollecting()
	r.must(err)
	var confirmed []*Confirmation
	for _, d := range r.devices {
		m, err := d.c.Confirm(sv)
		r.must(err)
		confirmed = append(confirmed, m)
	}
	for at := range n {
		messages := make([]Confirmation, n)
		for i := range messages {
			messages[i] = *confirmed[i]
		}
		messages[at].Sign[9] ^= 1
		if refused := agree("confirmation",
			func(i int) *Examined { return s.Examine(r.devices[i].id, &messages[i]) },
			func(i int) *Examined { return settled(s.Examine(r.devices[i].id, &messages[i])) }); refused != 1 {
			t.Fatalf("%d confirmations were refused", refused)
		}
	}
	bent := *confirmed[0]
	bent.Sign[9] ^= 1
	var device *DeviceError
	if err := s.Admit(s.Examine(r.devices[0].id, &bent)); !errors.As(err, &device) || !errors.Is(err, ErrSignature) {
		t.Errorf("admitted unsettled: %v", err)
	}
}
