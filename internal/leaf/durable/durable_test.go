package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var errPower = errors.New("the power is gone")

// lossy is a disk in one folder that keeps only what was flushed: content by
// Sync of the file, names by sync of the folder. It fails at operation fail.
type lossy struct {
	names, flushedNames map[string]int // to inodes
	inodes, flushed     []string
	ops, fail           int
}

func newLossy(old string) *lossy {
	d := &lossy{names: map[string]int{}, flushedNames: map[string]int{}, fail: -1}
	if old != "" {
		d.names["f"], d.flushedNames["f"] = 0, 0
		d.inodes, d.flushed = []string{old}, []string{old}
	}
	return d
}

func (d *lossy) op() error {
	d.ops++
	if d.ops-1 == d.fail {
		return errPower
	}
	return nil
}

// after lists what f may hold after a power cut now. Any rename that was not
// flushed may or may not have reached the disk; content that was not may be lost.
func (d *lossy) after() []string {
	var may []string
	for _, names := range []map[string]int{d.names, d.flushedNames} {
		if i, ok := names["f"]; !ok {
			may = append(may, "no file")
		} else {
			may = append(may, d.flushed[i])
		}
	}
	return may
}

func (d *lossy) create(path string) (file, error) {
	d.inodes, d.flushed = append(d.inodes, ""), append(d.flushed, "")
	d.names[path+".tmp"] = len(d.inodes) - 1
	return &lossyFile{d, path + ".tmp", len(d.inodes) - 1}, d.op()
}

func (d *lossy) rename(from, to string) error {
	if err := d.op(); err != nil {
		return err
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

func (d *lossy) link(from, to string) error {
	if err := d.op(); err != nil {
		return err
	}
	if _, there := d.names[to]; there {
		return fs.ErrExist
	}
	d.names[to] = d.names[from]
	return nil
}

func (d *lossy) remove(path string) error {
	if _, there := d.names[path]; !there {
		return fs.ErrNotExist
	}
	delete(d.names, path)
	return nil
}

func (d *lossy) sync(string) error {
	if err := d.op(); err != nil {
		return err
	}
	d.flushedNames = map[string]int{}
	for k, v := range d.names {
		d.flushedNames[k] = v
	}
	return nil
}

type lossyFile struct {
	d     *lossy
	name  string
	inode int
}

func (f *lossyFile) Name() string            { return f.name }
func (f *lossyFile) Chmod(fs.FileMode) error { return f.d.op() }
func (f *lossyFile) Close() error            { return f.d.op() }

func (f *lossyFile) Write(b []byte) (int, error) {
	f.d.inodes[f.inode] += string(b)
	return len(b), f.d.op()
}

func (f *lossyFile) Sync() error {
	if err := f.d.op(); err != nil {
		return err
	}
	f.d.flushed[f.inode] = f.d.inodes[f.inode]
	return nil
}

// TestPowerCut cuts the power, or fails the system's call, at every step.
func TestPowerCut(t *testing.T) {
	for name, place := range map[string]func(disk, string, string) error{"replace": disk.rename, "create": disk.link} {
		old, was := "old", "old"
		if name == "create" {
			old, was = "", "no file"
		}
		whole := newLossy(old)
		if err := put(whole, "f", strings.NewReader("new"), 0o600, place); err != nil {
			t.Fatal(err)
		}
		if may := whole.after(); slices.ContainsFunc(may, func(s string) bool { return s != "new" }) {
			t.Errorf("%s returned, and a power cut leaves one of %q", name, may)
		}
		if len(whole.names) != 1 {
			t.Errorf("%s left %v", name, whole.names)
		}
		if whole.ops < 7 {
			t.Fatalf("%s took %d operations", name, whole.ops)
		}
		for fail := range whole.ops {
			d := newLossy(old)
			d.fail = fail
			if err := put(d, "f", strings.NewReader("new"), 0o600, place); !errors.Is(err, errPower) {
				t.Errorf("%s, failure at %d: %v", name, fail, err)
			}
			for _, s := range d.after() {
				if s != was && s != "new" {
					t.Errorf("%s, power cut at %d leaves %q", name, fail, s)
				}
			}
		}
	}
}

// A second name is there once the call has returned, whatever is cut then, and takes
// nobody's place.
func TestLink(t *testing.T) {
	d := newLossy("")
	if err := put(d, "of", strings.NewReader("new"), 0o600, disk.rename); err != nil {
		t.Fatal(err)
	}
	if err := link(d, "of", "f"); err != nil {
		t.Fatal(err)
	}
	if may := d.after(); slices.ContainsFunc(may, func(s string) bool { return s != "new" }) {
		t.Errorf("a power cut leaves one of %q", may)
	}
	if err := link(d, "of", "f"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file: %v", err)
	}
	d = newLossy("")
	if err := put(d, "of", strings.NewReader("new"), 0o600, disk.rename); err != nil {
		t.Fatal(err)
	}
	d.fail = d.ops + 1 // the flush
	if err := link(d, "of", "f"); !errors.Is(err, errPower) {
		t.Errorf("not flushed: %v", err)
	}
	from := filepath.Join(t.TempDir(), "from")
	if err := Create(from, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Link(from, from+"2"); err != nil {
		t.Skip(err)
	}
	if err := Replace(from, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(from + "2"); err != nil || string(b) != "one" {
		t.Errorf("a file that is replaced changes under its second name: %q, %v", b, err)
	}
}

func TestOnDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key.pem")
	read := func() string {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if err := Create(path, []byte("first"), 0o600); err != nil || read() != "first" {
		t.Fatalf("created %q, %v", read(), err)
	}
	if err := Create(path, []byte("second"), 0o600); !errors.Is(err, fs.ErrExist) || read() != "first" {
		t.Errorf("created over a file: %q, %v", read(), err)
	}
	if err := Replace(path, []byte("third"), 0o644); err != nil || read() != "third" {
		t.Errorf("replaced by %q, %v", read(), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := Replace(filepath.Join(dir, "none", "f"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such folder: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(filepath.Join(dir, "folder"), nil, 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if strings.Contains(e.Name(), ".tmp") {
			t.Errorf("%s is left", e.Name())
		}
	}
}
