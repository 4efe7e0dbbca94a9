package dataset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// beginsList reports whether a file's first character is that of a JSON list.
func beginsList(in *bufio.Reader) bool {
	start, _ := in.Peek(4 << 10) // an error comes again when it is read
	return bytes.HasPrefix(bytes.TrimLeft(start, " \t\r\n"), []byte("["))
}

// array reads the records of one JSON list, each of MaxLine bytes at most.
func (s *scanner) array(in *bufio.Reader) error {
	limit := &bounded{r: in, left: MaxLine, end: fmt.Errorf("a record is longer than %d bytes", MaxLine)}
	at := &counted{r: limit}
	dec := json.NewDecoder(at)
	fail := func(err error) error {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return &LineError{s.name, at.line(at.read), errors.New("the list does not end")}
		}
		return &LineError{s.name, at.line(dec.InputOffset()), err}
	}
	if _, err := dec.Token(); err != nil {
		return fail(err)
	}
	for dec.More() {
		limit.left = MaxLine + 64<<10 // beyond the record: what is read ahead
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return fail(err)
		}
		line := at.line(dec.InputOffset() - int64(len(raw)))
		l, err := s.parseJSON(raw)
		if err == nil {
			err = s.each(line, l)
		}
		if err != nil {
			return &LineError{s.name, line, err}
		}
	}
	if _, err := dec.Token(); err != nil {
		return fail(err)
	}
	limit.left = MaxLine
	if dec.More() {
		return fail(errors.New("more follows the list"))
	}
	return nil
}

// counted notes where lines end.
type counted struct {
	r    io.Reader
	read int64
	ends []int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	for i, b := range p[:n] {
		if b == '\n' {
			c.ends = append(c.ends, c.read+int64(i))
		}
	}
	c.read += int64(n)
	return n, err
}

// line is that of a byte, from 1.
func (c *counted) line(at int64) int {
	i, _ := slices.BinarySearch(c.ends, at)
	return i + 1
}
