//go:build js && !full

package dataset

import (
	"errors"
	"io"
)

// gunzip: a browser has a decompressor of its own, and gives what it yields.
func gunzip(io.Reader) (io.ReadCloser, error) {
	return nil, errors.New("this build reads no .gz: decompress it first")
}
