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
func TestNumberedDrawsEverySubset(t *testing.T) {
	for _, q := range []float64{0.3, 0.5, 0.8, 0x1p-3} {
		rnd := rand.NewChaCha8([32]byte{3})
		draw := PoissonDrawNumbered(5)
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
	if who, _, err := PoissonDrawNumbered(3)(1, rand.NewChaCha8([32]byte{})); err != nil || len(who) != 3 {
		t.Errorf("q 1: %v, %v", who, err)
	}
}

// A coin of a power decides as the exact rational does, on both sides of it, however many
// bits that takes.
func TestPowerCoinsDecideExactly(t *testing.T) {
	for _, c := range []struct {
		q float64
		m uint64
	}{{0.3, 2}, {0.3, 1}, {0.5, 2}, {0.013, 45}, {0.013, 64}, {2e-6, 7}, {0x1p-30, 3}, {0.75, 0}} {
		q, err := coinLimit(c.q)
		if err != nil {
			t.Fatal(err)
		}
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
			bits := make([]byte, width/8, 2048)
			u.FillBytes(bits)
			bits = append(bits, make([]byte, 2048-len(bits))...)
			heads, err := newSkips(q, bytes.NewReader(bits)).powerCoin(c.m)
			if err != nil || heads != (d < 0) {
				t.Errorf("q %v, m %d, %s: heads %v, %v", c.q, c.m, name, heads, err)
			}
		}
	}
	if _, _, err := PoissonDrawNumbered(10)(0.5, bytes.NewReader(make([]byte, 40))); !errors.Is(err, ErrEntropy) {
		t.Errorf("a stream that ends: %v", err)
	}
}

// Fifty million members at a rate of two in a million: their number and where they stand
// are as they should be (six standard deviations over 400 draws), ascending and distinct.
func TestNumberedOfFiftyMillion(t *testing.T) {
	const n, q, draws = 50_000_000, 2e-6, 400
	rnd := rand.NewChaCha8([32]byte{5})
	count, places := 0.0, 0.0
	for range draws {
		who, _, err := PoissonDrawNumbered(n)(q, rnd)
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

// Products of enclosures hold the exact product of what the factors hold, and are narrow.
func TestEnclosuresHoldProducts(t *testing.T) {
	rnd := rand.New(rand.NewChaCha8([32]byte{8}))
	one := new(big.Int).Lsh(big.NewInt(1), coinBits)
	some := func() *big.Int { // of every size; those beside 0, 2^64 and 2^128 too
		switch rnd.IntN(4) {
		case 0:
			return big.NewInt(1 + rnd.Int64N(3))
		case 1:
			return new(big.Int).Sub(one, big.NewInt(1+rnd.Int64N(3)))
		case 2:
			return new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), 64), big.NewInt(rnd.Int64N(3)-1))
		}
		x := uint128{rnd.Uint64() >> rnd.IntN(64), rnd.Uint64()}.big()
		return x.Add(x, big.NewInt(1))
	}
	for range 20_000 {
		got, exact := everything, new(big.Int).Set(one) // exact over 2^(128 factors)
		width := uint(0)
		for range 1 + rnd.IntN(6) {
			x := some()
			if x.Cmp(one) >= 0 {
				continue
			}
			got = got.times(around(x))
			exact.Mul(exact, x)
			width += coinBits
		}
		low := new(big.Int).Lsh(got.low.big(), width)
		high := new(big.Int).Add(got.high.big(), big.NewInt(1))
		if low.Cmp(exact) > 0 || high.Lsh(high, width).Cmp(exact) < 0 {
			t.Fatalf("%x..%x does not hold %x / 2^%d", got.low, got.high, exact, width)
		}
		if wide := new(big.Int).Sub(got.high.big(), got.low.big()); wide.Cmp(big.NewInt(20)) > 0 {
			t.Fatalf("%x..%x is wide", got.low, got.high)
		}
	}
}

func BenchmarkNumbered(b *testing.B) {
	rnd := rand.NewChaCha8([32]byte{5})
	for b.Loop() {
		if _, _, err := PoissonDrawNumbered(50_000_000)(2e-6, rnd); err != nil {
			b.Fatal(err)
		}
	}
}
