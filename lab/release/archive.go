package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"time"
)

// epoch is the time of every file: a release's own would differ from build to build. ZIP knows none before it.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func tarred(files []file) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		head := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.body)), ModTime: epoch, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(head); err != nil {
			return nil, fmt.Errorf("packing: %s: %w", f.name, err)
		}
		if _, err := t.Write(f.body); err != nil {
			return nil, fmt.Errorf("packing: %s: %w", f.name, err)
		}
	}
	if err := t.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return out.Bytes(), nil
}

func zipped(files []file) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		head := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: epoch}
		head.SetMode(fs.FileMode(f.mode)) //nolint:gosec // nine bits
		w, err := z.CreateHeader(head)
		if err != nil {
			return nil, fmt.Errorf("packing: %s: %w", f.name, err)
		}
		if _, err := w.Write(f.body); err != nil {
			return nil, fmt.Errorf("packing: %s: %w", f.name, err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return out.Bytes(), nil
}
