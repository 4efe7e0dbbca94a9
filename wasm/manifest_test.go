package wasm

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

func TestManifestRoundTrip(t *testing.T) {
	m := toy().manifest
	payload, err := m.Encode()
	check(t, err)
	back, err := DecodeManifest(payload)
	check(t, err)
	again, err := back.Encode()
	check(t, err)
	if !bytes.Equal(payload, again) {
		t.Errorf("%s came back as %s", payload, again)
	}
}

func TestManifestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *Manifest)
		want   string
	}{
		"format":           {func(m *Manifest) { m.Format = 1 }, "format 1"},
		"last format":      {func(m *Manifest) { m.Format = 5 }, "format 5, this loader reads 9"},
		"name":             {func(m *Manifest) { m.Name = "a\n" }, "name"},
		"long name":        {func(m *Manifest) { m.Name = strings.Repeat("a", 257) }, "name"},
		"markup":           {func(m *Manifest) { m.Compiler = "<b>" }, "compiler"},
		"host":             {func(m *Manifest) { m.Host = `"` }, "host"},
		"no segments":      {func(m *Manifest) { m.Segments = nil }, "no segments"},
		"many segments":    {func(m *Manifest) { m.Segments = make([]Segment, maxSegments+1) }, fmt.Sprint(maxSegments+1, " segments")},
		"segment name":     {func(m *Manifest) { m.Segments[0].Name = "\x00" }, "segment name"},
		"tensor name":      {func(m *Manifest) { m.Inputs[0].Name = "x y" }, "input name"},
		"no tensor name":   {func(m *Manifest) { m.Inputs[0].Name = "" }, "input name"},
		"same name":        {func(m *Manifest) { m.State[0].Name = "x" }, "the name is taken"},
		"dtype":            {func(m *Manifest) { m.Inputs[0].DType = "f64" }, "dtype"},
		"nil shape":        {func(m *Manifest) { m.Inputs[0].Shape = nil }, "shape missing"},
		"zero dimension":   {func(m *Manifest) { m.Inputs[0].Shape = []int{0} }, "dimension 0"},
		"minus dimension":  {func(m *Manifest) { m.Inputs[0].Shape = []int{-1} }, "dimension -1"},
		"huge dimension":   {func(m *Manifest) { m.Inputs[0].Shape = []int{1 << 30} }, "dimension"},
		"huge product":     {func(m *Manifest) { m.Inputs[0].Shape = []int{1 << 20, 1 << 20, 1 << 20, 1 << 4} }, "elements"},
		"rank":             {func(m *Manifest) { m.Inputs[0].Shape = []int{1, 1, 1, 1, 1, 1, 1, 1, 1} }, "rank 9"},
		"alignment":        {func(m *Manifest) { m.Inputs[0].Offset = 20 }, "multiple of 16"},
		"arena alignment":  {func(m *Manifest) { m.Arena.Offset = 8 }, "multiple of 16"},
		"overlap":          {func(m *Manifest) { m.State[0].Offset = 16 }, "overlap"},
		"overlap by a bit": {func(m *Manifest) { m.State[0].Shape = []int{9} }, "overlap"},
		"overlap arena":    {func(m *Manifest) { m.Arena.Offset = 128 }, "overlap"},
		"nf4 state":        {func(m *Manifest) { m.State[0].NF4 = &NF4{Block: 64, Scales: 512} }, "only frozen"},
		"nf4 block":        {func(m *Manifest) { m.Frozen[0].NF4 = &NF4{Block: 8, Scales: 512} }, "NF4 block"},
		"nf4 no block":     {func(m *Manifest) { m.Frozen[0].NF4 = &NF4{Scales: 512} }, "NF4 block"},
		"nf4 scales":       {func(m *Manifest) { m.Frozen[0].NF4 = &NF4{Block: 64, Scales: 516} }, "scales offset"},
		"nf4 overlap":      {func(m *Manifest) { m.Frozen[0].NF4 = &NF4{Block: 64, Scales: 64} }, "overlap"},
		"nf4 int":          {func(m *Manifest) { m.Frozen[0].DType, m.Frozen[0].NF4 = Int32, &NF4{Block: 64, Scales: 512} }, "only frozen"},
	} {
		m := toy().manifest
		c.change(m)
		if _, err := m.Encode(); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Encode: %v, want %q", name, err, c.want)
		}
		payload, err := m.marshal()
		check(t, err)
		// On the wire there is no tensor without a shape: it is a scalar.
		if _, err := DecodeManifest(payload); !errors.Is(err, ErrRefused) && name != "nil shape" {
			t.Errorf("%s: DecodeManifest: %v", name, err)
		}
	}
}

