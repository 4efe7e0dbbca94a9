package dp

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/starling-fl/starling/internal/cputime"
)

// Members without keys have the same coins as keys at the same places, and their
// commitment opens alike.
func TestNumberedDrawsAsRoll(t *testing.T) {
	for _, n := range []int{1, 2, 4095, 4096, 4097, 10_000} {
		keys := make([][]byte, n)
		for i := range keys {
			keys[i] = binary.BigEndian.AppendUint64(nil, uint64(i))
		}
		for _, q := range []float64{1, 0.5, 0.013, 0x1p-60} {
			seed := [32]byte{byte(n), byte(n >> 8), byte(1000 * q)}
			want, a, err := Roll(keys)(q, rand.NewChaCha8(seed))
			if err != nil {
				t.Fatal(err)
			}
			got, b, err := Numbered(n)(q, rand.NewChaCha8(seed))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("n %d, q %v: %d drawn, %d by keys", n, q, len(got), len(want))
			}
			if a.Commitment != b.Commitment || a.Nonce != b.Nonce || a.Roll == b.Roll {
				t.Errorf("n %d, q %v: certificates %+v and %+v", n, q, a, b)
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
