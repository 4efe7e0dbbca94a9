package fleetdata

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/starling-fl/starling/dataset"
)

// Hash tells what is read at path from what was, or will be: the hash of a file, or of
// a folder of images or recordings their labels and hashes in order; of a file that names
// recordings beside it theirs, too; with the columns where they are not the default ones.
func Hash(path string, columns dataset.Columns, of *dataset.Set) (_ string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	at, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !at.IsDir() {
		if _, err := io.Copy(h, f); err != nil {
			return "", err
		}
	}
	if at.IsDir() || of != nil && len(of.Examples) > 0 && of.Examples[0].Recording != nil {
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
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// identity tells an example of a folder from others.
func identity(e *dataset.Example) []byte {
	if e.Recording != nil {
		return e.Recording.Identity()
	}
	return e.Image.Identity()
}
