package contract

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/wire"
	"github.com/starling-fl/starling/model"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
)

// TestBothSides: what a coordinator announces, sent over the wire, is what a
// device derives from: equal jobs, hence equal configurations.
func TestBothSides(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		c := secagg.Config{Dim: 1, Width: 32, MaxSymbol: 1, ShardMax: 3 + rnd.IntN(1000), CorruptPPM: rnd.Uint32N(1_000_000),
			BreachBits: rnd.IntN(129), SemiHonest: rnd.IntN(2) == 0, Identified: rnd.IntN(2) == 0,
			Suite: []secagg.Suite{secagg.SuiteX25519, secagg.SuiteHybrid}[rnd.IntN(2)]}
		c.ShardMin = 3 + rnd.IntN(c.ShardMax-2)
		if !c.Identified {
			c.Authority = [32]byte{byte(rnd.Uint32()), 1}
		}
		j := Job{quant.SchemeNames()[rnd.IntN(len(quant.SchemeNames()))], rnd.IntN(50), c}
		var said wire.Job
		j.Announce(&said)
		if heard := Announced(&said); heard != j {
			t.Fatalf("announced %+v, heard %+v", j, heard)
		}
	}
}

// TestMasking holds the configuration to one written down by hand.
func TestMasking(t *testing.T) {
	job := Announced(&wire.Job{Uplink: "nf4", Providers: 4, ShardMax: 20, ShardFloor: 7, CorruptPPM: 100_000, BreachBits: 40,
		Hybrid: true, RosterKey: [32]byte{9}})
	terms, err := job.Terms()
	if err != nil {
		t.Fatal(err)
	}
	plan := &wire.Plan{Values: 1000, ClipNorm: 0.5, Rotation: [32]byte{3}, CountCoordinates: 6, CountSymbol: 5}
	v, err := terms.Planned(plan)
	if err != nil {
		t.Fatal(err)
	}
	// nf4 on the grid of twelfths has symbols in -12..12; 20 devices of 4 providers
	// sum to 960 either way: 11 bits.
	want := secagg.Config{Dim: v.Lattice.D() + 6, Width: 11, MaxSymbol: 48, ShardMax: 20, ShardMin: 7, CorruptPPM: 100_000, BreachBits: 40,
		Suite: secagg.SuiteHybrid, Authority: [32]byte{9}}
	if got := terms.Masking(v); got != want {
		t.Errorf("masking %+v, want %+v", got, want)
	}
	if v.Count != (dp.CountCode{Coordinates: 6, Symbol: 5}) || v.Size() != want.Dim || v.B2() != v.Lattice.B2()+150 || v.Lattice.Clip() != 0.5 {
		t.Errorf("vector %+v of %d coordinates, bound %d", v, v.Size(), v.B2())
	}
	devices := job
	devices.Providers, devices.Masking.Suite = 0, secagg.SuiteX25519
	terms, err = devices.Terms()
	if err != nil {
		t.Fatal(err)
	}
	want.Width, want.MaxSymbol, want.Suite = 9, 12, secagg.SuiteX25519
	if got := terms.Masking(v); got != want {
		t.Errorf("without providers %+v, want %+v", got, want)
	}
	for _, bad := range []Job{{Uplink: "nf5"}, {Uplink: "fixed32", Masking: secagg.Config{ShardMax: 1 << 30}}} {
		if _, err := bad.Terms(); !errors.Is(err, ErrUplink) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestCheckSum: what honest devices can sum to passes; one more, in the lattice's
// part or the count's, does not.
func TestCheckSum(t *testing.T) {
	terms, err := Job{Uplink: "int4", Masking: secagg.Config{ShardMax: 5, ShardMin: 3}}.Terms()
	if err != nil {
		t.Fatal(err)
	}
	v, err := terms.Planned(&wire.Plan{Values: 64, ClipNorm: 1, CountCoordinates: 2, CountSymbol: 4})
	if err != nil {
		t.Fatal(err)
	}
	sum := make([]int64, v.Size())
	most := 5 * int64(v.Lattice.MaxSymbol())
	sum[0], sum[v.Size()-1] = most, -20
	if err := v.CheckSum(sum, 5); err != nil {
		t.Errorf("an honest sum: %v", err)
	}
	for at, value := range map[int]int64{0: most + 1, v.Size() - 1: -21} {
		bad := slices.Clone(sum)
		bad[at] = value
		var out *quant.SumRangeError
		if err := v.CheckSum(bad, 5); !errors.As(err, &out) || out.Index != at {
			t.Errorf("%d at %d: %v", value, at, err)
		}
	}
	if err := v.CheckSum(sum[1:], 5); !errors.Is(err, quant.ErrLength) {
		t.Errorf("a short sum: %v", err)
	}
}

func TestHeld(t *testing.T) {
	l, err := model.NewLayout(model.BERT(20, 8, 1, 2, 6), model.LoRA{RMax: 4, Alpha: 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	slice := func(rank int, seed uint64) Slice { return Slice{rank, model.NewAdapter(l, seed).Slice(rank)} }
	at := func(h *Held, rank int) (digests [][32]byte) {
		for values, err := range h.At(l, rank) {
			if err != nil {
				t.Fatal(err)
			}
			digests = append(digests, quant.Digest(values))
		}
		return digests
	}
	digest := func(rank int, seed uint64) [32]byte { return quant.Digest(slice(rank, seed).Values) }
	var h Held
	if len(at(&h, 0)) != 0 {
		t.Error("something is held at the start")
	}
	h.Remember(slice(4, 1))
	h.Remember(slice(4, 1)) // a round that was abandoned and drawn again
	h.Remember(slice(2, 2))
	if got, want := at(&h, 3), [][32]byte{digest(3, 1)}; !slices.Equal(got, want) {
		t.Errorf("at rank 3: %d slices", len(got))
	}
	if got, want := at(&h, 1), [][32]byte{digest(1, 2), digest(1, 1)}; !slices.Equal(got, want) {
		t.Errorf("at rank 1: %d slices", len(got))
	}
	h.Remember(slice(4, 3))
	h.Remember(slice(4, 4))
	if got, want := at(&h, 2), [][32]byte{digest(2, 4), digest(2, 3), digest(2, 2)}; !slices.Equal(got, want) {
		t.Errorf("after %d slices: %d", Kept+1, len(got))
	}
	h.Remember(Slice{4, []float32{1}})
	for _, err := range h.At(l, 1) {
		if err == nil {
			t.Error("a slice of the wrong length was cut")
		}
		break
	}
}
