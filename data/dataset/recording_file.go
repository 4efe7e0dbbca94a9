//go:build !js || full

package dataset

import (
	"fmt"
	"path/filepath"

	"github.com/starling-fl/starling/data/audio"
)

// within is the path of a file of a folder, which neither its name nor links leave: whoever
// made the data might name a file of its reader's.
func within(folder, name string) (string, error) {
	name = filepath.FromSlash(name)
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("%.80q, want a path within the folder %s", name, folder)
	}
	from, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	end, err := filepath.EvalSymlinks(filepath.Join(from, name))
	if err != nil {
		return "", err
	}
	if from, err = filepath.EvalSymlinks(from); err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(from, end); err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%.80q is a link to what is not within the folder %s", name, folder)
	}
	return filepath.Join(folder, name), nil
}

// OpenRecording returns a recording that is decoded from its file at each use, and refused if the file changes
// meanwhile. A file that cannot be used is refused at once.
func OpenRecording(path string) (*Recording, error) {
	heard := func(data []byte) error { _, err := audio.Decode(data); return err }
	open, sum, err := keptFile(path, audio.MaxFile, heard, audio.Decode)
	if err != nil {
		return nil, err
	}
	return &Recording{sum: sum, read: open, file: path}, nil
}
