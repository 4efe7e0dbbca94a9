package dp

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// Every subset of five members comes as often as independent coins have it: chi-square of
// 32 classes over 60,000 draws, beyond its limit once in a million (the seed is fixed: in
// every run or in none).
func TestSparseDrawsEverySubset(t *testing.T) {
	for _, q := range []float64{0.3, 0.5, 0.8, 0x1p-3} {
		rnd := rand.NewChaCha8([32]byte{3})
		draw := Sparse(5)
		seen := make([]float64, 32)
		const n = 60_000
		for range n {
			who, cert, err := draw(q, rnd)
			if err != nil || cert.AccountedRate() != q {
				t.Fatal(cert, err)
			}
			set := 0
			for _, i := range who {
				set |= 1 << i
			}
			seen[set]++
		}
		chi := 0.0
		for set, k := range seen {
			p := 1.0
			for i := range 5 {
				if set>>i&1 == 1 {
					p *= q
				} else {
					p *= 1 - q
				}
			}
			chi += (k - n*p) * (k - n*p) / (n * p)
		}
		if chi > 92 { // 31 degrees of freedom, under 1e-6 at 87.6; small classes are heavier
			t.Errorf("q %v: chi-square %.1f", q, chi)
		}
	}
	if who, _, err := Sparse(3)(1, rand.NewChaCha8([32]byte{})); err != nil || len(who) != 3 {
		t.Errorf("q 1: %v, %v", who, err)
	}
}

// A coin of a power decides as the exact rational does, on both sides of it, however many
// bits that takes.
func TestPowerCoinsDecideExactly(t *testing.T) {
	for _, c := range []struct {
		q float64
		m uint64
	}{{0.3, 5}, {0.5, 3}, {2e-6, 7}, {0x1p-30, 3}, {1, 1}, {0.75, 0}} {
		limit, err := coinLimit(c.q)
		if err != nil {
			t.Fatal(err)
		}
		q := new(big.Int).SetBytes(limit[:])
		// The power over 2^(128m), exact.
		miss := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), coinBits), q)
		power := new(big.Int).Exp(miss, new(big.Int).SetUint64(c.m), nil)
		width := uint(coinBits * max(c.m, 1))
		if c.m == 0 {
			power = new(big.Int).Lsh(big.NewInt(1), width)
		}
		for name, d := range map[string]int64{"just below": -1, "at it": 0, "just above": 1} {
			u := new(big.Int).Add(power, big.NewInt(d))
			if u.Sign() < 0 || u.BitLen() > int(width) {
				continue
			}
			bits := make([]byte, width/8, 1024)
			u.FillBytes(bits)
			bits = append(bits, make([]byte, 1024-len(bits))...)
			heads, err := newSkips(q, bytes.NewReader(bits)).powerCoin(c.m)
			if err != nil || heads != (d < 0) {
				t.Errorf("q %v, m %d, %s: heads %v, %v", c.q, c.m, name, heads, err)
			}
		}
	}
	if _, _, err := Sparse(10)(0.5, bytes.NewReader(make([]byte, 40))); !errors.Is(err, ErrEntropy) {
		t.Errorf("a stream that ends: %v", err)
	}
}

// Fifty million members at a rate of two in a million: their number and where they stand
// are as they should be (six standard deviations over 400 draws), ascending and distinct.
func TestSparseOfFiftyMillion(t *testing.T) {
	const n, q, draws = 50_000_000, 2e-6, 400
	rnd := rand.NewChaCha8([32]byte{5})
	count, places := 0.0, 0.0
	for range draws {
		who, _, err := Sparse(n)(q, rnd)
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range who {
			if at < 0 || at >= n || i > 0 && at <= who[i-1] {
				t.Fatalf("places %v", who)
			}
			places += float64(at) / n
		}
		count += float64(len(who))
	}
	if want := n * q * draws; math.Abs(count-want) > 6*math.Sqrt(want) {
		t.Errorf("%v in, want %v", count, want)
	}
	if math.Abs(places/count-0.5) > 6*math.Sqrt(1/(12*count)) {
		t.Errorf("they stand at %v on average", places/count)
	}
}

func BenchmarkSparse(b *testing.B) {
	rnd := rand.NewChaCha8([32]byte{5})
	for b.Loop() {
		if _, _, err := Sparse(50_000_000)(2e-6, rnd); err != nil {
			b.Fatal(err)
		}
	}
}
