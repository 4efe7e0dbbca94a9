package audio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Formats of samples, as the first two bytes of a "fmt " chunk say them.
const (
	wavPCM        = 1
	wavFloat      = 3
	wavExtensible = 0xfffe // the format stands further back
)

// wavSample is how one sample becomes a number, by format and bits.
var wavSample = map[[2]int]func(b []byte) float64{
	{wavPCM, 8}:  func(b []byte) float64 { return (float64(b[0]) - 128) / 128 },
	{wavPCM, 16}: func(b []byte) float64 { return float64(int16(binary.LittleEndian.Uint16(b))) / (1 << 15) },
	{wavPCM, 24}: func(b []byte) float64 {
		return float64(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24)) / (1 << 31)
	},
	{wavPCM, 32}:   func(b []byte) float64 { return float64(int32(binary.LittleEndian.Uint32(b))) / (1 << 31) },
	{wavFloat, 32}: func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) },
	{wavFloat, 64}: func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) },
}

// decodeWAV reads a RIFF file of form WAVE. Chunks that are not "fmt " or "data" are
// skipped; a length of data that is 0xffffffff, as programs write that do not know it yet,
// is what there is.
func decodeWAV(data []byte) (*Sound, error) {
	if len(data) < 12 || string(data[8:12]) != "WAVE" {
		return nil, fmt.Errorf("%w: a RIFF file whose form is not WAVE", ErrFormat)
	}
	var format *wavFormat
	for at := 12; ; {
		if len(data)-at < 8 {
			return nil, errors.New("audio: the WAV file has no chunk \"data\"")
		}
		name, size := string(data[at:at+4]), int64(binary.LittleEndian.Uint32(data[at+4:]))
		at += 8
		left := int64(len(data) - at)
		if name == "data" && size == math.MaxUint32 {
			size = left
		}
		if size > left {
			return nil, fmt.Errorf("%w: chunk %q has %d bytes, of which %d are there", ErrShort, name, size, left)
		}
		body := data[at : at+int(size)]
		switch name {
		case "fmt ":
			var err error
			if format, err = parseWAVFormat(body); err != nil {
				return nil, err
			}
		case "data":
			if format == nil {
				return nil, errors.New("audio: the WAV file has samples before their format")
			}
			return format.samples(body)
		}
		at += int(min(size+size%2, left)) // chunks begin at even places
	}
}

type wavFormat struct {
	rate, channels, width int // width in bytes of a sample
	sample                func(b []byte) float64
}

func parseWAVFormat(b []byte) (*wavFormat, error) {
	if len(b) < 16 {
		return nil, fmt.Errorf("audio: the WAV file's format has %d bytes, want 16 or more", len(b))
	}
	kind, channels := int(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:]))
	rate, block, bits := binary.LittleEndian.Uint32(b[4:]), int(binary.LittleEndian.Uint16(b[12:])), int(binary.LittleEndian.Uint16(b[14:]))
	if kind == wavExtensible && len(b) >= 26 {
		kind = int(binary.LittleEndian.Uint16(b[24:]))
	}
	if err := checkShape(int(min(rate, math.MaxInt32)), channels); err != nil {
		return nil, err
	}
	sample, ok := wavSample[[2]int{kind, bits}]
	if !ok {
		return nil, fmt.Errorf("audio: WAV samples of format %d with %d bits, want PCM (1) of 8, 16, 24 or 32, or numbers (3) of 32 or 64", kind, bits)
	}
	if block != channels*bits/8 {
		return nil, fmt.Errorf("audio: a block of the WAV file has %d bytes, want %d for %d channels of %d bits", block, channels*bits/8, channels, bits)
	}
	return &wavFormat{int(rate), channels, bits / 8, sample}, nil
}

func (f *wavFormat) samples(b []byte) (*Sound, error) {
	block := f.channels * f.width
	n := len(b) / block
	switch {
	case len(b)%block != 0:
		return nil, fmt.Errorf("%w: %d bytes are no whole number of blocks of %d", ErrShort, len(b), block)
	case n == 0:
		return nil, ErrEmpty
	case n > MaxSamples:
		return nil, tooLong(n)
	}
	s := &Sound{Rate: f.rate, Samples: make([]float32, n)}
	for i := range s.Samples {
		sum := 0.0
		for c := range f.channels {
			sum += f.sample(b[i*block+c*f.width:])
		}
		s.Samples[i] = float32(sum / float64(f.channels))
	}
	return s, nil
}

// EncodeWAV encodes a recording as a WAV file of 16 bits; samples beyond -1..1 are cut off.
func EncodeWAV(s *Sound) ([]byte, error) {
	if err := checkShape(s.Rate, 1); err != nil {
		return nil, err
	}
	if len(s.Samples) > MaxSamples {
		return nil, tooLong(len(s.Samples))
	}
	size := 2 * len(s.Samples)
	out := make([]byte, 0, 44+size)
	le := binary.LittleEndian
	out = le.AppendUint32(append(out, "RIFF"...), uint32(36+size))
	out = le.AppendUint32(append(out, "WAVEfmt "...), 16)
	out = le.AppendUint16(le.AppendUint16(out, wavPCM), 1)
	out = le.AppendUint32(le.AppendUint32(out, uint32(s.Rate)), uint32(2*s.Rate))
	out = le.AppendUint16(le.AppendUint16(out, 2), 16)
	out = le.AppendUint32(append(out, "data"...), uint32(size))
	for _, v := range s.Samples {
		x := math.RoundToEven(float64(v) * (1 << 15))
		out = le.AppendUint16(out, uint16(int16(max(math.MinInt16, min(math.MaxInt16, x)))))
	}
	return out, nil
}
