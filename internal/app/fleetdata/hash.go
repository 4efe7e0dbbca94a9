package fleetdata

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/starling-fl/starling/data/dataset"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// Hash identifies the data at path: the hash of a file, or of a folder of images or recordings
// their labels and hashes in order. The hashes of recordings or pages that a file names are
// included, and so are the columns unless they are the default ones.
func Hash(path string, columns dataset.Columns, of *dataset.Set) (_ string, err error) {
	h := sha256.New()
	at, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !at.IsDir() {
		f, err := named.Open(path)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(h, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	if at.IsDir() || of != nil && slices.ContainsFunc(of.Examples, namesFile) {
		for _, e := range of.Examples {
			label := ""
			if len(of.Labels) > 0 {
				label = of.Labels[e.Label]
			}
			fmt.Fprintf(h, "%q %x\n", label, identity(&e))
		}
	}
	if columns != (dataset.Columns{}) {
		fmt.Fprintf(h, "\x00%q %q %v", columns.Text, columns.Label, columns.Unlabelled)
		if columns.Others != "" {
			fmt.Fprintf(h, "%q", columns.Others)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// namesFile reports whether an example has a file beside the one that it is in.
func namesFile(e dataset.Example) bool {
	return e.Recording != nil || e.Image != nil && e.Image.File() != ""
}

// identity tells an example of a folder from others; nil where a line names no file.
func identity(e *dataset.Example) []byte {
	switch {
	case e.Recording != nil:
		return e.Recording.Identity()
	case e.Image != nil:
		return e.Image.Identity()
	}
	return nil
}
