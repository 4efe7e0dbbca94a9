package quant

import (
	"errors"
	"testing"
)

// TestUpdateChain sends a drifting vector for many rounds: what the device
// holds is what the sender computed, to the bit, and the error does not grow.
func TestUpdateChain(t *testing.T) {
	const n = 3000
	for _, format := range FormatNames() {
		target := testVector(1, n)
		var held []float32
		differences := 0
		for round := range 12 {
			step := testVector(uint64(100+round), n)
			for i := range target {
				target[i] += 0.001 * step[i]
			}
			full, err := Compress([]byte{kindFull}, target, format, "zstd")
			if err != nil {
				t.Fatal(err)
			}
			exact, err := Decompress(full[1:], n)
			if err != nil {
				t.Fatal(err)
			}
			msg, decoded, err := PackUpdate(target, held, format, "zstd")
			if err != nil {
				t.Fatal(err)
			}
			if len(msg) > len(full) {
				t.Errorf("%s, round %d: %d bytes, in full %d", format, round, len(msg), len(full))
			}
			if squaredError(target, decoded) > squaredError(target, exact) {
				t.Errorf("%s, round %d: the difference is less accurate than the whole", format, round)
			}
			got, err := UnpackUpdate(msg, held, n)
			if err != nil {
				t.Fatal(err)
			}
			if !equalBits(got, decoded) {
				t.Fatalf("%s, round %d: the device decodes something else", format, round)
			}
			if msg[0] == kindDifference {
				differences++
				other := append([]float32(nil), held...)
				other[0]++
				for _, wrong := range [][]float32{nil, other, held[1:]} {
					if _, err := UnpackUpdate(msg, wrong, n); !errors.Is(err, ErrBase) {
						t.Errorf("%s: difference against another vector: %v", format, err)
					}
				}
			}
			held = decoded
		}
		// A step of a thousandth fits a coarser format in all but the exact and
		// the smallest formats.
		switch format {
		case "f16", "bf16", "int8", "nf4":
			if differences != 11 {
				t.Errorf("%s: %d of 11 updates were differences", format, differences)
			}
		}
	}
}

// TestPatch checks, for every format and awkward lengths, that a patch leads to
// the very values of the full message, whatever is held, and is never larger.
func TestPatch(t *testing.T) {
	for _, format := range FormatNames() {
		for _, codec := range []string{"none", "s2", "zstd"} {
			for _, n := range []int{1, 2, 63, 65, 4097} {
				target := testVector(1, n)
				full, decoded, err := PackUpdate(target, nil, format, codec)
				if err != nil {
					t.Fatal(err)
				}
				near := testVector(2, n)
				for i := range near {
					near[i] = decoded[i] + 1e-4*near[i]
				}
				huge := testVector(3, n)
				huge[0] = 1e20 // does not fit f16
				patches := 0
				for _, held := range [][]float32{decoded, near, testVector(4, n), huge, make([]float32, n)} {
					msg, err := PackPatch(full, held)
					if err != nil {
						t.Fatal(err)
					}
					if msg == nil {
						continue
					}
					patches++
					if len(msg) >= len(full) {
						t.Errorf("%s, n=%d: patch of %d bytes, full has %d", format, n, len(msg), len(full))
					}
					got, err := UnpackUpdate(msg, held, n)
					if err != nil || !equalBits(got, decoded) {
						t.Errorf("%s with %s, n=%d: patch does not lead to the same values: %v", format, codec, n, err)
					}
					if _, err := UnpackUpdate(msg, nil, n); !errors.Is(err, ErrBase) {
						t.Errorf("%s: patch for one that holds nothing: %v", format, err)
					}
				}
				if n == 4097 && patches < 2 {
					t.Errorf("%s with %s: %d patches", format, codec, patches)
				}
			}
		}
	}
	if _, err := PackPatch([]byte{kindDifference, 1, 2, 3}, nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("patch of a difference: %v", err)
	}
}

func TestUpdateRefuses(t *testing.T) {
	msg, _, err := PackUpdate([]float32{1, 2, 3}, nil, "f32", "none")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 2, 4} {
		if _, err := UnpackUpdate(msg, nil, n); !errors.Is(err, ErrCorrupt) {
			t.Errorf("update of 3 values for %d: %v", n, err)
		}
	}
	for _, bad := range [][]byte{nil, {}, {2, 1, 0, 0}, {kindDifference}, make([]byte, 5)} {
		if _, err := UnpackUpdate(bad, nil, 3); err == nil {
			t.Errorf("update %x is accepted", bad)
		}
	}
	if _, _, err := PackUpdate([]float32{1}, []float32{1, 2}, "f32", ""); !errors.Is(err, ErrLength) {
		t.Errorf("lengths differ: %v", err)
	}
}

// FuzzUnpackUpdate: no input crashes, and what is accepted is finite.
func FuzzUnpackUpdate(f *testing.F) {
	const n = 80
	held, target := testVector(1, n), testVector(1, n)
	for i := range target {
		target[i] += 1e-4 * target[n-1-i]
	}
	for _, format := range []string{"f16", "int8", "nf4"} {
		for _, h := range [][]float32{nil, held} {
			msg, _, err := PackUpdate(target, h, format, "zstd")
			if err != nil {
				f.Fatal(err)
			}
			f.Add(msg)
			if h != nil && msg[0] == kindFull {
				continue
			}
			full, _, err := PackUpdate(target, nil, format, "s2")
			if err != nil {
				f.Fatal(err)
			}
			if msg, err = PackPatch(full, held); err != nil || msg == nil {
				f.Fatalf("no patch: %v", err)
			}
			f.Add(msg)
		}
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		x, err := UnpackUpdate(msg, held, n)
		if err == nil && (len(x) != n || checkFinite(x) != nil) {
			t.Fatalf("%d values, %v", len(x), checkFinite(x))
		}
	})
}
