package secagg

import (
	"errors"
	"slices"
	"sync"
	"testing"
)

// TestJudgeBesideEachOther plays a round whose messages are judged and summed by
// as many goroutines as there are devices, and admitted in another order than they
// came in: the sum is the same.
func TestJudgeBesideEachOther(t *testing.T) {
	r := newRound(t, "judge", testConfig(40, 11, 12, 8), 8)
	var advertised []*Examined
	for _, d := range r.devices {
		m, err := d.c.Advertise()
		r.must(err)
		advertised = append(advertised, r.keying.Examine(d.id, m))
	}
	for _, j := range slices.Backward(advertised) {
		r.must(r.keying.Admit(j))
	}
	shards, err := r.keying.Cut(r.rand)
	r.must(err)
	s := shards[0]
	// each makes and judges every device's message at the same time, and admits them
	// from here.
	each := func(judge func(d *device) (*Examined, error)) (all []*Examined) {
		t.Helper()
		all = make([]*Examined, len(r.devices))
		errs := make([]error, len(r.devices))
		var wg sync.WaitGroup
		for i, d := range r.devices {
			wg.Go(func() { all[i], errs[i] = judge(d) })
		}
		wg.Wait()
		r.must(errors.Join(errs...))
		for _, j := range slices.Backward(all) {
			r.must(s.Admit(j))
			if err := s.Admit(j); !errors.Is(err, ErrRepeated) {
				t.Errorf("admitted twice: %v", err)
			}
		}
		return all
	}
	each(func(d *device) (*Examined, error) {
		m, err := d.c.Share(s.Roster())
		if err != nil {
			return nil, err
		}
		return s.Examine(d.id, m), nil
	})
	r.must(s.CloseSharing())
	vectors := each(func(d *device) (*Examined, error) {
		if err := d.c.Deliver(s.Delivery(d.id)); err != nil {
			return nil, err
		}
		m, err := d.c.Mask(d.symbols)
		if err != nil {
			return nil, err
		}
		return s.Examine(d.id, m), nil
	})
	sv, err := s.CloseCollecting() // the vectors count though they are not added yet
	r.must(err)
	each(func(d *device) (*Examined, error) {
		m, err := d.c.Confirm(sv)
		if err != nil {
			return nil, err
		}
		return s.Examine(d.id, m), nil
	})
	cs, err := s.CloseConfirming()
	r.must(err)
	each(func(d *device) (*Examined, error) {
		m, err := d.c.Reveal(cs)
		if err != nil {
			return nil, err
		}
		return s.Examine(d.id, m), nil
	})
	s.Sum(vectors[0])
	s.Sum(vectors[0]) // once only
	if _, err := s.Unmask(); err == nil {
		t.Fatal("unmasked without the vectors of seven devices")
	}
	var wg sync.WaitGroup
	for _, j := range vectors {
		wg.Go(func() { s.Sum(j) })
	}
	wg.Wait()
	sum, err := s.Unmask()
	r.must(err)
	want := make([]int64, len(sum))
	for _, d := range r.devices {
		for i, x := range d.symbols {
			want[i] += int64(x)
		}
	}
	if !slices.Equal(sum, want) {
		t.Errorf("sum %v, want %v", sum, want)
	}
	s.Sum(vectors[1]) // after the end it changes nothing
}

// TestAdmitDecides: what was judged in time and comes too late, or judged before
// its turn, is refused by Admit as by the calls that do both.
func TestAdmitDecides(t *testing.T) {
	r := newRound(t, "admit", testConfig(3, 11, 12, 3), 3)
	r.key()
	s := r.shards[0]
	early := s.Examine(r.devices[0].id, &Confirmation{Roster: s.Roster().Hash()})
	if err := s.Admit(early); !errors.Is(err, ErrOutOfTurn) {
		t.Errorf("before its turn: %v", err)
	}
	var late *Examined
	for i, d := range r.devices {
		m, err := d.c.Share(s.Roster())
		r.must(err)
		if j := s.Examine(d.id, m); i == 0 {
			late = j
		} else {
			r.must(s.Admit(j))
		}
	}
	r.must(s.CloseSharing())
	if err := unchanged(t, "a late message", func() error { return s.Admit(late) }, s); !errors.Is(err, ErrLate) {
		t.Errorf("after its turn: %v", err)
	}
	if s.in(s.u2, r.devices[0].id) {
		t.Error("it counts")
	}
}
