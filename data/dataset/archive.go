//go:build !js || full

package dataset

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/starling-fl/starling/data/audio"
)

// maxEntries bounds what an archive names.
const maxEntries = 1 << 20

// isArchive reports whether a file's name is that of a compressed archive.
func isArchive(name string) bool {
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

// readArchive reads recordings out of an archive, which stay in memory as they are stored: named
// as in the Free Spoken Digit Dataset, or in a folder for each label. Of links and other
// things that are no files nothing is taken, nor is anything written anywhere. most bounds
// its files together, in bytes.
func readArchive(r io.Reader, name string, most int) (*Set, error) {
	z, err := gunzip(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer z.Close()
	limit := &bounded{r: z, left: most, end: fmt.Errorf("unpacks to more than %d MiB: unpack it and give the folder", most>>20)}
	in := tar.NewReader(limit)
	var examples []Example
	var names []string
	seen := map[string]bool{}
	for entries := 0; ; entries++ {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: after %d entries: %w", name, entries, err)
		}
		bad := func(format string, args ...any) error {
			return fmt.Errorf("%s: %.200q: %w", name, h.Name, fmt.Errorf(format, args...))
		}
		switch local := filepath.IsLocal(filepath.FromSlash(strings.TrimPrefix(h.Name, "./"))) || h.Name == "./"; {
		case entries >= maxEntries:
			return nil, fmt.Errorf("%s: more than %d entries", name, maxEntries)
		case h.Typeflag == tar.TypeDir, h.Typeflag == tar.TypeXGlobalHeader:
			continue
		case !local:
			return nil, bad("want a path within the archive")
		case h.Typeflag != tar.TypeReg:
			return nil, bad("is a link or a device, want files alone")
		case isList(h.Name):
			return nil, bad("says what is to validate and to test: unpack the archive and give the folder")
		case !audio.Named(h.Name) || beside(h.Name) || path.Base(path.Dir(h.Name)) == "_background_noise_":
			continue
		case seen[h.Name]:
			return nil, bad("stands in the archive twice")
		case h.Size > audio.MaxFile:
			return nil, bad("has %d bytes, the limit is %d", h.Size, audio.MaxFile)
		}
		seen[h.Name] = true
		e, label := Example{User: Speaker(h.Name)}, labelOf(h.Name)
		if label == "" || len(label) > MaxLabel {
			return nil, bad("is named neither DIGIT_SPEAKER_NUMBER.wav nor in a folder for its label")
		}
		data, err := io.ReadAll(in)
		if err == nil {
			if e.Recording, err = kept(data); err == nil {
				e.Recording.file = h.Name
			}
		}
		if err != nil {
			return nil, bad("%w", err)
		}
		examples, names = append(examples, e), append(names, label)
	}
	set, err := Named(name, examples, names)
	if errors.Is(err, ErrEmpty) {
		return nil, fmt.Errorf("%w: want recordings in the archive (.wav, .flac)", err)
	}
	return set, err
}

// labelOf is what a recording's name in an archive says that it is labelled; "" for none.
func labelOf(name string) string {
	if digit, _, ok := spokenDigit(name); ok {
		return digit
	}
	if label := path.Base(path.Dir(name)); label != "." && label != "/" {
		return label
	}
	return ""
}

// kept is a recording whose file is in memory, decoded whenever it is used.
func kept(data []byte) (*Recording, error) {
	if _, err := audio.Decode(data); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	data = bytes.Clone(data) // without the room that it was read into
	return &Recording{sum: sum[:], read: func() (*audio.Sound, error) { return audio.Decode(data) }}, nil
}
