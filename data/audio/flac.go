//go:build !js || full

package audio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/frame"
	"github.com/mewkiz/flac/meta"
)

// decodeFLAC reads a FLAC stream whose first block describes it, as RFC 9639 asks.
func decodeFLAC(data []byte) (*Sound, error) {
	const header, described = 8, 34
	if len(data) < header+described || data[4]&0x7f != 0 || binary.BigEndian.Uint32(data[4:])&0xffffff != described {
		return nil, errors.New("audio: the FLAC file does not begin with its description (STREAMINFO)")
	}
	stream, err := flac.New(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("audio: FLAC: %w", err)
	}
	info := stream.Info
	channels := int(info.NChannels)
	if err := checkShape(int(info.SampleRate), channels); err != nil {
		return nil, err
	}
	if info.BitsPerSample < 4 || info.BitsPerSample > 32 {
		return nil, fmt.Errorf("audio: FLAC samples of %d bits, want 4..32", info.BitsPerSample)
	}
	if info.NSamples > MaxSamples {
		return nil, tooLong(int(min(info.NSamples, 1<<36)))
	}
	scale := 1 / (float64(channels) * float64(int64(1)<<(info.BitsPerSample-1)))
	s := &Sound{Rate: int(info.SampleRate)}
	for {
		f, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			if err = describedBy(info, f); err == nil {
				err = f.Parse()
			}
		}
		if err != nil {
			return nil, fmt.Errorf("audio: FLAC, after %d samples: %w", len(s.Samples), err)
		}
		n := len(f.Subframes[0].Samples)
		if n+len(s.Samples) > MaxSamples {
			return nil, tooLong(n + len(s.Samples))
		}
		for i := range n {
			sum := int64(0)
			for _, sub := range f.Subframes {
				if len(sub.Samples) != n {
					return nil, fmt.Errorf("audio: FLAC, after %d samples: channels of different lengths", len(s.Samples))
				}
				sum += int64(sub.Samples[i])
			}
			s.Samples = append(s.Samples, float32(float64(sum)*scale))
		}
	}
	if want := info.NSamples; want > 0 && uint64(len(s.Samples)) != want {
		return nil, fmt.Errorf("%w: it says %d samples, and %d are there", ErrShort, want, len(s.Samples))
	}
	return s, nil
}

// describedBy refuses a frame that is not as the file's description says, before its samples
// are read, and completes one that leaves the bits of a sample to the description (RFC 9639,
// section 9.1.4): the reader takes them for none.
func describedBy(info *meta.StreamInfo, f *frame.Frame) error {
	if f.BitsPerSample == 0 {
		f.BitsPerSample = info.BitsPerSample
	}
	switch channels := f.Channels.Count(); {
	case channels != int(info.NChannels):
		return fmt.Errorf("a frame has %d channels, and the file %d", channels, info.NChannels)
	case f.BitsPerSample != info.BitsPerSample:
		return fmt.Errorf("a frame has samples of %d bits, and the file of %d", f.BitsPerSample, info.BitsPerSample)
	case f.SampleRate != 0 && f.SampleRate != info.SampleRate:
		return fmt.Errorf("a frame has %d samples a second, and the file %d", f.SampleRate, info.SampleRate)
	case f.BitsPerSample == 32 && f.Channels >= frame.ChannelsLeftSide:
		return errors.New("samples of 32 bits as a difference of channels, which takes 33: store it with 24 bits")
	}
	return nil
}
