package quant

import (
	"crypto/rand"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/cputime"
)

// benchDim is the length of a rank-16 adapter of BERT-small with its head.
const benchDim = 135_176

// loop runs f b.N times and reports processor time beside wall time: a busy
// neighbour on the machine counts for less. bytes 0 reports milliseconds,
// otherwise GB/s.
func loop(b *testing.B, bytes int, f func() error) {
	b.Helper()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	if bytes != 0 {
		b.SetBytes(int64(bytes))
	}
	began := cputime.Now()
	for b.Loop() {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	each := (cputime.Now() - began).Seconds() / float64(b.N)
	if bytes == 0 {
		b.ReportMetric(1e3*each, "cpu-ms")
	} else {
		b.ReportMetric(float64(bytes)/each/1e9, "cpu-GB/s")
	}
}

// BenchmarkEncode rotates and rounds one update.
func BenchmarkEncode(b *testing.B) {
	for _, name := range []string{"nf4", "int4", "fixed32"} {
		b.Run(name, func(b *testing.B) {
			s, err := Lookup(name)
			if err != nil {
				b.Fatal(err)
			}
			l, err := NewLattice(s, benchDim, 1, [32]byte{1})
			if err != nil {
				b.Fatal(err)
			}
			x := testVector(1, benchDim)
			symbols := make([]int32, l.D())
			b.ReportAllocs()
			loop(b, 0, func() (err error) {
				_, err = l.EncodeInto(symbols, x, rand.Reader)
				return err
			})
		})
	}
}

// BenchmarkDecodeMean decodes the sum of a cohort.
func BenchmarkDecodeMean(b *testing.B) {
	l, err := NewLattice(NF4, benchDim, 1, [32]byte{1})
	if err != nil {
		b.Fatal(err)
	}
	sum := make([]int64, l.D())
	for i := range sum {
		sum[i] = int64(i%25 - 12)
	}
	loop(b, 0, func() error {
		_, err := l.DecodeMean(sum, 64)
		return err
	})
}

// BenchmarkNF4 reports bytes of float32 a second.
func BenchmarkNF4(b *testing.B) {
	const n = 1 << 18
	x := testVector(1, n)
	packed := make([]byte, formatNF4.size(n))
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) { loop(b, 4*n, f) })
	}
	run("encode", func() error { return formatNF4.encode(packed, x) })
	run("decode", func() error { return formatNF4.decode(x, packed) })
	run("encode-dq", func() error { return formatNF4DQ.encode(packed[:formatNF4DQ.size(n)], x) })
	run("decode-dq", func() error { return formatNF4DQ.decode(x, packed[:formatNF4DQ.size(n)]) })
}
