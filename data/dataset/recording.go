package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/starling-fl/starling/data/audio"
)

// Recording is a sound, in place of a text.
type Recording struct {
	sound *audio.Sound                 // nil: read gives it
	read  func() (*audio.Sound, error) // nil: it is decoded
	sum   []byte                       // of its file; nil: it has none
	file  string                       // its path; "": it has none
}

// File is the path of its file, as it was given; "" where it has none.
func (r *Recording) File() string { return r.file }

// Recorded is a recording of samples that are at hand.
func Recorded(s *audio.Sound) (*Recording, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	return &Recording{sound: s}, nil
}

// DeferredRecording returns a recording that is decoded at each use: decoded samples take four times the file's
// memory.
func DeferredRecording(read func() (*audio.Sound, error)) *Recording { return &Recording{read: read} }

// Decoded are its samples.
func (r *Recording) Decoded() (*audio.Sound, error) {
	if r.read == nil {
		return r.sound, nil
	}
	got, err := r.read()
	if err != nil {
		return nil, err
	}
	return got, got.Check()
}

// Identity identifies a recording: the hash of its file where it has one, else its rate and samples, big-endian;
// empty for a DeferredRecording.
func (r *Recording) Identity() []byte {
	if r.sum != nil || r.sound == nil {
		return r.sum
	}
	out := binary.BigEndian.AppendUint32(make([]byte, 0, 4+4*len(r.sound.Samples)), uint32(r.sound.Rate))
	for _, v := range r.sound.Samples {
		out = binary.BigEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// Speaker returns the speaker that a recording's name gives: in Speech Commands (Warden 2018) a hash, "_nohash_"
// and a number; see spokenDigit for the Free Spoken Digit Dataset. "" for other names.
func Speaker(name string) string {
	if who, _, ok := strings.Cut(filepath.Base(name), "_nohash_"); ok {
		return who
	}
	_, who, _ := spokenDigit(name)
	return who
}

// spokenDigit takes a name of the Free Spoken Digit Dataset (Jackson et al. 2018) apart:
// digit, speaker and number, as 7_jackson_32.wav.
func spokenDigit(name string) (digit, who string, ok bool) {
	base := filepath.Base(name)
	parts := strings.Split(strings.TrimSuffix(base, filepath.Ext(base)), "_")
	if len(parts) != 3 || !audio.Named(base) || len(parts[0]) != 1 || parts[0] < "0" || parts[0] > "9" || parts[1] == "" || len(parts[1]) > 64 {
		return "", "", false
	}
	if _, err := strconv.ParseUint(parts[2], 10, 32); err != nil {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// beside is the path of a file that a line's key names, in the line's file's folder or below
// it.
func (s *scanner) beside(key, path string) (string, error) {
	at, err := within(filepath.Dir(s.name), path)
	if err != nil {
		return "", fmt.Errorf("%q: %w", key, err)
	}
	return at, nil
}

// checkTranscript refuses what is no text of what is said in a recording.
func (l labelled) checkTranscript() error {
	switch {
	case strings.TrimSpace(l.Text) == "":
		return errors.New("text is empty: give what is said in the recording")
	case !utf8.ValidString(l.Text) || strings.IndexByte(l.Text, 0) >= 0 || !utf8.ValidString(l.User) || !utf8.ValidString(l.Provider):
		return errNotText
	}
	return nil
}
