//go:build !js || full

package dataset

import (
	"compress/gzip"
	"fmt"
	"io"
)

// publications: files of publications' data sets are read in forms of their own.
const publications = true

func gunzip(r io.Reader) (io.ReadCloser, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return z, nil
}
