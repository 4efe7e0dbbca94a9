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

	"github.com/starling-fl/starling/internal/cputime"
)

// The coins by their definition: behind 32 bytes of the nonce 16 for each member, a whole
// number below q 2^128 of whom is in. Members without keys have the same coins as keys at the
// same places, and both commitments open.
func TestNumberedDrawsAsRoll(t *testing.T) {
	for _, n := range []int{1, 2, 4095, 4096, 4097, 10_000} {
		keys := make([][]byte, n)
		for i := range keys {
			keys[i] = binary.BigEndian.AppendUint64(nil, uint64(i))
		}
		for _, q := range []float64{1, 0.5, 0.013, 0x1p-60} {
			seed := [32]byte{byte(n), byte(n >> 8), byte(1000 * q)}
			bytes := make([]byte, 32+16*n)
			_, _ = rand.NewChaCha8(seed).Read(bytes) // never fails
			rate := new(big.Rat).SetFloat64(q)
			rate.Mul(rate, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 128)))
			var want []int
			in := make([]bool, n)
			for i := range in {
				coin := new(big.Int).SetBytes(bytes[32+16*i : 48+16*i])
				if in[i] = new(big.Rat).SetInt(coin).Cmp(rate) < 0; in[i] {
					want = append(want, i)
				}
			}
			for name, draw := range map[string]func(float64, io.Reader) ([]int, Certificate, error){"roll": Roll(keys), "numbered": Numbered(n)} {
				got, cert, err := draw(q, rand.NewChaCha8(seed))
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s, n %d, q %v: %d drawn, %d by the definition", name, n, q, len(got), len(want))
				}
				if cert.Nonce != [32]byte(bytes[:32]) || cert.Commitment != commitment(cert.Nonce, in) {
					t.Errorf("%s, n %d, q %v: certificate %+v", name, n, q, cert)
				}
				if err := cert.Verify(keys, in); (err == nil) != (name == "roll") {
					t.Errorf("%s, n %d, q %v: held against the keys: %v", name, n, q, err)
				}
			}
		}
	}
}

func TestNumberedRefuses(t *testing.T) {
	if _, _, err := Numbered(0)(0.5, rand.NewChaCha8([32]byte{})); !errors.Is(err, ErrCertificate) {
		t.Errorf("an empty population: %v", err)
	}
	if _, _, err := Numbered(3)(1.5, rand.NewChaCha8([32]byte{})); !errors.Is(err, ErrCertificate) {
		t.Errorf("a rate above 1: %v", err)
	}
	short := io.LimitReader(rand.NewChaCha8([32]byte{}), 32+16*5000)
	if who, _, err := Numbered(6000)(0.5, short); !errors.Is(err, ErrEntropy) || who != nil {
		t.Errorf("a generator that ends: %d drawn, %v", len(who), err)
	}
}

// A million members cost a few pieces, not a table of them.
func TestNumberedIsSmall(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	who, _, err := Numbered(1_000_000)(1e-4, rand.NewChaCha8([32]byte{1}))
	runtime.ReadMemStats(&after)
	if err != nil || len(who) < 50 || len(who) > 160 { // mean 100, standard deviation 10
		t.Fatalf("%d drawn: %v", len(who), err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("allocated %d bytes", got)
	}
}

func BenchmarkDrawNumbered(b *testing.B) {
	defer cputime.Benchmark(b)()
	for b.Loop() {
		if _, _, err := Numbered(1_000_000)(1e-4, rand.NewChaCha8([32]byte{1})); err != nil {
			b.Fatal(err)
		}
	}
}
