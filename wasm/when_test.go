package wasm

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// conditional is the toy, whose update runs where the highest byte of twice f's first value is not 0.
func conditional() *mod {
	m := toy()
	m.manifest.Segments[0].When = m.manifest.Arena.Offset + 3
	return m
}

func TestSegmentRunsUnderItsCondition(t *testing.T) {
	for name, cfg := range configs() {
		for _, first := range []float32{0, 1} {
			in := instance(t, load(t, conditional(), cfg))
			f := slices.Clone(toyF)
			f[0] = first
			before, got := []float32{1, 1, 1, 1, 1, 1, 1, 1}, make([]float32, 8)
			check(t, in.WriteFrozen("f", f), in.WriteFloat32("x", toyX), in.WriteFloat32("lr", []float32{.5}),
				in.WriteFloat32("w", before), in.Step(t.Context()), in.ReadFloat32("w", got))
			if moved := !slices.Equal(got, before); moved != (first != 0) {
				t.Errorf("%s: w is %v where f begins with %v", name, got, first)
			}
		}
	}
}

func TestConditionRefused(t *testing.T) {
	if _, err := Verify(conditional().assemble(), Limits{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		of     *Manifest
		change func(m *Manifest)
		want   string
	}{
		"before the arena": {toy().manifest, func(m *Manifest) { m.Segments[0].When = m.Arena.Offset - 1 }, "not in the arena"},
		"behind the arena": {toy().manifest, func(m *Manifest) { m.Segments[0].When = m.Arena.Offset + m.Arena.Size }, "not in the arena"},
		"far out":          {toy().manifest, func(m *Manifest) { m.Segments[1].When = 1<<32 - 1 }, "s1: its condition at 4294967295"},
		"of preparing":     {toy().manifest, func(m *Manifest) { m.Prepare[0].When = m.Arena.Offset }, "only a step's have"},
		"within a product": {partGEMM().manifest, func(m *Manifest) { m.Segments[m.Products[0].First].When = m.Arena.Offset + 1 }, "conditions at"},
		"in a product's result": {partGEMM().manifest, func(m *Manifest) {
			m.Products[0].C = m.Arena.Offset
			for i := range m.Segments { // the second row's segment would be skipped where kernels compute both at once
				m.Segments[i].When = m.Arena.Offset + 3
			}
		}, "C has its condition"},
	} {
		c.change(c.of)
		if _, err := c.of.Encode(); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// No condition is not written as one, nor is anything else in its place.
	payload, err := conditional().manifest.Encode()
	check(t, err)
	update := string(payload[strings.Index(string(payload), "\x83\x66update"):])[:12]
	for name, other := range map[string]string{"0": update[:10] + "\x00", "a text": update[:10] + "\x60", "four elements": "\x84" + update[1:] + "\x00"} {
		if _, err := DecodeManifest([]byte(strings.Replace(string(payload), update, other, 1))); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
