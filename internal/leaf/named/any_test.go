package named

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A folder is opened where one may be given, and nowhere else.
func TestOpenAny(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, file} {
		f, err := OpenAny(name)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	var refused *Error
	if _, err := OpenAny(os.DevNull); !errors.As(err, &refused) {
		t.Errorf("a device: %v", err)
	}
	if _, err := Open(dir); !errors.As(err, &refused) {
		t.Errorf("a folder for a file: %v", err)
	}
	if err := Dir(file); !errors.As(err, &refused) {
		t.Errorf("a file for a folder: %v", err)
	}
	if err := errors.Join(Dir(dir), Dir(filepath.Join(dir, "none"))); err != nil {
		t.Errorf("folders: %v", err)
	}
}
