package contract

import (
	"errors"
	"math"
	"testing"

	"github.com/starling-fl/starling/dp"
	"github.com/starling-fl/starling/internal/protocol/wire"
	"github.com/starling-fl/starling/quant"
	"github.com/starling-fl/starling/secagg"
)

// What follows from groups, written down by hand: a lattice of a share of the clip norm, a ring with
// room for all groups of all providers, and noise for all groups of one.
func TestGroups(t *testing.T) {
	j := Announced(&wire.Job{Uplink: "nf4", Providers: 4, Groups: 8, ShardMax: 20, ShardFloor: 7, RosterKey: [32]byte{9}})
	terms, err := j.Terms()
	if err != nil {
		t.Fatal(err)
	}
	v, err := terms.Planned(&wire.Plan{Values: 1000, ClipNorm: 0.5, CountCoordinates: 6, CountSymbol: 5})
	if err != nil {
		t.Fatal(err)
	}
	// 20 devices of 4 providers of 8 groups of symbols in -12..12: 7,680 either way, 14 bits.
	if m := terms.Masking(v); m.Width != 14 || m.MaxSymbol != 384 || v.Lattice.Clip() != 0.0625 {
		t.Errorf("%d bits of symbols up to %d, a group's clip norm is %v", m.Width, m.MaxSymbol, v.Lattice.Clip())
	}
	if v.PartB2() != v.Lattice.B2()+150 || v.B2() != 64*v.PartB2() {
		t.Errorf("a group's bound is %d, its unit's %d", v.PartB2(), v.B2())
	}
	var back wire.Job
	if j.Announce(&back); back.Groups != 8 {
		t.Errorf("announced as %d groups", back.Groups)
	}
	j.Own = Own{0.5, 1e-6, 100}
	if terms, err = j.Terms(); err != nil {
		t.Fatal(err)
	}
	if v, err = terms.Vector(v.Lattice, v.Count, dp.FigureCode{}); err != nil {
		t.Fatal(err)
	}
	if got, want := math.Sqrt(v.Own.Float()), 0.5*8*math.Sqrt(float64(v.PartB2())); math.Abs(got/want-1) > 1e-3 {
		t.Errorf("a device adds noise of %v grid units, want half of 8 groups' norm, %v", got, want)
	}
}

// Sums that groups can have pass, larger ones do not, and symbols too large for a bound are refused.
func TestSumsOfGroups(t *testing.T) {
	const devices, groups = 3, 8
	terms, err := Job{Uplink: "int4", Groups: groups, Masking: secagg.Config{ShardMax: 8, ShardMin: 2}}.Terms()
	if err != nil {
		t.Fatal(err)
	}
	l, err := terms.Lattice(100, 1, [32]byte{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := terms.Vector(l, dp.CountCode{Coordinates: 2, Symbol: 3}, dp.FigureCode{})
	if err != nil {
		t.Fatal(err)
	}
	sum := make([]int64, v.Size())
	sum[0], sum[l.D()], sum[l.D()+1] = 7*groups*devices, 3*groups*devices, 3*groups*devices
	if err := v.CheckSum(sum, devices, devices); err != nil {
		t.Errorf("all groups at the largest symbol: %v", err)
	}
	if sum[0]++; !errors.Is(v.CheckSum(sum, devices, devices), quant.ErrRange) {
		t.Error("more than all groups' largest symbols pass")
	}
	wide := Terms{Job: Job{Uplink: "fixed32", Groups: wire.MaxParts}, Scheme: must(quant.Lookup("fixed32"))}
	if l, err = wide.Lattice(1<<20, 1, [32]byte{}); err != nil {
		t.Fatal(err)
	}
	if _, err := wide.Vector(l, dp.CountCode{}, dp.FigureCode{}); !errors.Is(err, ErrUplink) {
		t.Errorf("a bound beyond 63 bits: %v", err)
	}
}

func must(s quant.Scheme, err error) quant.Scheme {
	if err != nil {
		panic(err)
	}
	return s
}
