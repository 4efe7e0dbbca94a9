//go:build !js || full

package dataset

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder's images stay in their files: a photo takes a hundred times as much decoded.
// What is no image is told when the folder is read, what changes afterwards when it is
// used.
func TestFoldersAreNotHeldDecoded(t *testing.T) {
	dir := t.TempDir()
	write := func(label, name string, shade uint8) string {
		m := image.NewGray(image.Rect(0, 0, 8, 6))
		for i := range m.Pix {
			m.Pix[i] = shade + uint8(i)
		}
		m.Set(0, 0, color.White)
		var b bytes.Buffer
		path := filepath.Join(dir, label, name)
		if err := errors.Join(png.Encode(&b, m), os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("cat", "1.png", 10)
	path := write("dog", "1.png", 20)
	set, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Examples) != 2 || bytes.Equal(set.Examples[0].Image.Identity(), set.Examples[1].Image.Identity()) {
		t.Fatalf("%d examples", len(set.Examples))
	}
	for _, e := range set.Examples {
		if e.Image.Pixels != nil {
			t.Error("an image is held decoded")
		}
		m, err := e.Image.Decoded()
		if err != nil || m.Width != 8 || m.Height != 6 || len(m.Pixels) != 48 {
			t.Errorf("%+v, %v", m, err)
		}
	}
	m, err := OpenImage(path)
	if err != nil {
		t.Fatal(err)
	}
	write("dog", "1.png", 30)
	if _, err := m.Decoded(); err == nil || !strings.Contains(err.Error(), "changed") || !strings.Contains(err.Error(), path) {
		t.Errorf("a file that has changed: %v", err)
	}
	broken := filepath.Join(dir, "dog", "2.png")
	if err := os.WriteFile(broken, []byte("no image"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("a file that is no image: %v", err)
	}
}

// A folder of labelled files is not one of pictures.
func TestAFolderOfFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl.gz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "a.jsonl.gz in it a labelled file") {
		t.Errorf("a folder of files: %v", err)
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "want a folder for each label") {
		t.Errorf("an empty folder: %v", err)
	}
}
