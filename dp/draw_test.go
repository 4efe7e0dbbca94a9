package dp

import (
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// What is drawn by its definition, in whole numbers that hold every power of 1-q exactly: behind
// 32 bytes of the nonce the gaps, see skips. Members without keys have the same places as keys,
// and both commitments open.
func TestNumberedDrawsAsRoll(t *testing.T) {
	for _, n := range []int{1, 2, 100, 5_000} {
		keys := make([][]byte, n)
		for i := range keys {
			keys[i] = binary.BigEndian.AppendUint64(nil, uint64(i))
		}
		for _, q := range []float64{1, 0.75, 0.5, 0.3, 0.1, 0.013} {
			seed := [32]byte{byte(n), byte(n >> 8), byte(1000 * q)}
			stream := rand.NewChaCha8(seed)
			var nonce [32]byte
			_, _ = stream.Read(nonce[:]) // never fails
			want := defined(n, q, stream)
			population, err := Keys(keys)
			if err != nil {
				t.Fatal(err)
			}
			in := make([]bool, n)
			for _, i := range want {
				in[i] = true
			}
			for name, draw := range map[string]Draw{
				"roll": PoissonDraw(population), "numbered": PoissonDrawNumbered(n)} {
				got, cert, err := draw(q, rand.NewChaCha8(seed))
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s, n %d, q %v: %d drawn, %d by the definition", name, n, q, len(got), len(want))
				}
				if cert.Nonce != nonce || cert.Commitment != commitment(nonce, want) {
					t.Errorf("%s, n %d, q %v: certificate %+v", name, n, q, cert)
				}
				if err := cert.Verify(keys, in); (err == nil) != (name == "roll") {
					t.Errorf("%s, n %d, q %v: held against the keys: %v", name, n, q, err)
				}
			}
		}
	}
}

// defined draws n members by exact powers.
func defined(n int, q float64, stream io.Reader) (who []int) {
	if q == 1 {
		for i := range n {
			who = append(who, i)
		}
		return who
	}
	miss := new(big.Rat).Sub(big.NewRat(1, 1), new(big.Rat).SetFloat64(q))
	size, k := big.NewRat(1, 1), 0 // 2^k, at most 1/q
	for new(big.Rat).Mul(big.NewRat(2, 1), new(big.Rat).Mul(size, new(big.Rat).SetFloat64(q))).Cmp(big.NewRat(1, 1)) <= 0 {
		size.Mul(size, big.NewRat(2, 1))
		k++
	}
	random := func(n int) *big.Int {
		b := make([]byte, (n+7)/8)
		_, _ = io.ReadFull(stream, b) // never fails
		x := new(big.Int).SetBytes(b)
		return x.Rsh(x, uint(8*len(b)-n))
	}
	heads := func(m int64) bool { // a number of 128 bits below the power
		power := new(big.Rat).SetFrac(new(big.Int).Exp(miss.Num(), big.NewInt(m), nil), new(big.Int).Exp(miss.Denom(), big.NewInt(m), nil))
		u := new(big.Rat).SetFrac(random(128), new(big.Int).Lsh(big.NewInt(1), 128))
		return u.Cmp(power) < 0
	}
	for at := 0; ; at++ {
		for heads(1 << k) {
			if at += 1 << k; at >= n {
				return who
			}
		}
		m := random(k).Int64()
		for !heads(m) {
			m = random(k).Int64()
		}
		if at += int(m); at >= n {
			return who
		}
		who = append(who, at)
	}
}

// The rate that is drawn by is the float's own, to its last bit.
func TestNumberedRateIsExact(t *testing.T) {
	for _, q := range []float64{1, 0.1, 0.37, 1.0 / 3, 1e-7, 0x1.fffffffffffffp-65 * 2, 0x1p-64} {
		limit, err := coinLimit(q)
		if err != nil {
			t.Fatal(err)
		}
		if got := new(big.Rat).SetFrac(limit, new(big.Int).Lsh(big.NewInt(1), 128)); got.Cmp(new(big.Rat).SetFloat64(q)) != 0 {
			t.Errorf("%v is drawn as %v", q, got)
		}
	}
}

func TestNumberedRefuses(t *testing.T) {
	if _, _, err := PoissonDrawNumbered(0)(0.5, rand.NewChaCha8([32]byte{})); !errors.Is(err, ErrCertificate) {
		t.Errorf("an empty population: %v", err)
	}
	if _, _, err := PoissonDrawNumbered(3)(1.5, rand.NewChaCha8([32]byte{})); !errors.Is(err, ErrCertificate) {
		t.Errorf("a rate above 1: %v", err)
	}
	short := io.LimitReader(rand.NewChaCha8([32]byte{}), 32+16*50)
	if who, _, err := PoissonDrawNumbered(600)(0.5, short); !errors.Is(err, ErrEntropy) || who != nil {
		t.Errorf("a generator that ends: %d drawn, %v", len(who), err)
	}
}

// A million members cost what those do who are in.
func TestNumberedIsSmall(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	who, _, err := PoissonDrawNumbered(1_000_000)(1e-4, rand.NewChaCha8([32]byte{1}))
	runtime.ReadMemStats(&after)
	if err != nil || len(who) < 50 || len(who) > 160 { // mean 100, standard deviation 10
		t.Fatalf("%d drawn: %v", len(who), err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<16 {
		t.Errorf("allocated %d bytes", got)
	}
}
