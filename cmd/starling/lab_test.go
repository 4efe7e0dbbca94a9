package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-fl/starling/dataset"
)

// A simulation's data may be a folder of images, a folder for each label; a run over it
// is known by every image of it.
func TestLabReadsAFolderOfImages(t *testing.T) {
	dir := t.TempDir()
	write := func(label string, i int, shade byte) {
		t.Helper()
		path := filepath.Join(dir, label, fmt.Sprintf("%02d.pgm", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		pixels := bytes.Repeat([]byte{shade}, 16)
		if err := os.WriteFile(path, append([]byte("P5 4 4 255\n"), pixels...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		write("dark", i, byte(i))
		write("light", i, byte(200+i))
	}
	read := func() string {
		t.Helper()
		d, err := labData(dir, 1, dataset.Columns{})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(d.Train.Examples) + len(d.Validation.Examples) + len(d.Test.Examples); n != 80 || len(d.Labels) != 2 {
			t.Errorf("%d examples of the labels %q", n, d.Labels)
		}
		return d.SHA256
	}
	before := read()
	if again := read(); again != before {
		t.Error("the same folder is another")
	}
	write("dark", 7, 99)
	if read() == before {
		t.Error("a folder of which an image has changed is the same")
	}
}