// A manifest has one encoding: any other spelling of it is refused.
func TestManifestCanonical(t *testing.T) {
	payload, err := partGEMM().manifest.Encode()
	check(t, err)
	var code manifestCode
	check(t, manifestForm.Unmarshal(payload, &code))
	if again, err := manifestForm.Append(nil, code); err != nil || !bytes.Equal(again, payload) {
		t.Fatalf("%x, want %x: %v", again, payload, err)
	}
	recoded := func(change func(c *manifestCode)) []byte {
		c := code
		c.Nests, c.Products = slices.Clone(c.Nests), slices.Clone(c.Products)
		change(&c)
		other, err := manifestForm.Append(nil, c)
		check(t, err)
		return other
	}
	code.Prepare = nil
	withNull, err := cbor.Marshal(code)
	check(t, err)
	replaced := func(old, with string) []byte {
		return bytes.Replace(payload, []byte(old), []byte(with), 1)
	}
	for name, other := range map[string][]byte{
		"a byte more":          append(slices.Clone(payload), 0),
		"twice":                append(slices.Clone(payload), payload...),
		"cut":                  payload[:len(payload)-1],
		"long text":            replaced("\x64gemm", "\x78\x04gemm"),
		"text in pieces":       replaced("\x64gemm", "\x7f\x64gemm\xff"),
		"bytes, not text":      replaced("\x64gemm", "\x44gemm"),
		"no UTF-8":             replaced("\x64gemm", "\x64gem\xff"),
		"long number":          replaced("\x09\x64gemm", "\x18\x09\x64gemm"),
		"a float":              replaced("\x09\x64gemm", "\xf9\x48\x80\x64gemm"),
		"a tag":                replaced("\x64gemm", "\xc2\x64gemm"),
		"an element more":      append([]byte{0x91}, append(slices.Clone(payload[1:]), 0)...),
		"an element less":      append([]byte{0x8f}, payload[1:len(payload)-1]...),
		"a list without end":   append(append([]byte{0x9f}, payload[1:]...), 0xff),
		"null for a list":      withNull,
		"nothing":              nil,
		"null":                 {0xf6},
		"JSON of format 6":     []byte(`{"format":6,"name":"toy"}`),
		"too long":             append(slices.Clone(payload), make([]byte, maxManifestBytes)...),
		"a shape nobody has":   recoded(func(c *manifestCode) { c.Nests = append(c.Nests, nest{}) }),
		"a shape twice":        recoded(func(c *manifestCode) { c.Nests = append(c.Nests, c.Nests[0]); c.Products[0].Nest = 1 }),
		"a shape that is none": recoded(func(c *manifestCode) { c.Products[0].Nest = 1 }),
		"a negative shape":     recoded(func(c *manifestCode) { c.Products[0].Nest = -1 }),
		"a number of NF4": recoded(func(c *manifestCode) {
			c.Frozen = []seriesCode{{Rounds: 1, Tensors: []tensorCode{{Name: "a", DType: Float32, Shape: []int{16}, NF4: []uint32{16}}}}}
		}),
	} {
		if bytes.Equal(other, payload) {
			t.Errorf("%s: nothing changed", name)
		}
		if _, err := DecodeManifest(other); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Products of a shape say only where it lies: a model of twice the layers does not say
// its shapes again.
func TestManifestNamesAShapeOnce(t *testing.T) {
	m := partGEMM().manifest
	one, err := m.Encode()
	check(t, err)
	m.Segments = append(m.Segments, m.Segments...)
	second := m.Products[0]
	second.First += second.Count
	m.Products = append(m.Products, second)
	two, err := m.Encode()
	check(t, err)
	if more := len(two) - len(one); more > 35 {
		t.Errorf("a product of a known shape takes %d bytes more", more)
	}
	back, err := DecodeManifest(two)
	check(t, err)
	if !reflect.DeepEqual(back.Products, m.Products) {
		t.Errorf("%+v came back as %+v", m.Products, back.Products)
	}
}

// What a payload makes the decoder allocate is bounded by its length: lists of what takes
// least there and most here, as many as fit.
func TestManifestAllocations(t *testing.T) {
	payload, err := partGEMM().manifest.Encode()
	check(t, err)
	var code manifestCode
	check(t, manifestForm.Unmarshal(payload, &code))
	list := func(n int, element string) cbor.RawMessage {
		return append([]byte{0x99, byte(n >> 8), byte(n)}, strings.Repeat(element, n)...)
	}
	full, axes := maxSegments, string(list(maxSegments, "\x80"))
	for name, c := range map[string]struct {
		at   int // of the manifest's elements
		list cbor.RawMessage
	}{
		"series":   {7, list(full, "\x82\x01\x80")},
		"tensors":  {7, cbor.RawMessage("\x81\x82\x01" + string(list(full, "\x86\x60\x60\x80\x00\x80\x80")))},
		"segments": {12, list(full, "\x82\x60\x00")},
		"shapes":   {14, list(full, "\x84\x80\x80\x80\x80")},
		"axes":     {14, list(30, "\x84"+axes+axes+axes+axes)},
		"products": {15, list(full, "\x89\x00\x00\x00\x00\x00\x00\x00\x80\x80")},
		"a length": {15, cbor.RawMessage("\x9b\x00\x00\x00\xff\xff\xff\xff\xff")},
	} {
		var elements []cbor.RawMessage
		check(t, cbor.Unmarshal(payload, &elements))
		elements[c.at] = c.list
		hostile := []byte{0x90}
		for _, e := range elements {
			hostile = append(hostile, e...)
		}
		if len(hostile) > maxManifestBytes {
			t.Fatalf("%s: %d bytes, never decoded", name, len(hostile))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeManifest(hostile)
		runtime.ReadMemStats(&after)
		if refused := errors.Is(err, ErrRefused); refused == (name == "segments") { // which may be so many
			t.Errorf("%s: %v", name, err)
		}
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+200*len(hostile)); got > most {
			t.Errorf("%s: %d bytes became %d, want at most %d", name, len(hostile), got, most)
		}
	}
}

// inMemory tells, in arithmetic that cannot wrap, whether a product stays within 4 GiB.
func inMemory(p *Product) bool {
	for o, at := range map[int]uint32{operandA: p.A, operandB: p.B, operandC: p.C} {
		if o == operandB && p.NF4 != 0 {
			continue
		}
		lo, hi := big.NewInt(int64(at)), big.NewInt(int64(at)+4)
		for _, g := range p.groups() {
			for _, a := range g {
				d := new(big.Int).Mul(big.NewInt(int64(a[o])), big.NewInt(int64(a[0])-1))
				if d.Mul(d, big.NewInt(4)).Sign() < 0 {
					lo.Add(lo, d)
				} else {
					hi.Add(hi, d)
				}
			}
		}
		if lo.Sign() < 0 || hi.Cmp(big.NewInt(1<<32)) > 0 {
			return false
		}
	}
	return true
}

func FuzzDecodeManifest(f *testing.F) {
	for _, m := range []*Manifest{toy().manifest, gemm().manifest, layers().manifest, deep(3)} {
		payload, err := m.Encode()
		check(f, err)
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := DecodeManifest(payload)
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Fatal(err)
			}
			return
		}
		again, err := m.Encode()
		if err != nil || !bytes.Equal(again, payload) {
			t.Fatalf("decoded %q, encoded %q, %v", payload, again, err)
		}
		step, err := m.Unrolled()
		if err != nil {
			t.Fatal(err)
		}
		for i := range step.Products {
			if !inMemory(&step.Products[i]) {
				t.Fatalf("%q: product %d reaches outside of any memory", payload, i)
			}
		}
	})
}
