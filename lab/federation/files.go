package federation

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/starling-fl/starling/internal/leaf/named"
)

// Limits of what is read.
const (
	maxFile   = 256 << 20 // bytes of a file, unpacked
	maxTables = 1 << 18
)

// openGz opens a file, or the same with .gz, unpacked.
func openGz(name string) (io.ReadCloser, error) {
	f, err := named.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		if f, err = named.Open(name + ".gz"); err == nil {
			name += ".gz"
		}
	}
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(name, ".gz") {
		return f, nil
	}
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(z, maxFile), f}, nil
}

// tables are a set's tables by their names: in a folder, or in an archive that is read
// when a first one is asked for.
type tables struct {
	folder, archive string
	packed          map[string][]byte
}

// read is a table's bytes.
func (t *tables) read(name string) ([]byte, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, fmt.Errorf("table %.80q is not within the set's folder", name)
	}
	if b, err := os.ReadFile(filepath.Join(t.folder, filepath.FromSlash(name))); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	if t.packed == nil {
		if err := t.unpack(); err != nil {
			return nil, err
		}
	}
	b, ok := t.packed[name]
	if !ok {
		return nil, fmt.Errorf("table %.80q is neither in %s nor in %s: %w", name, t.folder, t.archive, fs.ErrNotExist)
	}
	return b, nil
}

func (t *tables) unpack() error {
	t.packed = map[string][]byte{}
	f, err := openGz(t.archive)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.archive, err)
		}
		switch {
		case h.Typeflag != tar.TypeReg:
			continue
		case h.Size > maxTable || len(t.packed) == maxTables:
			return fmt.Errorf("%s: %.80q has %d bytes, want at most %d, and at most %d tables", t.archive, h.Name, h.Size, maxTable, maxTables)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("%s: %w", t.archive, err)
		}
		t.packed[path.Clean(h.Name)] = b
	}
}
