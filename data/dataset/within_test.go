//go:build unix

package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A line names no file that links lead to outside of the data's folder, and nothing that is no
// file: a named pipe would keep its reader waiting.
func TestNamedFilesAreInTheFolder(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "data")
	wav(t, filepath.Join(dir, "clips", "a.wav"), 90)
	wav(t, filepath.Join(parent, "private", "b.wav"), 90)
	picture := []byte("P5 2 1 255\n\x00\xff")
	for _, name := range []string{filepath.Join(dir, "a.pgm"), filepath.Join(parent, "private", "b.pgm")} {
		if err := os.WriteFile(name, picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"in.wav": filepath.Join(dir, "clips", "a.wav"), "out.wav": "../private/b.wav", "folder": parent,
		"in.pgm": "a.pgm", "out.pgm": filepath.Join(parent, "private", "b.pgm"), "lost.wav": "nowhere.wav",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"pipe.wav", "pipe.pgm"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(line string) error {
		path := filepath.Join(dir, "x.jsonl")
		if err := os.WriteFile(path, []byte("\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := Load(path)
			done <- err
		}()
		select {
		case err := <-done:
			return err
		case <-time.After(time.Minute):
			t.Fatalf("%s: waits", line)
			return nil
		}
	}
	sound := func(name string) string { return `{"audio":"` + name + `","label":"x"}` }
	page := func(name string) string {
		return `{"words":["a"],"image":"` + name + `","question":"q","answers":"a"}`
	}
	for _, line := range []string{sound("clips/a.wav"), sound("in.wav"), page("a.pgm"), page("in.pgm")} {
		if err := load(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, c := range []struct{ line, key, says string }{
		{sound("out.wav"), `"audio"`, "is a link to what is not within"},
		{sound("folder/private/b.wav"), `"audio"`, "is a link to what is not within"},
		{sound("lost.wav"), `"audio"`, "nowhere.wav"},
		{sound("pipe.wav"), `"audio"`, "it is a named pipe"},
		{sound("clips"), `"audio"`, "it is a folder"},
		{page("out.pgm"), `"image"`, "is a link to what is not within"},
		{page("folder/private/b.pgm"), `"image"`, "is a link to what is not within"},
		{page("pipe.pgm"), `"image"`, "it is a named pipe"},
	} {
		var at *LineError
		if err := load(c.line); !errors.As(err, &at) || at.Line != 2 || !strings.Contains(at.Err.Error(), c.key) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want line 2, %s and %q", c.line, err, c.key, c.says)
		}
	}
}

// A recording that has become a pipe since it was opened is refused, too.
func TestAFileThatBecomesAPipeIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.wav")
	wav(t, path, 90)
	r, err := OpenRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Decoded(); err == nil || !strings.Contains(err.Error(), "it is a named pipe") {
		t.Errorf("%v", err)
	}
}
