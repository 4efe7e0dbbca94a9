package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDecodeImage(t *testing.T) {
	grey := image.NewGray(image.Rect(0, 0, 3, 2))
	colour := image.NewRGBA(image.Rect(5, 5, 8, 7))
	for i := range 6 {
		grey.SetGray(i%3, i/3, color.Gray{Y: uint8(40 * i)})
		colour.Set(5+i%3, 5+i/3, color.RGBA{uint8(40 * i), uint8(10 * i), 200, 255})
	}
	var g, c, j bytes.Buffer
	for _, err := range []error{png.Encode(&g, grey), png.Encode(&c, colour), jpeg.Encode(&j, grey, &jpeg.Options{Quality: 100})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []float32{0, 40, 80, 120, 160, 200}
	for name, f := range map[string]struct {
		data     []byte
		channels int
		most     float64
	}{
		"png": {g.Bytes(), 1, 0}, "png, colour": {c.Bytes(), 3, 0}, "jpeg": {j.Bytes(), 1, 6},
		"P2":        {[]byte("P2\n# a comment\n3 2\n255\n0 40 80\n120 160 200"), 1, 0},
		"P5":        {append([]byte("P5 3 2 255\n"), 0, 40, 80, 120, 160, 200), 1, 0},
		"P5, wide":  {append([]byte("P5 3 2 65280\n"), 0, 0, 40, 0, 80, 0, 120, 0, 160, 0, 200, 0), 1, 0},
		"P6":        {append([]byte("P6 3 2 255\n"), 0, 0, 0, 40, 0, 0, 80, 0, 0, 120, 0, 0, 160, 0, 0, 200, 0, 0), 3, 0},
		"P3":        {[]byte("P3 3 2 255\n0 0 0 40 0 0 80 0 0 120 0 0 160 0 0 200 0 0 "), 3, 0},
		"P5 of one": {append([]byte("P5 1 1 255\n"), 0), 1, 0},
	} {
		m, err := DecodeImage(f.data)
		if err != nil || m.Channels != f.channels {
			t.Errorf("%s: %+v, %v", name, m, err)
			continue
		}
		for i := range m.Width * m.Height {
			if d := math.Abs(float64(255*m.Pixels[i] - want[i])); d > f.most+1e-3 {
				t.Errorf("%s: pixel %d is %v, want %v", name, i, 255*m.Pixels[i], want[i])
			}
		}
	}
	for name, data := range map[string]string{
		"neither": "GIF89a", "no end": "P5 3 2 255\n\x01", "large": "P5 100000 100000 255\n", "kind": "P4 3 2\n", "above": "P2 1 1 7\n9",
		"empty": "P5", "overflow": "P5 99999999999999999999 1 255\n", "negative": "P2 -1 1 255\n",
	} {
		if m, err := DecodeImage([]byte(data)); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// pngHeader is the beginning of a PNG of w x h pixels, up to where pixels follow.
func pngHeader(w, h uint32, depth, kind, interlaced byte) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("IHDR"), w), h)
	head = append(head, depth, kind, 0, 0, interlaced)
	data := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	return binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(head))
}

