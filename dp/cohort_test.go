package dp

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"math"
	"testing"
)

// TestRollTellsNobodyWhoIsEnrolled: anyone who knows or guesses the population cannot
// find it in a certificate without the nonce, nor see that two are about the same;
// with the nonce it verifies, and so do those of before.
func TestRollTellsNobodyWhoIsEnrolled(t *testing.T) {
	keys := enrolled(20)
	in, a, err := DrawCohort(keys, 0.5, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, b, err := DrawCohort(keys, 0.5, rand.Reader)
	if err != nil || a.Roll == b.Roll || a.Roll == rollHash(keys) || a.Roll == rollMAC([32]byte{}, runsOf(keys)) {
		t.Errorf("rolls %x and %x show the population, %v", a.Roll, b.Roll, err)
	}
	if err := a.Verify(keys, in); err != nil {
		t.Error(err)
	}
	old := a
	old.Commitment = bitCommitment(a.Nonce, in)
	for _, old.Roll = range [][32]byte{rollHash(keys), rollMACv2(a.Nonce, keys)} {
		if err := old.Verify(keys, in); err != nil {
			t.Errorf("a certificate of before: %v", err)
		}
	}
	a.Nonce[0]++
	if err := a.Verify(keys, in); !errors.Is(err, ErrCertificate) {
		t.Errorf("with another nonce: %v", err)
	}
}

func enrolled(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = binary.BigEndian.AppendUint32(bytes.Repeat([]byte{7}, 28), uint32(i))
	}
	return out
}

// Each member is in with probability q, and every pair independently: counts of
// members and of pairs within 5.2 standard deviations of q and q^2 (false-reject rate
// 2e-7 for each of the 3 + 3 figures a rate).
func TestCohortCoinsAreIndependent(t *testing.T) {
	const members, draws = 12, 20_000
	keys := enrolled(members)
	rnd := drbg(33)
	for _, q := range []float64{0.5, 0.1, 0.37} {
		var single [members]float64
		var pair [members][members]float64
		both, size, sizeSq := 0.0, 0.0, 0.0
		var last []bool
		for range draws {
			in, _, err := DrawCohort(keys, q, rnd)
			if err != nil {
				t.Fatal(err)
			}
			n := 0.0
			for i := range in {
				if !in[i] {
					continue
				}
				n++
				single[i]++
				for j := range i {
					if in[j] {
						pair[i][j]++
					}
				}
				if last != nil && last[i] {
					both++ // in two rounds running
				}
			}
			size += n
			sizeSq += n * n
			last = in
		}
		within := func(what string, got, n, p float64) {
			if sd := math.Sqrt(n * p * (1 - p)); math.Abs(got-n*p) > 5.2*sd {
				t.Errorf("q=%v: %s %v of %v, want %v +- %v", q, what, got, n, n*p, sd)
			}
		}
		for i := range members {
			within("member", single[i], draws, q)
			for j := range i {
				within("pair", pair[i][j], draws, q*q)
			}
		}
		within("rounds running", both, members*(draws-1), q*q)
		// A cohort of fixed size would have no variance; a Poisson one has n*q*(1-q).
		v := sizeSq/draws - size/draws*size/draws
		if want := members * q * (1 - q); math.Abs(v/want-1) > 5.2*math.Sqrt(2.0/draws)*1.2 {
			t.Errorf("q=%v: the cohort's size has variance %v, want %v", q, v, want)
		}
	}
}

