//go:build !js || full

package dataset

import "github.com/starling-fl/starling/audio"

// OpenRecording is the recording of a file, which stays there and is decoded whenever it is
// used: one that changes meanwhile is refused. What cannot be used is told now.
func OpenRecording(path string) (*Recording, error) {
	heard := func(data []byte) error { _, err := audio.Decode(data); return err }
	open, sum, err := keptFile(path, audio.MaxFile, heard, audio.Decode)
	if err != nil {
		return nil, err
	}
	return &Recording{sum: sum, read: open, file: path}, nil
}
