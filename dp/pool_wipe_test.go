package dp

import (
	"crypto/rand"
	"sync"
	"testing"
)

// TestUsedNoiseIsWiped: samples that were handed out are not left in the pool, and
// nothing is in one that ended. The pool here has no goroutine that refills it.
func TestUsedNoiseIsWiped(t *testing.T) {
	v, err := NewVariance(100, 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := &Pool{variance: v, ring: make([]int64, 256), stock: 256}
	p.cond = sync.NewCond(&p.mu)
	if err := NewSampler(rand.Reader).Sample(p.ring, v); err != nil {
		t.Fatal(err)
	}
	before := append([]int64(nil), p.ring...)
	dst := make([]int64, 100)
	if err := p.AddNoise(dst, v); err != nil {
		t.Fatal(err)
	}
	for i, x := range p.ring {
		switch {
		case i < 100 && (dst[i] != before[i] || x != 0):
			t.Fatalf("sample %d was handed out as %d, the pool held %d and holds %d", i, dst[i], before[i], x)
		case i >= 100 && x != before[i]:
			t.Fatalf("sample %d, which nobody took, changed", i)
		}
	}
	p.fail(ErrPoolClosed)
	for i, x := range p.ring {
		if x != 0 {
			t.Fatalf("sample %d stays in a pool that ended", i)
		}
	}
}
