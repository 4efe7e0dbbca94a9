//go:build !js || full

package dataset

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/starling-fl/starling/audio"
)

// OpenRecording is the recording of a file, which stays there and is decoded whenever it is
// used: one that changes meanwhile is refused. What cannot be used is told now.
func OpenRecording(path string) (*Recording, error) {
	data, err := readRecording(path)
	if err == nil {
		_, err = audio.Decode(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	sum := sha256.Sum256(data)
	return &Recording{sum: sum[:], read: func() (*audio.Sound, error) {
		data, err := readRecording(path)
		if err == nil && sha256.Sum256(data) != sum {
			err = errors.New("has changed since it was opened")
		}
		var s *audio.Sound
		if err == nil {
			s, err = audio.Decode(data)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return s, nil
	}}, nil
}

func readRecording(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, audio.MaxFile+1))
	if err == nil && len(data) > audio.MaxFile {
		err = fmt.Errorf("larger than %d bytes", audio.MaxFile)
	}
	return data, err
}
