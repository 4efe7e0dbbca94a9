package dp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Every set of 2 of 5 is drawn equally often: chi-square over all ten of them, 9 degrees of
// freedom, beyond 40 with a probability of 8e-6; the stream is seeded.
func TestFixedDrawsEverySetAlike(t *testing.T) {
	rnd := rand.NewChaCha8([32]byte{7})
	count := map[string]int{}
	const draws = 20_000
	for range draws {
		who, _, err := FixedDrawNumbered(5, 2)(1, rnd)
		if err != nil {
			t.Fatal(err)
		}
		if len(who) != 2 || who[0] >= who[1] || who[0] < 0 || who[1] > 4 {
			t.Fatalf("drawn: %v", who)
		}
		count[fmt.Sprint(who)]++
	}
	if len(count) != 10 {
		t.Fatalf("%d of 10 sets were drawn", len(count))
	}
	chi := 0.0
	for _, n := range count {
		d := float64(n) - draws/10
		chi += d * d / (draws / 10)
	}
	if chi > 40 {
		t.Errorf("chi-square %v over %v", chi, count)
	}
}

func TestFixedRollIsTheNumberedDraw(t *testing.T) {
	keys := [][]byte{{1}, {2}, {3}, {4}, {5}, {6}}
	population, err := Keys(keys)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1; size <= 6; size++ {
		who, cert, err := FixedDraw(population, size)(1, rand.NewChaCha8([32]byte{byte(size)}))
		if err != nil {
			t.Fatal(err)
		}
		numbered, other, err := FixedDrawNumbered(6, size)(1, rand.NewChaCha8([32]byte{byte(size)}))
		if err != nil || !slices.Equal(who, numbered) {
			t.Errorf("%d of 6: %v by keys, %v by number, %v", size, who, numbered, err)
		}
		in := make([]bool, 6)
		for _, i := range who {
			in[i] = true
		}
		if err := cert.Verify(keys, in); err != nil {
			t.Error(err)
		}
		in[who[0]] = false
		if err := cert.Verify(keys, in); !errors.Is(err, ErrCertificate) {
			t.Errorf("another cohort: %v", err)
		}
		for _, c := range []Certificate{cert, other} {
			if c.AccountedRate() != 1 || c.Rate != float64(size)/6 || c.Population != 6 {
				t.Errorf("certificate %+v: what is drawn without replacement does not amplify", c)
			}
		}
	}
}

// A draw of those who do not rest is that of a fixed size over them, and names its method, which
// amplifies nothing.
func TestSeparatedDrawIsAFixedOne(t *testing.T) {
	keys := [][]byte{{1}, {2}, {3}, {4}, {5}, {6}}
	population, err := Keys(keys)
	if err != nil {
		t.Fatal(err)
	}
	who, cert, err := SeparatedDraw(population, 2)(0.5, rand.NewChaCha8([32]byte{4}))
	if err != nil {
		t.Fatal(err)
	}
	fixed, _, err := FixedDraw(population, 2)(0.5, rand.NewChaCha8([32]byte{4}))
	if err != nil || !slices.Equal(who, fixed) || cert.Method != MethodSeparated || cert.AccountedRate() != 1 {
		t.Errorf("%v, of a fixed size %v; %s at %v, %v", who, fixed, cert.Method, cert.AccountedRate(), err)
	}
	in := make([]bool, 6)
	for _, i := range who {
		in[i] = true
	}
	if err := cert.Verify(keys, in); err != nil {
		t.Error(err)
	}
}

func TestFixedRefuses(t *testing.T) {
	for name, draw := range map[string]Draw{
		"none":       FixedDrawNumbered(4, 0),
		"too many":   FixedDrawNumbered(4, 5),
		"too few":    FixedDraw(Population{n: 1}, 2),
		"no members": FixedDraw(Population{}, 1),
	} {
		if who, _, err := draw(1, rand.NewChaCha8([32]byte{})); !errors.Is(err, ErrCertificate) || who != nil {
			t.Errorf("%s: %v, %v", name, who, err)
		}
	}
	if who, _, err := FixedDrawNumbered(4, 2)(1, bytes.NewReader(make([]byte, 40))); !errors.Is(err, ErrEntropy) || who != nil {
		t.Errorf("randomness that ends: %v, %v", who, err)
	}
}

func TestFixedEventsAreEncoded(t *testing.T) {
	e, err := ReleaseSpec{Round: 3, SamplingRate: 1, B2: 1000, NoiseMultiplier: 2, NoiseScale: 1, Fixed: true}.Event(5)
	if err != nil || !e.Fixed {
		t.Fatalf("%+v, %v", e, err)
	}
	b, err := e.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var back Event
	if err := back.UnmarshalBinary(b); err != nil || back != e {
		t.Errorf("%+v, %v; want %+v", back, err, e)
	}
	e.Fixed = false
	plain, err := e.MarshalBinary()
	if err != nil || plain[0] != 1 || b[0] != 9 || !bytes.Equal(plain[1:], b[1:]) {
		t.Errorf("versions %d and %d, %v", plain[0], b[0], err)
	}
	if b[0] = 17; back.UnmarshalBinary(b) == nil {
		t.Error("an unknown version was read")
	}
}

// A draw without those who rest is of the others, each as likely, and says so.
func TestSeparatedDrawLeavesOutThoseWhoRest(t *testing.T) {
	const n, size, draws = 9, 2, 6000
	resting := []int{0, 3, 4, 8}
	times := make([]int, n)
	src := drbg(9)
	for range draws {
		who, cert, err := SeparatedDrawNumbered(n, size, resting)(1, src)
		if err != nil || len(who) != size || who[0] >= who[1] || cert.Method != MethodSeparated || cert.Population != n || cert.AccountedRate() != 1 {
			t.Fatalf("%v, %+v, %v", who, cert, err)
		}
		if commitment(cert.Nonce, who) != cert.Commitment {
			t.Fatal("the certificate is of another cohort")
		}
		for _, at := range who {
			times[at]++
		}
	}
	// Each of the five others 2,400 times, with a standard deviation of 38.
	for at, got := range times {
		want := 2400
		if slices.Contains(resting, at) {
			want = 0
		}
		if got < want-min(want, 230) || got > want+min(want, 230) {
			t.Errorf("member %d was drawn %d times, want %d", at, got, want)
		}
	}
	for _, bad := range [][]int{{3, 3}, {4, 3}, {-1}, {9}, {0, 1, 2, 3, 4, 5, 6, 7}} {
		if _, _, err := SeparatedDrawNumbered(n, size, bad)(1, src); !errors.Is(err, ErrCertificate) {
			t.Errorf("resting %v: %v", bad, err)
		}
	}
}
