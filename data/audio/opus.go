//go:build !js || full

package audio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/pion/opus"
)

const (
	opusRate = 48_000              // what Opus is decoded at, whatever was recorded
	opusMost = opusRate * 12 / 100 // samples of a packet
)

// decodeOpus reads the packets of Opus in Ogg (RFC 7845) with one or two channels.
func decodeOpus(packets [][]byte, end int64) (s *Sound, err error) {
	h := packets[0]
	switch {
	case len(h) < 19:
		return nil, fmt.Errorf("audio: Opus: the first packet has %d bytes, want 19 or more", len(h))
	case h[8]>>4 != 0:
		return nil, fmt.Errorf("audio: Opus of version %d, want 0 to 15", h[8])
	case h[18] != 0 || h[9] < 1 || h[9] > 2:
		return nil, fmt.Errorf("audio: Opus with %d channels, mapped by family %d: want one or two channels", h[9], h[18])
	case len(packets) < 2 || len(packets[1]) < 8 || string(packets[1][:8]) != "OpusTags":
		return nil, errors.New("audio: Opus: the second packet holds no comments")
	}
	channels, skip := int(h[9]), int(binary.LittleEndian.Uint16(h[10:]))
	gain := math.Pow(10, float64(int16(binary.LittleEndian.Uint16(h[16:])))/(20*256))
	n := 0
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("audio: Opus, after %d samples: the file is damaged (%v)", n, r)
		}
	}()
	d, err := opus.NewDecoderWithOutput(opusRate, channels)
	if err != nil {
		return nil, fmt.Errorf("audio: %w", err)
	}
	s = &Sound{Rate: opusRate}
	buffer := make([]float32, opusMost*channels)
	scale := gain / float64(channels)
	for _, packet := range packets[2:] {
		got, err := d.DecodeToFloat32(packet, buffer)
		if err != nil {
			return nil, fmt.Errorf("audio: Opus, after %d samples: %w", n, err)
		}
		if n += got; n > MaxSamples {
			return nil, tooLong(n)
		}
		for i := range got {
			sum := 0.0
			for _, v := range buffer[i*channels : (i+1)*channels] {
				sum += float64(v)
			}
			s.Samples = append(s.Samples, float32(sum*scale))
		}
	}
	if end >= 0 && end < int64(n) { // the last packet has more than was recorded
		s.Samples = s.Samples[:end]
	}
	s.Samples = s.Samples[min(skip, len(s.Samples)):] // what a decoder needs to get going
	return s, nil
}
