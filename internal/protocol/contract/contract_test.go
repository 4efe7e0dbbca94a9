package contract

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
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
			BreachBits: rnd.IntN(129), SemiHonest: rnd.IntN(2) == 0, Identified: rnd.IntN(2) == 0, Logged: rnd.IntN(2) == 0,
			Suite: []secagg.Suite{secagg.SuiteX25519, secagg.SuiteHybrid}[rnd.IntN(2)]}
		c.Dealt = c.Logged && rnd.IntN(2) == 0
		c.ShardMin = 3 + rnd.IntN(c.ShardMax-2)
		if !c.Identified {
			c.Authority = [32]byte{byte(rnd.Uint32()), 1}
		}
		j := Job{quant.SchemeNames()[rnd.IntN(len(quant.SchemeNames()))], rnd.IntN(50), rnd.IntN(50), c, Own{}, [32]byte{}}
		if rnd.IntN(2) == 0 {
			j.Own = Own{rnd.Float64(), rnd.Float64(), rnd.Uint64N(1000)}
		}
		if c.Logged {
			j.LogKey = [32]byte{byte(rnd.Uint32()), 2}
		}
		var said wire.Job
		j.Announce(&said)
		if heard := Announced(&said); heard != j {
			t.Fatalf("announced %+v, heard %+v", j, heard)
		}
	}
	full := model.Method{Task: model.TaskPretrain, RMax: 64, Alpha: 16, Scaling: model.ScaleConstant, Kind: model.MethodCompacter,
		Targets: "query", Also: "pooler,bias", Bottleneck: 48, Blocks: 4, Answer: 20, Objectives: "TM,LM"}
	for i, v := 0, reflect.ValueOf(full); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Fatalf("this test leaves %s out", v.Type().Field(i).Name)
		}
	}
	for _, m := range []model.Method{full, {}} {
		var said wire.Job
		AnnounceMethod(m, &said)
		if heard, err := Method(&said); err != nil || heard != m {
			t.Errorf("announced %+v, heard %+v, %v", m, heard, err)
		}
	}
	if _, err := Method(&wire.Job{Task: "paint"}); !errors.Is(err, model.ErrConfig) {
		t.Errorf("an unknown task: %v", err)
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
	sum[0], sum[v.Size()-2], sum[v.Size()-1] = most, -20, -20
	if err := v.CheckSum(sum, 5, 5); err != nil {
		t.Errorf("an honest sum: %v", err)
	}
	for at, value := range map[int]int64{0: most + 1, v.Size() - 1: -21} {
		bad := slices.Clone(sum)
		bad[at] = value
		var out *quant.SumRangeError
		if err := v.CheckSum(bad, 5, 5); !errors.As(err, &out) || out.Index != at {
			t.Errorf("%d at %d: %v", value, at, err)
		}
	}
	if err := v.CheckSum(sum[1:], 5, 5); !errors.Is(err, quant.ErrLength) {
		t.Errorf("a short sum: %v", err)
	}
}

// TestHostileNorm: coordinates that are each within their range make no sum that
// honest devices could have made where its norm is beyond what theirs allow, nor do
// counts that do not agree. What honest devices make passes to the last unit.
func TestHostileNorm(t *testing.T) {
	for _, uplink := range quant.SchemeNames() {
		const n = 5
		terms, err := Job{Uplink: uplink, Masking: secagg.Config{ShardMax: n, ShardMin: 3}}.Terms()
		if err != nil {
			t.Fatal(err)
		}
		v, err := terms.Planned(&wire.Plan{Values: 4096, ClipNorm: 1, CountCoordinates: 3, CountSymbol: 4})
		if err != nil {
			t.Fatal(err)
		}
		d, q := v.Lattice.D(), int64(v.Lattice.MaxSymbol())
		flat := func(x int64) []int64 { // one value everywhere in the lattice's part
			sum := make([]int64, v.Size())
			for i := range sum[:d] {
				sum[i] = x
			}
			return sum
		}
		var refused *quant.SumRangeError
		if err := v.CheckSum(flat(n*q), n, n); !errors.Is(err, quant.ErrRange) || errors.As(err, &refused) {
			t.Errorf("%s: every coordinate at the end of its range: %v", uplink, err)
		}
		// The most that norms allow: |sum|^2 = n^2*B2, reached by n equal vectors.
		edge, left := make([]int64, v.Size()), v.Lattice.B2()
		for i := 0; i < d && left > 0; i++ {
			x := min(q, int64(math.Sqrt(float64(left))))
			edge[i], left = n*x, left-x*x
		}
		if err := v.CheckSum(edge, n, n); err != nil || left != 0 {
			t.Errorf("%s: n vectors of the full norm: %v (%d left)", uplink, err, left)
		}
		edge[d-1]++
		if err := v.CheckSum(edge, n, n); !errors.Is(err, quant.ErrRange) {
			t.Errorf("%s: one more: %v", uplink, err)
		}
		for name, count := range map[string][]int64{"disagrees": {8, 8, 4}, "is not a multiple": {6, 6, 6}, "is too large": {24, 24, 24}} {
			sum := make([]int64, v.Size())
			copy(sum[d:], count)
			if err := v.CheckSum(sum, n, n); !errors.Is(err, quant.ErrRange) {
				t.Errorf("%s: a count that %s: %v", uplink, name, err)
			}
		}
	}
}

