//go:build js && !full

package dataset

import (
	"errors"
	"io"
)

// isArchive: a page is given files by themselves.
func isArchive(string) bool { return false }

func readArchive(io.Reader, string, int) (*Set, error) {
	return nil, errors.New("this build reads no archives: unpack it first")
}
