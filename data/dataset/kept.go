package dataset

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/starling-fl/starling/internal/leaf/named"
)

// keptFile is a file that stays where it is and is decoded whenever it is used; one that
// changes meanwhile, or is larger than most bytes, is refused. check is asked of its bytes now.
func keptFile[T any](path string, most int, check func(data []byte) error, decode func(data []byte) (*T, error)) (open func() (*T, error), sum []byte, err error) {
	data, err := readWithin(path, most)
	if err == nil {
		err = check(data)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	first := sha256.Sum256(data)
	return func() (*T, error) {
		data, err := readWithin(path, most)
		if err == nil && sha256.Sum256(data) != first {
			err = errors.New("has changed since it was opened")
		}
		var held *T
		if err == nil {
			held, err = decode(data)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return held, nil
	}, first[:], nil
}

// readWithin reads a file of at most so many bytes; its errors leave the file's name to the caller.
func readWithin(path string, most int) ([]byte, error) {
	f, err := named.Open(path)
	var of *fs.PathError
	if errors.As(err, &of) {
		return nil, fmt.Errorf("%w", of.Err)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	return data, err
}
