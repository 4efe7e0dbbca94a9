package cbor

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	general "github.com/fxamacker/cbor/v2"
)

type inner struct {
	_ struct{} `cbor:",toarray"`
	N uint16
	S []string
}

// all has a field of each kind; its tag is the library's.
type all struct {
	_ struct{} `cbor:",toarray"`
	A uint8
	B uint64
	C int64
	D int8
	E string
	F []byte
	G [4]byte
	H []string
	I float64
	J float32
	K bool
	L [2]uint32
	M *inner
	O []inner
	inner
	_ bool // is no part of the encoding
}

const mostElements = 64

// libraries are the library's ways, without and with NilEmpty.
var libraries = [2]func() (general.EncMode, general.DecMode){ways(general.NilContainerAsNull), ways(general.NilContainerAsEmpty)}

func ways(none general.NilContainersMode) func() (general.EncMode, general.DecMode) {
	return sync.OnceValues(func() (general.EncMode, general.DecMode) {
		options := general.CoreDetEncOptions()
		options.NilContainers = none
		enc, err := options.EncMode()
		dec, errDec := general.DecOptions{MaxArrayElements: mostElements, MaxNestedLevels: 8, IndefLength: general.IndefLengthForbidden,
			TagsMd: general.TagsForbidden, UTF8: general.UTF8RejectInvalid, NaN: general.NaNDecodeForbidden, Inf: general.InfDecodeForbidden}.DecMode()
		if err != nil || errDec != nil {
			panic(errors.Join(err, errDec))
		}
		return enc, dec
	})
}

func library(nilEmpty bool) (general.EncMode, general.DecMode) {
	if nilEmpty {
		return libraries[1]()
	}
	return libraries[0]()
}

// same holds the Codec against the library: what either takes is one encoding of the same value.
func same(t *testing.T, data []byte) {
	t.Helper()
	for _, nilEmpty := range []bool{false, true} {
		codec := Codec{MaxArray: mostElements, NilEmpty: nilEmpty}
		enc, dec := library(nilEmpty)
		var got, want all
		err := codec.Unmarshal(data, &got)
		taken := dec.Unmarshal(data, &want) == nil
		if taken {
			again, errAgain := enc.Marshal(want)
			taken = errAgain == nil && bytes.Equal(again, data)
		}
		if taken != (err == nil) {
			t.Fatalf("%x (nil is empty: %v): %v, the library takes it: %v, %+v", data, nilEmpty, err, taken, want)
		}
		var of *Error
		if err != nil && !errors.As(err, &of) {
			t.Fatalf("%x: %v is no *Error", data, err)
		}
		if err != nil {
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%x: %+v, the library %+v", data, got, want)
		}
		if again, err := codec.Append([]byte("before"), &got); err != nil || string(again) != "before"+string(data) {
			t.Fatalf("%x is written as %x, %v", data, again, err)
		}
	}
}

// drawn is an encoding of random values, of which edges are likely.
func drawn(t testing.TB, rng *rand.Rand, nilEmpty bool) []byte {
	t.Helper()
	number := func() uint64 { return rng.Uint64() >> rng.IntN(64) }
	float := func() float64 {
		switch rng.IntN(4) {
		case 0:
			return float64(int(rng.IntN(4096)) - 2048)
		case 1:
			return math.Ldexp(float64(rng.IntN(4096)), rng.IntN(60)-40)
		case 2:
			return float64(math.Float32frombits(uint32(number())&0xbf7fffff | 1<<23))
		}
		return math.Ldexp(rng.NormFloat64(), rng.IntN(200)-100)
	}
	words := func() (list []string) {
		for range rng.IntN(4) {
			list = append(list, strings.Repeat("ä", rng.IntN(30)))
		}
		return list
	}
	some, less := number(), number()
	v := all{A: uint8(number()), B: number(), C: int64(some) - int64(less), D: int8(number()), E: strings.Repeat("a", rng.IntN(30)),
		H: words(), I: float(), J: float32(rng.IntN(100)) / 8, K: rng.IntN(2) == 0, L: [2]uint32{uint32(number()), 1}, inner: inner{N: uint16(number())}}
	if rng.IntN(2) == 0 {
		v.F, v.M = make([]byte, rng.IntN(300)), &inner{S: words()}
	}
	for range rng.IntN(40) {
		v.O = append(v.O, inner{N: uint16(number()), S: words()})
	}
	enc, _ := library(nilEmpty)
	want, err := enc.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := (Codec{NilEmpty: nilEmpty}).Append(nil, v); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%.200v is written as %.99x, %v, by the library as %.99x", v, got, err, want)
	}
	return want
}

