package dp

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"
)

func testEvent(t testing.TB, round uint64) Event {
	t.Helper()
	e, err := ReleaseSpec{Round: round, SamplingRate: 0.01, B2: 2_936_012, NoiseMultiplier: 1.2457365, NoiseScale: 1, Certificate: [32]byte{1, 2, 3}}.Event(135_680)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEventEncodingIsCanonical(t *testing.T) {
	sim := testEvent(t, 7)
	sim.NoiseScale, sim.SimulatedRate = 0.25, 0.001
	sim.Sigma2, _ = NewVariance(sim.NoiseMultiplier, sim.B2, 0.25)
	provider := testEvent(t, 9)
	provider.ProviderRate, provider.Hidden = 0.25, true
	own, ownProvider := ownEvent(t, OwnNoise{0.05, 700, 21, true}), ownEvent(t, OwnNoise{0.05, 700, 21, false})
	own.Hit, ownProvider.ProviderRate = 1e-3, 0.5
	for _, e := range []Event{testEvent(t, 1), sim, Rounds(Mechanism{1, 0.3}, 2000), provider, GroupSampling{0.5, 1, false}.Rounds(1, 3), own, ownProvider} {
		size := eventSize
		if e.ProviderRate != 0 {
			size = providerEventSize
		}
		if e.Own.Multiplier != 0 {
			size += ownSize
		}
		if e.Hit != 0 {
			size += hitSize
		}
		b, err := e.MarshalBinary()
		if err != nil || len(b) != size {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		var back Event
		if err := back.UnmarshalBinary(b); err != nil || back != e {
			t.Errorf("decoded %+v (%v), want %+v", back, err, e)
		}
		for i := range b {
			for _, flip := range []byte{1, 0x80} {
				c := bytes.Clone(b)
				c[i] ^= flip
				var other Event
				if err := other.UnmarshalBinary(c); err == nil && other == e {
					t.Errorf("a change of byte %d decodes to the same event", i)
				}
			}
		}
		for _, c := range [][]byte{nil, b[:len(b)-1], append(bytes.Clone(b), 0)} {
			if err := new(Event).UnmarshalBinary(c); !errors.Is(err, ErrEvent) {
				t.Errorf("%d bytes: %v", len(c), err)
			}
		}
	}
}

func TestEventCheckNamesWhatIsWrong(t *testing.T) {
	for name, change := range map[string]func(*Event){
		"rate":           func(e *Event) { e.SamplingRate = 1.5 },
		"rate NaN":       func(e *Event) { e.SamplingRate = math.NaN() },
		"noise":          func(e *Event) { e.NoiseMultiplier = 0 },
		"more noise":     func(e *Event) { e.NoiseMultiplier *= 2 }, // claims more than Sigma2 has
		"less b2":        func(e *Event) { e.B2 /= 2 },
		"sigma2":         func(e *Event) { e.Sigma2.Lo += 2 },
		"sigma2 form":    func(e *Event) { e.Sigma2.Lo <<= 1; e.Sigma2.Shift++ },
		"count":          func(e *Event) { e.Count = 0 },
		"kind":           func(e *Event) { e.Kind = 9 },
		"scale":          func(e *Event) { e.NoiseScale = 0 },
		"dim":            func(e *Event) { e.Dim = 0 },
		"simulated rate": func(e *Event) { e.SimulatedRate = 0.5 },
		"negative zero":  func(e *Event) { e.SimulatedRate = math.Copysign(0, -1) },
	} {
		e := testEvent(t, 1)
		change(&e)
		if err := e.Check(); !errors.Is(err, ErrEvent) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := RDPEpsilon([]Event{testEvent(t, 1), e}, 1e-6); err == nil {
			t.Errorf("%s: accounted", name)
		}
	}
}

func FuzzEvent(f *testing.F) {
	for _, e := range []Event{testEvent(f, 1), Rounds(Mechanism{0.5, 2}, 3), GroupSampling{0.5, 0.25, true}.Rounds(2, 3), ownEvent(f, OwnNoise{0.05, 700, 21, true}), bandedEvent(f, Banded{4, 5, 4, 7}, 2)} {
		b, err := e.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Event
		if e.UnmarshalBinary(b) != nil {
			return
		}
		c, err := e.MarshalBinary()
		if err != nil || !bytes.Equal(b, c) {
			t.Fatalf("decoded %+v encodes to %x (%v), was %x", e, c, err, b)
		}
	})
}

// A round without noise is an event that claims none; no accountant takes it, and its
// sum is what it was.
func TestBareEvent(t *testing.T) {
	spec := ReleaseSpec{Round: 3, SamplingRate: 0.5, B2: 100, Unnoised: true, Certificate: [32]byte{7}}
	sum := []int64{5, -7, 0}
	e, err := Release(sum, spec, nil)
	if err != nil || !slices.Equal(sum, []int64{5, -7, 0}) || e.Kind != KindUnnoised || e.NoiseMultiplier != 0 {
		t.Fatalf("%v %+v %v", sum, e, err)
	}
	b, err := e.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var back Event
	if err := back.UnmarshalBinary(b); err != nil || back != e {
		t.Errorf("decoded %+v, %v", back, err)
	}
	for _, of := range []View{{}, {Observer: Participants}, {Observer: Colluding}, {Simulated: true}, {Observer: Untrusting}} {
		if _, err := Compose([]Event{testEvent(t, 1), e}, of); of.Observer == Untrusting && !errors.Is(err, ErrNoBound) || of.Observer != Untrusting && !errors.Is(err, ErrUnnoised) {
			t.Errorf("%+v: %v", of, err)
		}
	}
	for _, claim := range []func(*Event){
		func(e *Event) { e.NoiseMultiplier = 1 }, func(e *Event) { e.NoiseScale = 0.5 }, func(e *Event) { e.B2 = 4 },
		func(e *Event) { e.SimulatedRate = 0.1 }, func(e *Event) { e.Hidden = true }, func(e *Event) { e.ProviderRate = 1 },
		func(e *Event) { e.Dim = 0 }, func(e *Event) { e.SamplingRate = 0 }, func(e *Event) { e.Kind = KindCharged },
		func(e *Event) { e.Sigma2 = testEvent(t, 1).Sigma2 }, func(e *Event) { e.Kind = 5 },
	} {
		c := e
		if claim(&c); !errors.Is(c.Check(), ErrEvent) {
			t.Errorf("%+v passes", c)
		}
	}
}
