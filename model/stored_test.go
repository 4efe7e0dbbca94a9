package model

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// written is a folder with the base of BERT's names that is packed in format.
func written(t *testing.T, format Format) (dir string, b *Base) {
	t.Helper()
	b, err := NewBase(tinyConfig(), tinyTensors(), []byte(`{"version":"1.0"}`), format)
	if err != nil {
		t.Fatal(err)
	}
	files, err := b.Files()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := WriteFiles(dir, files); err != nil {
		t.Fatal(err)
	}
	return dir, b
}

// TestFolderIsReadWhereItLies: a base of a folder, and the blob that devices get of
// it, hold none of its weights, and have the bytes of one in memory.
func TestFolderIsReadWhereItLies(t *testing.T) {
	c := BERT(4096, 512, 2, 8, 128)
	random, err := RandomBase(c, 1, []byte(`{"version":"1.0"}`))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := random.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	want, err := random.Blob()
	if err != nil {
		t.Fatal(err)
	}
	sum, size := sha256.Sum256(want), len(want)
	random, want = nil, nil

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b, err := LoadBaseDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	blob, err := b.View()
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.SHA256()
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if blob.Size() != int64(size) || got != sum {
		t.Errorf("the view has %d bytes and the hash %x, the blob %d and %x", blob.Size(), got, size, sum)
	}
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > int64(size)/20 {
		t.Errorf("%d bytes held of a base of %d", held, size)
	}
	runtime.KeepAlive(b)
	runtime.KeepAlive(blob)
}

// TestViewReadsAnyRange: as Encode's bytes, whatever is asked for.
func TestViewReadsAnyRange(t *testing.T) {
	for _, format := range []Format{F32, BF16, NF4} {
		dir, b := written(t, format)
		want, err := b.Blob()
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := LoadBaseDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		view, err := loaded.View()
		if err != nil {
			t.Fatal(err)
		}
		var whole bytes.Buffer
		if _, err := view.WriteTo(&whole); err != nil || !bytes.Equal(whole.Bytes(), want) {
			t.Fatalf("%s: written whole, it differs: %v", format, err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			from := rng.IntN(len(want) + 1)
			p := make([]byte, rng.IntN(200))
			n, err := view.ReadAt(p, int64(from))
			left := want[from:min(len(want), from+len(p))]
			if n != len(left) || !bytes.Equal(p[:n], left) || errors.Is(err, io.EOF) != (n < len(p)) || err != nil && !errors.Is(err, io.EOF) {
				t.Fatalf("%s: %d bytes at %d: %d, %v", format, len(p), from, n, err)
			}
		}
		if _, err := view.ReadAt(make([]byte, 1), -1); err == nil {
			t.Error("a negative offset is read")
		}
	}
}

// TestWeightsCutWhileInUse: a file that is truncated under a base is an error of what
// reads it, in every way of reading, and ends nobody.
func TestWeightsCutWhileInUse(t *testing.T) {
	for _, format := range []Format{F32, BF16, NF4} {
		dir, _ := written(t, format)
		b, err := LoadBaseDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, WeightsFile), 4000); err != nil {
			t.Fatal(err)
		}
		cut := 0
		for _, spec := range b.Config.BaseTensors() {
			if _, err := b.Tensor(spec.Name); errors.Is(err, io.ErrUnexpectedEOF) {
				cut++
			} else if err != nil {
				t.Errorf("%s: %s: %v", format, spec.Name, err)
			}
			if _, _, ok, err := b.StoredNF4(spec.Name); ok && err != nil {
				t.Errorf("%s: %s has codes and %v", format, spec.Name, err)
			}
		}
		if cut == 0 {
			t.Errorf("%s: nothing is missing", format)
		}
		for what, err := range map[string]error{
			"hash": second(b.SHA256()), "pack": second(b.Pack()), "folder": b.WriteDir(t.TempDir()),
		} {
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: %s: %v", format, what, err)
			}
		}
		if _, err := LoadBaseDir(dir); !errors.Is(err, ErrSafetensors) {
			t.Errorf("%s: the rest loads: %v", format, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestPack: packing a folder's base gives the base that is made packed, to the bit,
// and packing that again nothing else.
func TestPack(t *testing.T) {
	for _, format := range []Format{F32, NF4} {
		dir, _ := written(t, format)
		_, want := written(t, NF4)
		b, err := LoadBaseDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		packed, err := b.Pack()
		if err != nil {
			t.Fatal(err)
		}
		x, errX := packed.Blob()
		y, errY := want.Blob()
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			t.Errorf("%s: packed, it is another base: %v %v", format, errX, errY)
		}
	}
}

// TestCodesReadAsFloats: any range of the floats that codes stand for, with blocks of
// any length.
func TestCodesReadAsFloats(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, block := range []int{1, 3, 7, 64, 100} {
		const n = 321
		g := &nf4Group{meta: nf4Meta{"nf4", block, "float32", []int{n}}}
		data := make([]byte, (n+1)/2)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		g.codes = RawTensor{Name: "x", DType: "U8", Data: data}
		for range (n + block - 1) / block {
			g.absmax = append(g.absmax, rng.Float32())
		}
		for i := range g.levels {
			g.levels[i] = rng.Float32()
		}
		var want []float32
		for i := range n {
			want = append(want, g.levels[data[i/2]>>(4*(1-i%2))&15]*g.absmax[i/block])
		}
		flat, err := encodeFloats("F32", want)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := g.floats().Float32(); err != nil || !slices.Equal(v, want) {
			t.Fatalf("block %d: as a whole: %v", block, err)
		}
		for range 200 {
			from := rng.IntN(len(flat))
			p := make([]byte, rng.IntN(len(flat)-from+1))
			if err := g.floats().readAt(p, int64(from)); err != nil || !bytes.Equal(p, flat[from:][:len(p)]) {
				t.Fatalf("block %d: %d bytes at %d: %v", block, len(p), from, err)
			}
		}
	}
}
