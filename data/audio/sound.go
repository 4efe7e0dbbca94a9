package audio

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// Limits of a recording.
const (
	MaxSamples  = 1 << 23   // of a channel: three minutes at 44.1 kHz, nearly nine at 16 kHz
	MaxChannels = 8         // which are brought to one
	LeastRate   = 4_000     // samples a second
	MostRate    = 192_000   // samples a second
	MaxFile     = 256 << 20 // bytes of a file
)

// Sound is a recording of one channel.
type Sound struct {
	Rate    int       // samples a second
	Samples []float32 // about -1..1
}

// Causes for which a recording is refused.
var (
	ErrFormat = errors.New("audio: neither WAV nor FLAC")
	// ErrConvert is a format that other programs, and browsers, decode.
	ErrConvert = errors.New("audio: neither WAV nor FLAC: convert it first, as by ffmpeg -i FILE FILE.flac")
	ErrEmpty   = errors.New("audio: no samples")
	ErrSilent  = errors.New("audio: every sample is the same, so nothing is heard: was the microphone muted?")
	ErrShort   = errors.New("audio: the file ends before its samples do")
)

// Named reports whether a file's name is that of a recording that Decode reads.
func Named(name string) bool {
	return slices.Contains([]string{".wav", ".wave", ".flac"}, strings.ToLower(filepath.Ext(name)))
}

// Decode reads a WAV or FLAC file. Channels are brought to one by their mean.
func Decode(data []byte) (*Sound, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("audio: the file has %d bytes, the limit is %d", len(data), MaxFile)
	}
	var s *Sound
	var err error
	switch {
	case bytes.HasPrefix(data, []byte("RIFF")):
		s, err = decodeWAV(data)
	case bytes.HasPrefix(data, []byte("fLaC")):
		s, err = decodeFLAC(data)
	case bytes.HasPrefix(data, []byte("OggS")), bytes.HasPrefix(data, []byte("ID3")):
		err = ErrConvert
	default:
		err = ErrFormat
	}
	if err != nil {
		return nil, err
	}
	return s, s.Check()
}

// Check refuses a recording from which nothing can be learnt.
func (s *Sound) Check() error {
	if err := checkShape(s.Rate, 1); err != nil {
		return err
	}
	switch n := len(s.Samples); {
	case n == 0:
		return ErrEmpty
	case n > MaxSamples:
		return tooLong(n)
	}
	silent := true
	for i, v := range s.Samples {
		if d := float64(v); math.IsNaN(d) || math.Abs(d) > 1e6 {
			return fmt.Errorf("audio: sample %d is %v, want a number of about -1 to 1", i, v)
		}
		silent = silent && v == s.Samples[0]
	}
	if silent {
		return ErrSilent
	}
	return nil
}

// Seconds is the length of the recording.
func (s *Sound) Seconds() float64 { return float64(len(s.Samples)) / float64(s.Rate) }

func checkShape(rate, channels int) error {
	switch {
	case rate < LeastRate || rate > MostRate:
		return fmt.Errorf("audio: %d samples a second, want %d..%d", rate, LeastRate, MostRate)
	case channels < 1 || channels > MaxChannels:
		return fmt.Errorf("audio: %d channels, want 1..%d", channels, MaxChannels)
	}
	return nil
}

func tooLong(n int) error {
	return fmt.Errorf("audio: %d samples, the limit is %d: cut the recording into pieces", n, MaxSamples)
}
