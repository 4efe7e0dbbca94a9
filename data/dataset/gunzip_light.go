//go:build js && !full

package dataset

import (
	"errors"
	"io"
)

// publications: files of publications' data sets in forms of their own are not read here.
const publications = false

// gunzip: a browser has a decompressor of its own, and gives what it yields.
func gunzip(io.Reader) (io.ReadCloser, error) {
	return nil, errors.New("this build reads no .gz: decompress it first")
}
