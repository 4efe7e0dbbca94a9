//go:build !js

package dataset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-fl/starling/data/columnar"
	"github.com/starling-fl/starling/internal/leaf/named"
)

// storedFormats is said where a file's format is not known.
const storedFormats = ", .parquet or .arrow"

// maxStored bounds a file of columns that has to be held in memory to be read, in bytes.
const maxStored = 1 << 30

// stored reports whether a file holds a table column by column.
func stored(name string) bool {
	return slices.Contains([]string{".parquet", ".arrow", ".feather"}, filepath.Ext(name))
}

// stored reads its rows as lines of JSON.
func (s *scanner) stored(r io.Reader) error {
	take := func(row int, object []byte) error {
		l, err := s.parseJSON(object)
		if err == nil {
			err = s.each(row, l)
		}
		if err != nil {
			return &LineError{s.name, row, err}
		}
		return nil
	}
	var err error
	switch p, ok := r.(parts); {
	case ok:
		before := 0
		for _, part := range p {
			last := before
			if err = columnar.Arrow(part, func(row int, object []byte) error { last = before + row; return take(last, object) }); err != nil {
				break
			}
			before = last
		}
	case filepath.Ext(s.name) == ".parquet":
		err = parquet(r, take)
	default:
		err = columnar.Arrow(bufio.NewReaderSize(r, 1<<20), take)
	}
	if at := new(LineError); err == nil || errors.As(err, &at) {
		return err
	}
	return named.Errorf("%s: %w", s.name, err)
}

// parquet reads a file where it is, and another source as a whole.
func parquet(r io.Reader, take func(int, []byte) error) error {
	if f, ok := r.(*os.File); ok {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		return columnar.Parquet(f, info.Size(), take)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxStored+1))
	switch {
	case err != nil:
		return named.Wrap(err)
	case len(data) > maxStored:
		return fmt.Errorf("more than %d MiB: give it as a file", maxStored>>20)
	}
	return columnar.Parquet(bytes.NewReader(data), int64(len(data)), take)
}

// savedParts are the files of a folder that datasets' save_to_disk wrote, in their order; nil: it is no such folder.
func savedParts(folder string) ([]string, error) {
	raw, err := os.ReadFile(filepath.Join(folder, "state.json"))
	if errors.Is(err, os.ErrNotExist) {
		raw, err = os.ReadFile(filepath.Join(folder, "dataset_dict.json"))
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		var splits struct{ Splits []string }
		if json.Unmarshal(raw, &splits) != nil || len(splits.Splits) == 0 {
			return nil, fmt.Errorf("%s: dataset_dict.json names no splits", folder)
		}
		return nil, fmt.Errorf("%s holds the splits %s: give one, as %s", folder, strings.Join(splits.Splits, ", "), filepath.Join(folder, splits.Splits[0]))
	} else if err != nil {
		return nil, err
	}
	var state struct {
		Files []struct{ Filename string } `json:"_data_files"`
	}
	if err := json.Unmarshal(raw, &state); err != nil {
		return nil, fmt.Errorf("%s: state.json: %w", folder, err)
	}
	names := []string{}
	for _, f := range state.Files {
		if !filepath.IsLocal(f.Filename) {
			return nil, fmt.Errorf("%s: state.json names %q, which is not in the folder", folder, f.Filename)
		}
		names = append(names, filepath.Join(folder, f.Filename))
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: state.json names no files", folder)
	}
	return names, nil
}

// loadParts reads a table's files one after another; their rows are counted on.
func (c Columns) loadParts(folder string, names []string, err error) (*Set, error) {
	if err != nil {
		return nil, err
	}
	var all parts
	for _, name := range names {
		f, err := named.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		all = append(all, bufio.NewReaderSize(f, 1<<20))
	}
	return c.read(all, filepath.Join(folder, "data.arrow"), maxUnpacked)
}

// parts are files that hold one table after another, not one stream of bytes.
type parts []io.Reader

func (parts) Read([]byte) (int, error) { return 0, io.EOF }
