package fleet

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator/internal/link"
	"github.com/starling-fl/starling/coordinator/round"
	"github.com/starling-fl/starling/dp"
)

// TestCounts: whatever happens to devices in whatever order, the counts are what a walk over
// all of them finds.
func TestCounts(t *testing.T) {
	start := time.Now()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 9))
		f := New()
		for i := range 12 {
			f.Add([32]byte{byte(i * 7)})
		}
		for step := range 400 {
			now := start.Add(time.Duration(step) * time.Second)
			d := f.At(round.Device(r.IntN(f.Enrolled())))
			switch r.IntN(9) {
			case 8:
				if id := [32]byte{byte(r.IntN(3) * 99), byte(r.IntN(2)), byte(r.IntN(256)), 1}; f.Of(id) == nil && step%10 == 0 {
					f.Add(id)
				}
			case 0, 1:
				if d.Link == nil {
					f.Connect(d, &link.Link{}, []byte("token"), now)
				}
			case 2:
				if l := d.Link; l != nil {
					if f.Disconnect(d, now); !l.Dead() || d.Ready || !d.Gone.Equal(now) {
						t.Fatalf("disconnected it is %+v", d)
					}
				}
			case 3, 4:
				if was := d.Ready; d.Link != nil && f.NowReady(d) == was {
					t.Fatalf("ready before: %v", was)
				}
			case 5:
				if d.Link != nil {
					f.Silent(d, r.IntN(2) == 0, 3*time.Second, now)
				}
			case 6:
				f.Exclude(d, "garbage")
			default:
				out := map[[32]byte]string{}
				for _, d := range f.All() {
					if d.Excluded && r.IntN(2) == 0 {
						f.Pardon(d)
					} else if d.Excluded {
						out[d.ID] = d.Why
					} else if r.IntN(3) == 0 {
						out[d.ID] = "" // not seen for long
					}
				}
				f.Muster(out)
				for _, d := range f.All() {
					if why, is := out[d.ID]; d.Out != (is && (why != "" || d.Link == nil)) {
						t.Fatalf("mustered as %q, %v, it is %+v", why, is, d)
					}
				}
			}
			rolls(t, f, now)
			var active, connected, ready, available int
			for _, d := range f.All() {
				count := func(n *int, is bool) {
					if is {
						*n++
					}
				}
				count(&active, !d.Out)
				count(&connected, d.Link != nil)
				count(&ready, d.Ready)
				count(&available, d.There(now))
			}
			if f.Active() != active || f.Connected() != connected || f.Ready() != ready || f.Available(now) != available {
				t.Fatalf("seed %d, step %d: counted %d active, %d connected, %d ready, %d available; there are %d, %d, %d, %d",
					seed, step, f.Active(), f.Connected(), f.Ready(), f.Available(now), active, connected, ready, available)
			}
		}
	}
}

// rolls holds both rolls against a walk over all.
func rolls(t *testing.T, f *Fleet, now time.Time) {
	t.Helper()
	var drawn, there []round.Device
	for _, d := range slices.SortedFunc(slices.Values(f.All()), func(a, b *Device) int { return slices.Compare(a.ID[:], b.ID[:]) }) {
		if d.Out {
			continue
		}
		drawn = append(drawn, d.N)
		if d.There(now) {
			there = append(there, d.N)
		}
	}
	for _, c := range []struct {
		ask  func() (Roll, error)
		want []round.Device
	}{{f.Roll, drawn}, {func() (Roll, error) { return f.There(now, nil) }, there}} {
		got, err := c.ask()
		if err != nil || got.Len() != len(c.want) {
			t.Fatalf("on the roll stand %d, %v, want %v", got.Len(), err, c.want)
		}
		if len(c.want) == 0 {
			continue
		}
		var keys [][]byte
		for i, n := range c.want {
			if got.Who(i) != n {
				t.Fatalf("at %d on the roll stands device %d, want %d", i, got.Who(i), n)
			}
			keys = append(keys, f.At(n).ID[:])
		}
		// The certificate is about these keys and no others.
		who, cert, err := dp.PoissonDraw(got.Population)(0.5, rand.NewChaCha8([32]byte{byte(len(keys))}))
		in := make([]bool, len(keys))
		for _, i := range who {
			in[i] = true
		}
		if err := errors.Join(err, cert.Verify(keys, in)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSilent: a device that is silent once is taken into the next round, after that it rests
// twice as long each time, up to 63 rounds; one that works is not silent any more.
func TestSilent(t *testing.T) {
	f := New()
	d, now := f.Add([32]byte{1}), time.Now()
	f.Connect(d, &link.Link{}, nil, now)
	for n, rounds := range []int{0, 1, 3, 7, 15, 31, 63, 63} {
		f.NowReady(d)
		f.Silent(d, n%2 == 0, time.Minute, now)
		if rest := max(0, d.Rests.Sub(now)); rest != time.Duration(rounds)*time.Minute || d.Ready {
			t.Errorf("silent %d times it rests %v, ready %v", n+1, rest, d.Ready)
		}
	}
	if d.Missed != 8 || d.Overdue != 4 {
		t.Errorf("%+v", d.Presence)
	}
	if d.Works(); d.Missed != 0 || d.Overdue != 0 {
		t.Errorf("it works, and is %+v", d.Presence)
	}
}

// TestStanding: who is excluded is in no draw until it is pardoned and mustered.
func TestStanding(t *testing.T) {
	f := New()
	d := f.Add([32]byte{1})
	f.Add([32]byte{2})
	d.Strikes = 2
	f.Exclude(d, "garbage")
	f.Exclude(d, "garbage again")
	if f.Active() != 1 || f.Of(d.ID) != d || f.Of([32]byte{9}) != nil {
		t.Errorf("%d active", f.Active())
	}
	f.Pardon(d)
	f.Muster(nil)
	if f.Active() != 2 || d.Standing != (Standing{}) {
		t.Errorf("pardoned: %d active, %+v", f.Active(), d.Standing)
	}
}
