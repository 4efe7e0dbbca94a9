package named

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestOnlyFiles: nothing that people may name has its opener wait.
func TestOnlyFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.WriteFile(at("file"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"pipe", "file"} {
		if err := os.Symlink(at(link), at("to-"+link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		at("pipe"): "named pipe", "/proc/self/fd/../../.." + at("pipe"): "named pipe", at("to-pipe"): "named pipe", at("socket"): "a socket", dir: "a folder", os.DevNull: "a device", at("none"): "no such file",
	} {
		_, whole := Open(name)
		_, once := Once(name)
		_, read := Read(name, 10)
		for _, err := range []error{whole, once, read} {
			var given *Error
			if !errors.As(err, &given) || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), name) != 1 {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := Open(at("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	for _, name := range []string{at("file"), at("to-file")} {
		if b, err := Read(name, 7); err != nil || string(b) != "content" {
			t.Errorf("%q, %v", b, err)
		}
		if _, err := Read(name, 6); err == nil || !strings.Contains(err.Error(), "more than 6 bytes") {
			t.Errorf("%v", err)
		}
	}
}

// TestStream: what a shell hands in is read, and Interrupt ends the wait for more.
func TestStream(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	name := "/proc/self/fd/" + strconv.Itoa(int(r.Fd()))
	if _, err := Open(name); err == nil || !strings.Contains(err.Error(), "read once") {
		t.Fatalf("as a file: %v", err)
	}
	f, err := Once(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	go func() { _, _ = w.WriteString("some") }()
	b := make([]byte, 4)
	if _, err := io.ReadFull(f, b); err != nil || string(b) != "some" {
		t.Fatalf("%q, %v", b, err)
	}
	before := over
	over = make(chan struct{})
	defer func() { over = before }()
	go close(over)
	if _, err := io.ReadAll(f); !errors.Is(err, ErrInterrupted) {
		t.Errorf("%v", err)
	}
}
