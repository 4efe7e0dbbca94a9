package dp

import (
	"crypto/rand"
	"testing"

	"github.com/starling-fl/starling/internal/leaf/cputime"
)

// BenchmarkOwnNoise is what own noise costs a device in a round of 150,000 values: the
// samples, which a pool draws ahead, and adding them. It runs in a browser's engine as well,
// where the check for leaks takes the engine's own goroutine for one, after the figure:
//
//	GOOS=js GOARCH=wasm go test ./dp -run xxx -bench OwnNoise -exec "$(go env GOROOT)/lib/wasm/go_js_wasm_exec"
func BenchmarkOwnNoise(b *testing.B) {
	v, err := (OwnNoise{Multiplier: 0.0094}).Variance(2_900_000) // nf4 over 135,000 values
	if err != nil {
		b.Fatal(err)
	}
	sum := make([]int32, 150_000)
	s := NewSampler(rand.Reader)
	began := cputime.Now()
	for b.Loop() {
		if err := AddOwn(sum, v, s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(cputime.Each(b, began)/1e6, "ms/round")
}