func TestCodecIsTheLibrary(t *testing.T) {
	rng := rand.New(rand.NewChaCha8([32]byte{5}))
	for i := range 3000 {
		b := drawn(t, rng, i%2 == 0)
		same(t, b)
		for range 3 { // and broken
			broken := bytes.Clone(b)
			broken[rng.IntN(len(broken))] ^= byte(1 << rng.IntN(8))
			same(t, broken)
			same(t, broken[:rng.IntN(len(broken))])
		}
	}
}

// Every float16, and what lies beside it, is written as the library does.
func TestFloats(t *testing.T) {
	enc, dec := library(false)
	check := func(f float64) {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			if _, err := (Codec{}).Append(nil, f); !errors.Is(err, ErrValue) {
				t.Fatalf("%v: %v", f, err)
			}
			return
		}
		got, err := Codec{}.Append(nil, f)
		want, errLibrary := enc.Marshal(f)
		var back, backLibrary float64
		if err != nil || errLibrary != nil || !bytes.Equal(got, want) || (Codec{}).Unmarshal(got, &back) != nil || dec.Unmarshal(got, &backLibrary) != nil ||
			math.Float64bits(back) != math.Float64bits(f) || math.Float64bits(back) != math.Float64bits(backLibrary) {
			t.Fatalf("%v is written as %x, read as %v; the library %x, %v", f, got, back, want, backLibrary)
		}
	}
	for h := range 1 << 16 {
		if h>>10&0x1f == 0x1f {
			check(math.NaN())
			continue
		}
		f := fromHalf(uint16(h))
		check(f)
		check(math.Nextafter(f, math.Inf(1)))
		check(float64(math.Nextafter32(float32(f), -1)))
	}
	for _, f := range []float64{math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxFloat32, math.SmallestNonzeroFloat32, 65504, 65505, 65520, 65536, math.Inf(-1)} {
		check(f)
	}
}

type segment struct {
	Name string
	When uint32 `cbor:",optional"`
}

func TestOptionalField(t *testing.T) {
	for _, c := range []struct {
		v    segment
		want string
	}{{segment{"a", 0}, "816161"}, {segment{"a", 7}, "82616107"}} {
		b, err := Codec{}.Append(nil, c.v)
		var back segment
		if err != nil || hex.EncodeToString(b) != c.want || (Codec{}).Unmarshal(b, &back) != nil || back != c.v {
			t.Errorf("%+v is written as %x, %v, and read as %+v", c.v, b, err, back)
		}
	}
	var s segment
	for _, other := range []string{"82616100", "80", "8361610707"} { // 0 in full is another spelling
		b, err := hex.DecodeString(other)
		if err != nil {
			t.Fatal(err)
		}
		if err := (Codec{}).Unmarshal(b, &s); err == nil {
			t.Errorf("%s is taken", other)
		}
	}
}

// A head that promises much costs nothing, and types that are not written are said to be so.
func TestCodecBounds(t *testing.T) {
	var list []inner
	promise := AppendArray(nil, 1<<20)
	if n := testing.AllocsPerRun(10, func() {
		if err := (Codec{MaxArray: 1 << 21}).Unmarshal(promise, &list); err == nil {
			t.Error("it is taken")
		}
	}); n > 8 {
		t.Errorf("%v allocations", n)
	}
	if err := (Codec{MaxArray: 2}).Unmarshal([]byte{0x83, 0x82, 0, 0xf6}, &list); err == nil || !strings.Contains(err.Error(), "3 elements, want 0..2") {
		t.Error(err)
	}
	if _, err := (Codec{}).Append(nil, map[string]int{}); !errors.Is(err, ErrValue) {
		t.Error(err)
	}
	var m map[string]int
	if err := (Codec{}).Unmarshal([]byte{0xa0}, &m); err == nil {
		t.Error("a map is read")
	}
}

func FuzzCodec(f *testing.F) {
	rng := rand.New(rand.NewChaCha8([32]byte{6}))
	for i := range 20 {
		f.Add(drawn(f, rng, i%2 == 0))
	}
	f.Fuzz(same)
}
