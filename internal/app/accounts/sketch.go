package accounts

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

const (
	sketchSize      = 256     // hashes kept of a data set
	sketchVersion   = 1       // of its file
	mostSketch      = 1 << 20 // bytes of its file
	mostSketchPaths = 64      // the last ones
)

// A sketch is how a data set is known again: the least of its examples' hashes, which
// are a fair sample of them all, and where its file was.
type sketch struct {
	Version int      `json:"version"`
	Paths   []string `json:"paths"`
	Size    int      `json:"size"`   // different examples, about
	Sample  []string `json:"sample"` // ascending, 16 hexadecimal digits each
}

var errSketch = errors.New("the data set's description cannot be used")

// parseSketch reads one.
func parseSketch(b []byte) (*sketch, error) {
	s := new(sketch)
	if len(b) > mostSketch {
		return nil, fmt.Errorf("%w: %d bytes, limit %d", errSketch, len(b), mostSketch)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("%w: %w", errSketch, err)
	}
	switch {
	case s.Version != sketchVersion:
		return nil, fmt.Errorf("%w: version %d, this program reads %d", errSketch, s.Version, sketchVersion)
	case s.Size < 0 || s.Size > math.MaxInt32 || len(s.Sample) > sketchSize || len(s.Sample) > s.Size || len(s.Paths) > mostSketchPaths:
		return nil, fmt.Errorf("%w: size %d, sample of %d, %d paths", errSketch, s.Size, len(s.Sample), len(s.Paths))
	}
	for i, h := range s.Sample {
		if b, err := hex.DecodeString(h); err != nil || len(b) != 8 || i > 0 && s.Sample[i-1] >= h {
			return nil, fmt.Errorf("%w: sample %d", errSketch, i)
		}
	}
	return s, nil
}

// least is a sample of hashes.
func least(hashes map[string]bool) []string {
	all := make([]string, 0, len(hashes))
	for h := range hashes {
		all = append(all, h)
	}
	slices.Sort(all)
	return all[:min(len(all), sketchSize)]
}

// same reports whether a data set is the one that the sketch is of: its file is where
// that was, or they share half of the smaller one.
func (s *sketch) same(hashes map[string]bool, path string) bool {
	if slices.Contains(s.Paths, path) {
		return true
	}
	shared := s.shared(hashes)
	return shared > 0 && 2*shared >= float64(min(s.Size, len(hashes)))
}

// shared is about how many of the hashes are the sketch's as well.
func (s *sketch) shared(hashes map[string]bool) float64 {
	hits := 0
	for _, h := range s.Sample {
		if hashes[h] {
			hits++
		}
	}
	if hits == 0 {
		return 0
	}
	return float64(hits) / float64(len(s.Sample)) * float64(s.Size)
}

// grow takes in what the data set has become.
func (s *sketch) grow(hashes map[string]bool, path string) {
	s.Size += len(hashes) - min(len(hashes), int(math.Round(s.shared(hashes))))
	s.sample(least(hashes))
	s.Paths = append(slices.DeleteFunc(s.Paths, func(p string) bool { return p == path }), path)
	s.Paths = s.Paths[max(0, len(s.Paths)-mostSketchPaths):]
}

// join takes in another sketch of the same data set.
func (s *sketch) join(other *sketch) {
	s.Size = min(s.Size+other.Size, math.MaxInt32)
	s.sample(other.Sample)
	s.Paths = append(other.Paths, s.Paths...)
}

// sample is the least of what both are samples of.
func (s *sketch) sample(other []string) {
	union := map[string]bool{}
	for _, h := range append(slices.Clone(other), s.Sample...) {
		union[h] = true
	}
	s.Sample = least(union)
	s.Size = max(s.Size, len(s.Sample))
}
