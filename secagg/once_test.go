package secagg

import (
	"errors"
	"slices"
	"testing"
)

// TestSecondVector: one vector under one round's keys, whatever it is asked.
func TestSecondVector(t *testing.T) {
	r := newRound(t, "second vector", testConfig(5, 11, 12, 3), 3)
	r.key()
	s := r.shards[0]
	r.must(r.share(s))
	d := r.byID[s.Members()[0]]
	r.must(d.c.Deliver(s.Delivery(d.id)))
	for what, c := range map[string]struct {
		v     []int32
		cause error
	}{
		"short":     {make([]int32, 4), ErrLength},
		"long":      {make([]int32, 6), ErrLength},
		"too large": {[]int32{0, 0, 13, 0, 0}, ErrRange},
		"too small": {[]int32{0, 0, 0, 0, -13}, ErrRange},
		"extreme":   {[]int32{-1 << 31, 0, 0, 0, 0}, ErrRange},
	} {
		err := unchanged(t, what, func() error { _, err := d.c.Mask(c.v); return err }, d.c)
		if !errors.Is(err, c.cause) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := d.c.Mask(d.symbols)
	r.must(err)
	for _, v := range [][]int32{d.symbols, make([]int32, 5)} {
		err := unchanged(t, "a second vector", func() error { _, err := d.c.Mask(v); return err }, d.c)
		if !errors.Is(err, ErrConflict) {
			t.Error(err)
		}
	}
	if d.c.maskA != [32]byte{} || d.c.selfA != [32]byte{} {
		t.Error("mask secrets outlive the vector")
	}
}

// TestErase: after Reveal or Abort no secret is left, and nothing is answered.
func TestErase(t *testing.T) {
	for stop := TurnAdvertise; stop <= TurnDone; stop++ {
		r := newRound(t, "erase", testConfig(5, 11, 12, 3), 3)
		r.key()
		s := r.shards[0]
		for _, d := range r.devices {
			d.lastTurn = TurnReveal
		}
		if stop > TurnShare {
			r.must(r.share(s))
		}
		var sv *Survivors
		var cs *Confirmations
		var err error
		if stop > TurnMask {
			sv, err = r.mask(s)
			r.must(err)
		}
		if stop > TurnConfirm {
			cs, err = r.confirm(s, sv)
			r.must(err)
		}
		if stop > TurnReveal {
			r.reveal(s, cs)
		}
		c := r.devices[0].c
		signer, shares, agreed := c.signer, c.shares, c.agreed
		if stop < TurnDone {
			c.Abort()
			for turn := TurnAdvertise; turn < TurnDone; turn++ {
				if c.Resend(turn) != nil {
					t.Error("bytes left after Abort")
				}
			}
			if _, err := c.Advertise(); !errors.Is(err, ErrErased) {
				t.Error(err)
			}
			if err := c.Deliver(&Delivery{}); !errors.Is(err, ErrErased) {
				t.Error(err)
			}
		}
		if c.next != TurnDone || c.maskA != [32]byte{} || c.selfA != [32]byte{} || c.signer != nil || c.sealing != nil || c.shares != nil || c.agreed != nil {
			t.Errorf("stopped before turn %d: secrets left", stop)
		}
		for _, b := range signer {
			if b != 0 {
				t.Fatal("signing key not cleared")
			}
		}
		for _, p := range shares {
			if p != [plainSize]byte{} {
				t.Fatal("shares not cleared")
			}
		}
		for _, a := range agreed {
			if a != (shared{}) {
				t.Fatal("agreed keys not cleared")
			}
		}
		c.Abort()
	}
}

// TestEraseOnTheWay: each secret is cleared in place by the last turn that needs it.
func TestEraseOnTheWay(t *testing.T) {
	r := newRound(t, "erase on the way", testConfig(5, 11, 12, 3), 3)
	r.key()
	s := r.shards[0]
	r.must(r.share(s))
	d := r.devices[0]
	agreed, signer, shares := d.c.agreed, d.c.signer, d.c.shares
	if len(agreed) != 3 || len(signer) == 0 || len(shares) != 3 || d.c.maskA == [32]byte{} {
		t.Fatal("nothing to erase: the test has lost its point")
	}
	sv, err := r.mask(s)
	r.must(err)
	for _, a := range agreed {
		if a != (shared{}) {
			t.Error("agreed keys outlive the delivery")
		}
	}
	if d.c.sealing != nil || d.c.maskA != [32]byte{} || d.c.selfA != [32]byte{} {
		t.Error("sealing key or mask secrets outlive the vector")
	}
	if slices.Max(signer) == 0 || shares[0] == [plainSize]byte{} {
		t.Fatal("erased too early")
	}
	cs, err := r.confirm(s, sv)
	r.must(err)
	if slices.Max(signer) != 0 {
		t.Error("the signing key outlives the confirmation")
	}
	r.reveal(s, cs)
	for _, p := range shares {
		if p != [plainSize]byte{} {
			t.Error("shares outlive the reveal")
		}
	}
	// On the server: the sum and the shares go with Unmask.
	sum := s.sum
	revealed := s.reveals[0].Shares
	if _, err := s.Unmask(); err != nil {
		t.Fatal(err)
	}
	if slices.Max(sum) != 0 || slices.Max(revealed) != 0 {
		t.Error("the server keeps its sum or shares after unmasking")
	}
}
