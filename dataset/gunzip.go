//go:build !js || full

package dataset

import (
	"compress/gzip"
	"fmt"
	"io"
)

func gunzip(r io.Reader) (io.ReadCloser, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return z, nil
}