// A picture is refused by what its pixels take decoded, not by their number alone: 16 bits a
// channel take twice as much, and so does interlacing.
func TestPicturesAreBoundByBytes(t *testing.T) {
	const grey, colour, alpha = 0, 2, 6
	for name, c := range map[string]struct {
		side              uint32
		depth, kind, lace byte
		refused           bool
	}{
		"8 bits of grey":           {8192, 8, grey, 0, false},
		"8 bits":                   {7000, 8, colour, 0, false},
		"8 bits, large":            {8000, 8, colour, 0, true},
		"8 bits, interlaced":       {7000, 8, colour, 1, true},
		"16 bits":                  {6000, 16, colour, 0, false},
		"16 bits, large":           {8000, 16, colour, 0, true},
		"16 bits, alpha, large":    {7000, 16, alpha, 0, true},
		"16 bits, grey, laced":     {8192, 16, grey, 1, true},
		"more pixels than allowed": {8193, 8, grey, 0, true},
	} {
		err := checkHeader(pngHeader(c.side, c.side, c.depth, c.kind, c.lace))
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkHeader(pngHeader(8000, 8000, 16, alpha, 0)); err == nil || !strings.Contains(err.Error(), "8 bytes each, takes 1220 MiB to decode, the limit is 768") {
		t.Error(err)
	}
}

// An image that says it is large takes no more memory than its file allows.
func FuzzDecodeImage(f *testing.F) {
	f.Add([]byte("P2\n3 2\n255\n0 40 80\n120 160 200"))
	f.Add([]byte("P6 1 1 255\nabc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeImage(data)
		if err == nil && len(m.Pixels) != m.Width*m.Height*m.Channels {
			t.Errorf("%d x %d x %d: %d pixels", m.Width, m.Height, m.Channels, len(m.Pixels))
		}
	})
}

func TestPixelTables(t *testing.T) {
	header := "Class"
	for i := range 16 {
		header += fmt.Sprintf(",p%d", i)
	}
	row := func(label string, v int) string { return label + strings.Repeat(fmt.Sprintf(",%d", v), 16) + "\n" }
	set, err := Read(strings.NewReader(header+"\n"+row("seven", 16)+row("one", 4)), "digits.tra")
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Examples) != 2 || set.Examples[0].Label != 1 || set.Examples[0].Image.Pixels[3] != 1 || set.Examples[1].Image.Pixels[0] != 0.25 {
		t.Errorf("%+v", set)
	}
	if set, err = Read(strings.NewReader(header+"\n"+row("a", 255)+row("b", 0)), "x.csv"); err != nil || set.Examples[0].Image.Pixels[0] != 1 {
		t.Errorf("%+v, %v", set, err)
	}
	for _, bad := range []string{row("a", 256), row("a", -1), "a" + strings.Repeat(",x", 16) + "\n", "a,1\n", row("", 1)} {
		line := new(LineError)
		if _, err := Read(strings.NewReader(header+"\n"+row("b", 1)+bad), "x.csv"); !errors.As(err, &line) || line.Line != 3 {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

func TestImageFolders(t *testing.T) {
	dir := t.TempDir()
	for i, label := range []string{"cat", "dog", "cat"} {
		if err := os.MkdirAll(filepath.Join(dir, label), 0o755); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, label, fmt.Sprintf("%d.pgm", i))
		if err := os.WriteFile(name, []byte("P2 1 1 255 51"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set, err := Load(dir)
	if err != nil || len(set.Examples) != 3 || len(set.Labels) != 2 {
		t.Fatalf("%+v, %v", set, err)
	}
	if m, err := set.Examples[2].Image.Decoded(); err != nil || math.Abs(float64(m.Pixels[0])-0.2) > 1e-6 {
		t.Errorf("%+v, %v", m, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "dog", "bad.png"), []byte("no"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "bad.png") {
		t.Errorf("a broken image: %v", err)
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("an empty folder")
	}
}

func TestDigitsFollowFromTheSeed(t *testing.T) {
	a, err := Digits(1, "train", 3, 90)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Digits(1, "train", 3, 90)
	c, _ := Digits(1, "test", 3, 90)
	same := func(x, y *Set) (n int) {
		for i := range x.Examples {
			if fmt.Sprint(x.Examples[i].Image.Pixels) == fmt.Sprint(y.Examples[i].Image.Pixels) {
				n++
			}
		}
		return n
	}
	if same(a, b) != 90 || same(a, c) != 0 {
		t.Errorf("the same seed gives %d of 90 alike, another split %d", same(a, b), same(a, c))
	}
}

// What is read again each time is held to its size, and read only where it is used.
func TestDeferred(t *testing.T) {
	reads := 0
	m := Deferred(func() (*Image, error) {
		reads++
		return &Image{Width: reads, Height: 1, Channels: 1, Pixels: []float32{1}}, nil
	})
	got, err := m.Decoded()
	if err != nil || reads != 1 || len(got.Pixels) != 1 {
		t.Errorf("%+v, %v after %d reads", got, err, reads)
	}
	if _, err := m.Decoded(); err == nil || reads != 2 {
		t.Errorf("two pixels of one value: %v after %d reads", err, reads)
	}
	if again, err := got.Decoded(); again != got || err != nil {
		t.Errorf("a decoded image is decoded: %v", err)
	}
}

func TestNamed(t *testing.T) {
	s, err := Named("pictures", make([]Example, 3), []string{"dog", "cat", "dog"})
	if err != nil || strings.Join(s.Labels, " ") != "cat dog" || s.Examples[0].Label != 1 || s.Examples[1].Label != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"", strings.Repeat("x", MaxLabel+1), "\xff"} {
		if _, err := Named("pictures", make([]Example, 2), []string{"cat", bad}); err == nil || !strings.Contains(err.Error(), "pictures: label 2") {
			t.Errorf("label %.5q: %v", bad, err)
		}
	}
	if _, err := Named("pictures", nil, nil); !errors.Is(err, ErrEmpty) {
		t.Errorf("no examples: %v", err)
	}
}

// What macOS keeps beside files is no image, whatever it is called.
func TestFilesBesideImages(t *testing.T) {
	for name, want := range map[string]bool{"0.png": true, "a/0.JPG": true, "._0.png": false, "a/._0.png": false, "0.heic": false} {
		if got := IsImage(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
