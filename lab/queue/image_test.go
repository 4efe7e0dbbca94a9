package queue

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/starling-fl/starling/data/audio"
	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/simulate"
)

// sent is an example as a worker has it.
func sent(t testing.TB, e dataset.Example) (*dataset.Example, error) {
	t.Helper()
	flat, err := flatten(0, simulate.Client{Set: &dataset.Set{Labels: []string{"a", "b"}, Examples: []dataset.Example{e}}})
	if err != nil {
		return nil, err
	}
	b, err := cbor.Marshal(item{Plan: simulate.Plan{Classes: 2}, Clients: []client{flat}})
	if err != nil {
		t.Fatal(err)
	}
	it, err := decodeItem(b)
	if err != nil {
		return nil, err
	}
	set, err := it.Clients[0].set()
	if err != nil {
		return nil, err
	}
	return &set.Examples[0], nil
}

// An image goes through a message as it is, and one that lies about its size is
// refused before anything reads it.
func TestImagesInMessages(t *testing.T) {
	m := &dataset.Image{Width: 2, Height: 1, Channels: 1, Pixels: []float32{0.25, 1}}
	got, err := sent(t, dataset.Example{Label: 1, Image: m})
	if err != nil {
		t.Fatal(err)
	}
	if m := got.Image; m == nil || m.Width != 2 || m.Pixels[0] != 0.25 {
		t.Errorf("%+v", m)
	}
	if _, err := sent(t, dataset.Example{Image: &dataset.Image{Width: 9, Height: 9, Channels: 3, Pixels: m.Pixels}}); err == nil {
		t.Error("an image that says it is larger than it is")
	}
	large := &dataset.Image{Width: maxExamples + 1, Height: 1, Channels: 1, Pixels: make([]float32, maxExamples+1)}
	if _, err := sent(t, dataset.Example{Image: large}); err == nil {
		t.Error("an image that no message holds")
	}
}

// What stays in its file until it is used is sent with what it holds: a worker has no file.
func TestFilesInMessages(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	picture, err := dataset.OpenImage(write("a.pgm", []byte("P5 2 1 255\n\x00\xff")))
	if err != nil {
		t.Fatal(err)
	}
	got, err := sent(t, dataset.Example{Label: 1, Image: picture})
	if err != nil {
		t.Fatal(err)
	}
	if m := got.Image; m.Width != 2 || !slices.Equal(m.Pixels, []float32{0, 1}) {
		t.Errorf("%+v", m)
	}
	said := &audio.Sound{Rate: 16_000, Samples: []float32{0.5, -0.25, 0}}
	wav, err := audio.EncodeWAV(said)
	if err != nil {
		t.Fatal(err)
	}
	path := write("a.wav", wav)
	voice, err := dataset.OpenRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err = sent(t, dataset.Example{Label: 1, Recording: voice}); err != nil {
		t.Fatal(err)
	}
	if got.Recording == nil {
		t.Fatal("the recording was left out")
	}
	if s, err := got.Recording.Decoded(); err != nil || s.Rate != said.Rate || !slices.Equal(s.Samples, said.Samples) {
		t.Errorf("%+v, %v", s, err)
	}
	write("a.wav", append(wav, 0))
	if _, err := sent(t, dataset.Example{Recording: voice}); err == nil {
		t.Error("a file that changed was sent")
	}
	for _, r := range []recording{{16_000, []byte{1, 2, 3}}, {0, make([]byte, 8)}, {16_000, nil}} {
		b, err := cbor.Marshal(item{Plan: simulate.Plan{Classes: 2}, Clients: []client{{Examples: []example{{Recording: &r}}}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeItem(b); err == nil {
			t.Errorf("%+v was taken", r)
		}
	}
}