// TestHonestSumsPass: random updates, all alike as well as all different, encoded
// as devices do.
func TestHonestSumsPass(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for trial := range 60 {
		n := 2 + rnd.IntN(9)
		terms, err := Job{Uplink: quant.SchemeNames()[trial%len(quant.SchemeNames())], Masking: secagg.Config{ShardMax: n, ShardMin: 2}}.Terms()
		if err != nil {
			t.Fatal(err)
		}
		v, err := terms.Planned(&wire.Plan{Values: uint32(1 + rnd.IntN(3000)), ClipNorm: 1, Rotation: [32]byte{byte(trial)}})
		if err != nil {
			t.Fatal(err)
		}
		x, sum := make([]float32, v.Lattice.Dim()), make([]int64, v.Size())
		for device := range n {
			for i := range x {
				if device == 0 || trial%2 == 0 {
					x[i] = float32(rnd.NormFloat64())
				}
			}
			symbols, err := v.Lattice.Encode(x, rand.NewChaCha8([32]byte{byte(trial), byte(device)}))
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range symbols {
				sum[i] += int64(s)
			}
		}
		if err := v.CheckSum(sum, n, n); err != nil {
			t.Errorf("trial %d: %v", trial, err)
		}
	}
}

// TestBeyond holds 128 bits to whole numbers of any size.
func TestBeyond(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		n, b2 := 1+rnd.IntN(1<<20), rnd.Int64N(1<<59)
		sum := make([]int64, 1+rnd.IntN(300))
		total := new(big.Int)
		for i := range sum {
			sum[i] = rnd.Int64N(1<<32) - 1<<31
			total.Add(total, new(big.Int).Mul(big.NewInt(sum[i]), big.NewInt(sum[i])))
		}
		limit := new(big.Int).Mul(big.NewInt(int64(n)), big.NewInt(int64(n)))
		limit.Mul(limit, big.NewInt(b2))
		if got, want := beyond(sum, n, b2), total.Cmp(limit) > 0; got != want {
			t.Fatalf("%v against %v: %t", total, limit, got)
		}
	}
}

func TestHeld(t *testing.T) {
	l, err := model.NewLayout(model.BERT(20, 8, 1, 2, 6), model.Method{RMax: 4, Alpha: 2}, 3)
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
		t.Errorf("after %d slices: %d", HeldSlices+1, len(got))
	}
	h.Remember(Slice{4, []float32{1}})
	for _, err := range h.At(l, 1) {
		if err == nil {
			t.Error("a slice of the wrong length was cut")
		}
		break
	}
}

// A sum of squares beyond 64 bits is none of its low bits.
func TestCarryOfSquares(t *testing.T) {
	most := int64(1) << 31
	sum := []int64{most, most, most, most} // 2^64 exactly
	if !beyond(sum, 1, 1<<40) || beyond(sum, 1<<12, 1<<40) || !beyond(append(sum, 1), 1<<12, 1<<40) {
		t.Error("2^64 is taken for 0")
	}
}
