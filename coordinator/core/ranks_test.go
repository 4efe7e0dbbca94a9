package core

import (
	"bytes"
	"io"
	"math"
	"testing"

	"github.com/starling-fl/starling/dp"
)

// privacy.clip_by_rank: the norm that a round's updates may have is its rank's, so is the
// noise in the adapter's units, and the ledger's events are those of a job without it: the
// noise multiplier, the sensitivity on the lattice and what is charged do not change.
func TestClipByRankLeavesTheLedger(t *testing.T) {
	one, other := tinyJob(20), tinyJob(20)
	one.Adapter.RankMin, one.Adapter.RankMax, one.Privacy.ClipNorm = 1, 4, 2
	other.Adapter, other.Privacy = one.Adapter, one.Privacy
	other.Privacy.ClipByRank = true
	seed := bytes.Repeat([]byte{7}, 32)
	a, err := New(one, tinyBase(t), seed)
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(other, tinyBase(t), seed)
	if err != nil {
		t.Fatal(err)
	}
	if a.NoiseMultiplier() != b.NoiseMultiplier() {
		t.Errorf("noise multipliers %v and %v", a.NoiseMultiplier(), b.NoiseMultiplier())
	}
	all := func(_ float64, _ io.Reader) (in []int, cert dp.Certificate, err error) {
		for i := range 20 {
			in = append(in, i)
		}
		return in, dp.Certificate{Method: dp.MethodPoisson, Rate: 1, Population: 20}, nil
	}
	seen, layout := map[int]bool{}, b.Layout()
	for range 40 {
		x, err := a.Draw(all)
		if err != nil {
			t.Fatal(err)
		}
		y, err := b.Draw(all)
		if err != nil {
			t.Fatal(err)
		}
		if x.rank != y.rank || x.event != y.event {
			t.Fatalf("ranks %d and %d, events\n%+v\n%+v", x.rank, y.rank, x.event, y.event)
		}
		want := 2 * math.Sqrt(float64(layout.Size(y.rank))/float64(layout.Size(4)))
		if got := y.Lattice().Clip(); math.Abs(got-want) > 1e-12 || x.Lattice().Clip() != 2 {
			t.Errorf("rank %d: clip norm %v, want %v; %v without", y.rank, got, want, x.Lattice().Clip())
		}
		// Noise per value, in the adapter's units, is the norm's share of the lattice's.
		if ratio := y.Lattice().Delta() / x.Lattice().Delta(); math.Abs(ratio-want/2) > 1e-6 {
			t.Errorf("rank %d: spacing %v of the other's, want %v", y.rank, ratio, want/2)
		}
		// What a round leaves as the largest rank's norm is not the round's own.
		sum := make([]int64, y.Size())
		if _, next, err := b.t.decode(y.vector, y.clip, sum, 1); err != nil || next != 2 {
			t.Errorf("rank %d leaves the norm %v, %v", y.rank, next, err)
		}
		seen[y.rank] = true
	}
	if len(seen) != 4 {
		t.Errorf("only ranks %v were drawn", seen)
	}
}

// With adaptive clipping ranks fit one norm together, each by its proportion.
func TestClipByRankAdaptsOneNorm(t *testing.T) {
	j := tinyJob(20)
	j.Adapter.RankMin, j.Adapter.RankMax, j.Privacy.ClipNorm, j.Privacy.ClipByRank = 1, 4, 2, true
	j.Clipping.Adaptive = true
	c, err := New(j, tinyBase(t), bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	for _, rank := range []int{1, 4} {
		v, err := c.t.Vector(rank, 2, [32]byte{})
		if err != nil {
			t.Fatal(err)
		}
		// Nobody was within the norm: it grows by exp(rate * quantile), at every rank alike.
		sum := make([]int64, v.Size())
		for i := v.Lattice.D(); i < len(sum); i++ {
			sum[i] = -int64(v.Count.Symbol) * int64(c.t.Units)
		}
		_, next, err := c.t.decode(v, 2, sum, 1)
		if want := 2 * math.Exp(c.t.Job.Clipping.Rate*c.t.Job.Clipping.Quantile); err != nil || math.Abs(next-want) > 1e-9*want {
			t.Errorf("rank %d: next norm %v, want %v (%v)", rank, next, want, err)
		}
	}
}
