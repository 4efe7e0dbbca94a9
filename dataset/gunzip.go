//go:build !js || full

package dataset

import (
	"compress/gzip"
	"io"
)

func gunzip(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }
