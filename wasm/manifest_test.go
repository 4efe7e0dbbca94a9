package wasm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
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
		"last format":      {func(m *Manifest) { m.Format = 5 }, "format 5, this loader reads 6"},
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
		payload, err := json.Marshal(m)
		check(t, err)
		if _, err := DecodeManifest(payload); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: DecodeManifest: %v", name, err)
		}
	}
}

func TestManifestCanonical(t *testing.T) {
	payload, err := toy().manifest.Encode()
	check(t, err)
	s := string(payload)
	for name, other := range map[string]string{
		"space":         s + " ",
		"two values":    s + "{}",
		"spread out":    strings.Replace(s, `,"name"`, `, "name"`, 1),
		"unknown field": strings.Replace(s, `{"format":6`, `{"extra":1,"format":6`, 1),
		"loops":         strings.Replace(s, `"prepare"`, `"loops":[],"prepare"`, 1),
		"other case":    strings.Replace(s, `"name"`, `"Name"`, 1),
		"order":         strings.Replace(s, `"format":6,"name":"toy"`, `"name":"toy","format":6`, 1),
		"escape":        strings.Replace(s, `"toy"`, `"t\u006fy"`, 1),
		"number":        strings.Replace(s, `"flops":40`, `"flops":4e1`, 1),
		"twice":         strings.Replace(s, `"format":6`, `"format":6,"format":6`, 1),
		"empty list":    strings.Replace(s, `"prepare":[{"name":"pack"}]`, `"prepare":[]`, 1),
		"null":          "null",
		"nothing":       "",
		"too long":      s + strings.Repeat(" ", maxManifestBytes),
		"offset range":  strings.Replace(s, `"offset":64`, `"offset":4294967296`, 1),
	} {
		if other == s {
			t.Errorf("%s: nothing changed", name)
		}
		if _, err := DecodeManifest([]byte(other)); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// inMemory tells, in arithmetic that cannot wrap, whether a product stays within 4 GiB.
func inMemory(p *Product) bool {
	for o, at := range map[int]uint32{operandA: p.A, operandB: p.B, operandC: p.C} {
		if o == operandB && p.NF4 != "" {
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
	for _, m := range []*mod{toy(), gemm()} {
		payload, err := m.manifest.Encode()
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
		for i := range m.Products {
			if !inMemory(&m.Products[i]) {
				t.Fatalf("%q: product %d reaches outside of any memory", payload, i)
			}
		}
	})
}