func TestCertificate(t *testing.T) {
	keys := enrolled(50)
	in, cert, err := DrawCohort(keys, 0.3, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := cert.Verify(keys, in); err != nil {
		t.Error(err)
	}
	if cert.Generator != "crypto/rand" || cert.AccountedRate() != 0.3 || cert.Population != 50 {
		t.Errorf("%+v", cert)
	}
	other := append([]bool(nil), in...)
	other[3] = !other[3]
	swapped := append([][]byte(nil), keys...)
	swapped[0], swapped[1] = swapped[1], swapped[0]
	twice := append([][]byte(nil), keys...)
	twice[1] = twice[0]
	wrongNonce := cert
	wrongNonce.Nonce[0] ^= 1
	for name, err := range map[string]error{
		"another cohort": cert.Verify(keys, other), "another population": cert.Verify(swapped, in),
		"one twice": cert.Verify(twice, in),
		"fewer":     cert.Verify(keys[:49], in[:49]), "another nonce": wrongNonce.Verify(keys, in),
	} {
		if !errors.Is(err, ErrCertificate) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if in2, c2, _ := DrawCohort(keys, 0.3, drbg(2)); c2.Hash() == cert.Hash() || c2.Generator == "crypto/rand" || len(in2) != 50 {
		t.Errorf("another draw has the same certificate: %+v", c2)
	}
	hidden := cert
	hidden.Nonce = [32]byte{}
	if hidden.Hash() != cert.Hash() {
		t.Error("the certificate's hash depends on the secret nonce")
	}
	// Where the sampler was something else the accountant is told q = 1.
	for _, c := range []Certificate{{}, {Method: "shuffle", Rate: 0.1, Population: 10}, {Method: MethodPoisson, Rate: math.NaN(), Population: 10}, {Method: MethodPoisson, Rate: 0.1}} {
		if q := c.AccountedRate(); q != 1 {
			t.Errorf("%+v is accounted with q = %v", c, q)
		}
	}
	for name, f := range map[string]func() error{
		"q 0":       func() error { _, _, err := DrawCohort(keys, 0, rand.Reader); return err },
		"q NaN":     func() error { _, _, err := DrawCohort(keys, math.NaN(), rand.Reader); return err },
		"q 2":       func() error { _, _, err := DrawCohort(keys, 2, rand.Reader); return err },
		"nobody":    func() error { _, _, err := DrawCohort(nil, 0.5, rand.Reader); return err },
		"twice":     func() error { _, _, err := DrawCohort(append(keys, keys[0]), 0.5, rand.Reader); return err },
		"empty key": func() error { _, _, err := DrawCohort([][]byte{{}}, 0.5, rand.Reader); return err },
	} {
		if err := f(); !errors.Is(err, ErrCertificate) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDelta(t *testing.T) {
	if d := DefaultDelta(1000); math.Abs(d-1e-6) > 1e-20 {
		t.Errorf("N = 1000: %v", d)
	}
	if d := DefaultDelta(10_000_000); math.Abs(d/math.Pow(1e7, -1.1)-1) > 1e-12 {
		t.Errorf("N = 1e7: %v", d)
	}
	for _, c := range []struct {
		delta float64
		n     int
		warn  bool
		bad   bool
	}{{1e-6, 1000, false, false}, {1e-3, 1000, true, false}, {1.1e-3, 1000, false, true}, {0, 0, false, true}, {1, 0, false, true}, {math.NaN(), 0, false, true}, {0.9, 0, false, false}} {
		w, err := CheckDelta(c.delta, c.n)
		if (w != "") != c.warn || (err != nil) != c.bad || c.bad && !errors.Is(err, ErrDelta) {
			t.Errorf("%+v: %q, %v", c, w, err)
		}
	}
}

func TestCohortFloorFailure(t *testing.T) {
	// By the definition, for small populations.
	for _, c := range []struct {
		n      int
		q      float64
		floor  int
		rounds int
	}{{10, 0.5, 3, 1}, {24, 0.9, 12, 20}, {30, 0.2, 1, 5}, {12, 0.99, 12, 1}} {
		p := 0.0
		for k := range c.floor {
			p += math.Exp(lchoose(c.n, k) + float64(k)*math.Log(c.q) + float64(c.n-k)*math.Log1p(-c.q))
		}
		got := CohortFloorFailure(c.n, c.q, c.floor, c.rounds)
		if want := min(1, p*float64(c.rounds)); got < want*(1-1e-12) || got > want*(1+1e-6) {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
	for _, c := range []struct {
		n, floor int
		q        float64
		want     float64
	}{{24, 12, 1, 0}, {10, 11, 1, 1}, {10, 0, 0.1, 0}, {10, 1, 0, 1}} {
		if got := CohortFloorFailure(c.n, c.q, c.floor, 3); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if p := CohortFloorFailure(1_000_000, 0.01, 5000, 2000); p > 1e-300 {
		t.Errorf("ten thousand expected, half of it asked for: %v", p)
	}
}

// A certificate's hash names all of it but the secret; its commitment hides what it is
// about as long as the nonce is hidden.
func TestCertificateHashNamesEverything(t *testing.T) {
	c := Certificate{Method: "a", Generator: "b", Rate: 0.5, Population: 3, Roll: [32]byte{1}, Commitment: [32]byte{2}, Nonce: [32]byte{3}}
	seen := map[[32]byte]string{c.Hash(): "itself"}
	for what, change := range map[string]func(c *Certificate){
		"method": func(c *Certificate) { c.Method = "ab" }, "generator": func(c *Certificate) { c.Generator = "c" },
		"rate": func(c *Certificate) { c.Rate = 0.25 }, "population": func(c *Certificate) { c.Population = 4 },
		"roll": func(c *Certificate) { c.Roll[31] = 1 }, "commitment": func(c *Certificate) { c.Commitment[31] = 1 },
		"where the method ends": func(c *Certificate) { c.Method, c.Generator = "", "ab" },
	} {
		other := c
		change(&other)
		if with, ok := seen[other.Hash()]; ok {
			t.Errorf("%s is hashed as %s", what, with)
		}
		seen[other.Hash()] = what
	}
	other := c
	other.Nonce[0]++
	if other.Hash() != c.Hash() {
		t.Error("the hash shows the nonce")
	}
	in := []int{0, 2}
	if commitment([32]byte{1}, in) == commitment([32]byte{2}, in) {
		t.Error("equal cohorts have equal commitments")
	}
	if commitment([32]byte{1}, in) == commitment([32]byte{1}, []int{0, 1, 2}) {
		t.Error("other cohorts have equal commitments")
	}
}
