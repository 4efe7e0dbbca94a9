//go:build !js || full

package audio

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/jfreymuth/vorbis"
)

// What a file's headers may say, which a decoder sets up before the first sample. Encoders'
// largest codebook has 8,192 entries, and 2^18 values in it.
const (
	maxVorbisEntries = 1 << 14 // of a codebook
	maxVorbisValues  = 1 << 20 // of all codebooks
	maxVorbisWidth   = 256     // values of an entry; encoders' widest have 16
)

// decodeVorbis reads the packets of a Vorbis I stream. The decoder takes what a header says
// for what it is: a header of some bytes makes it allocate without bound, or never end. So
// headers are walked through before (checkVorbisSetup), comments are not handed to it, and
// whatever else it trips over ends here as an error.
func decodeVorbis(packets [][]byte, end int64) (s *Sound, err error) {
	if len(packets) < 3 {
		return nil, fmt.Errorf("audio: Vorbis: %w: %d packets, of which three are headers", ErrShort, len(packets))
	}
	channels, rate, err := checkVorbis(packets[0])
	if err != nil {
		return nil, err
	}
	if len(packets[1]) < 7 || string(packets[1][:7]) != "\x03vorbis" {
		return nil, errors.New("audio: Vorbis: the second packet holds no comments")
	}
	if err := checkVorbisSetup(packets[2]); err != nil {
		return nil, fmt.Errorf("audio: Vorbis: codebooks: %w", err)
	}
	n := 0
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("audio: Vorbis, after %d samples: the file is damaged (%v)", n, r)
		}
	}()
	var d vorbis.Decoder
	for _, header := range [][]byte{packets[0], packets[2]} {
		if err := d.ReadHeader(header); err != nil {
			return nil, fmt.Errorf("audio: %w", err)
		}
	}
	s = &Sound{Rate: rate}
	buffer := make([]float32, d.BufferSize())
	for _, packet := range packets[3:] {
		if len(packet) == 0 {
			continue // says that nothing is there
		}
		out, err := d.DecodeInto(packet, buffer)
		if err != nil {
			return nil, fmt.Errorf("audio: Vorbis, after %d samples: %w", n, err)
		}
		if n += len(out) / channels; n > MaxSamples {
			return nil, tooLong(n)
		}
		for i := range len(out) / channels {
			sum := 0.0
			for _, v := range out[i*channels : (i+1)*channels] {
				sum += float64(v)
			}
			s.Samples = append(s.Samples, float32(sum/float64(channels)))
		}
	}
	if end >= 0 && end < int64(n) { // the last packet has more than was recorded
		s.Samples = s.Samples[:end]
	}
	return s, nil
}

// checkVorbis reads the identification header (Vorbis I specification, 4.2.2).
func checkVorbis(h []byte) (channels, rate int, err error) {
	if len(h) != 30 {
		return 0, 0, fmt.Errorf("audio: Vorbis: the first packet has %d bytes, want 30", len(h))
	}
	channels = int(h[11])
	hz := uint32(h[12]) | uint32(h[13])<<8 | uint32(h[14])<<16 | uint32(h[15])<<24
	rate = int(min(hz, math.MaxInt32))
	if err := checkShape(rate, channels); err != nil {
		return 0, 0, err
	}
	if short, long := h[28]&15, h[28]>>4; short < 6 || long > 13 || short > long {
		return 0, 0, fmt.Errorf("audio: Vorbis: blocks of 2^%d and 2^%d samples, want 6..13, the first not the longer", short, long)
	}
	return channels, rate, nil
}

// bitsOf reads a header bit by bit, least significant first; what lies beyond is short.
type bitsOf struct {
	data  []byte
	at    int
	short bool
}

func (b *bitsOf) take(n int) uint32 {
	v := uint32(0)
	for i := range n {
		if b.at>>3 >= len(b.data) {
			b.short = true
			return 0
		}
		v |= uint32(b.data[b.at>>3]>>(b.at&7)&1) << i
		b.at++
	}
	return v
}

// checkVorbisSetup walks through the setup header (4.2.4) as far as its codebooks, the kinds
// of its floors and the spans of its residues: sizes are within bounds, none is negative, which
// the decoder would take for 2^32 of them, and every code ends, since its words fill a tree.
// Floors of type 0, which encoders do not write, are refused.
func checkVorbisSetup(h []byte) error {
	if len(h) < 8 || string(h[:7]) != "\x05vorbis" {
		return errors.New("the third packet holds none")
	}
	r := &bitsOf{data: h[7:]}
	values := 0
	for i := range int(r.take(8)) + 1 {
		n, err := checkCodebook(r)
		if err == nil && r.short {
			err = ErrShort
		}
		if values += n; err == nil && values > maxVorbisValues {
			err = fmt.Errorf("more than %d values", maxVorbisValues)
		}
		if err != nil {
			return fmt.Errorf("number %d: %w", i+1, err)
		}
	}
	for range r.take(6) + 1 {
		r.take(16)
	}
	for range r.take(6) + 1 {
		if kind := r.take(16); kind != 1 {
			return fmt.Errorf("a floor of type %d, want 1", kind)
		}
		skipFloor(r)
	}
	for range r.take(6) + 1 {
		r.take(16)
		if begin, end := r.take(24), r.take(24); begin > end {
			return fmt.Errorf("a residue from value %d to %d", begin, end)
		}
		skipResidue(r)
	}
	if r.short {
		return ErrShort
	}
	return nil
}

// checkCodebook walks through one (3.2.1) and says how many values it takes.
func checkCodebook(r *bitsOf) (values int, err error) {
	if r.take(24) != 0x564342 {
		return 0, errors.New("it does not begin as one")
	}
	dimensions, entries := int(r.take(16)), int(r.take(24))
	if dimensions < 1 || dimensions > maxVorbisWidth || entries < 2 || entries > maxVorbisEntries {
		return 0, fmt.Errorf("%d entries of %d values, want 2..%d of 1..%d", entries, dimensions, maxVorbisEntries, maxVorbisWidth)
	}
	room := uint64(1) << 32 // of the tree that words of up to 32 bits have
	word := func(length int) error {
		if length > 32 {
			return fmt.Errorf("a word of %d bits, want at most 32", length)
		}
		if part := uint64(1) << (32 - length); part <= room {
			room -= part
			return nil
		}
		return errors.New("it has more words than there is room for")
	}
	if r.take(1) == 0 {
		sparse := r.take(1) == 1
		for range entries {
			if sparse && r.take(1) == 0 {
				continue
			}
			if err := word(int(r.take(5)) + 1); err != nil {
				return 0, err
			}
		}
	} else {
		length := int(r.take(5)) + 1
		for at := 0; at < entries; length++ {
			if length > 32 {
				return 0, errors.New("its words are longer than 32 bits")
			}
			n := int(r.take(bits.Len(uint(entries - at))))
			if n > entries-at {
				return 0, fmt.Errorf("%d words after %d of %d", n, at, entries)
			}
			for range n {
				if err := word(length); err != nil {
					return 0, err
				}
			}
			at += n
		}
	}
	if room != 0 {
		return 0, errors.New("its words leave places of the tree free")
	}
	switch kind := r.take(4); kind {
	case 0:
		return 0, nil
	case 1, 2:
		r.take(32)
		r.take(32)
		width := int(r.take(4)) + 1
		r.take(1)
		n := dimensions * entries
		if kind == 1 { // the largest n whose power is within the entries
			n = int(math.Floor(math.Pow(float64(entries), 1/float64(dimensions))))
		}
		if n < 1 {
			return 0, errors.New("it has no values to choose from")
		}
		for range n {
			r.take(width)
		}
		return dimensions * entries, nil
	default:
		return 0, fmt.Errorf("a table of type %d, want 0 to 2", kind)
	}
}

// skipFloor walks through a floor of type 1 (7.2.2).
func skipFloor(r *bitsOf) {
	classes := make([]int, r.take(5))
	most := 0
	for i := range classes {
		classes[i] = int(r.take(4))
		most = max(most, classes[i])
	}
	var dimensions [16]int
	for i := range most + 1 {
		dimensions[i] = int(r.take(3)) + 1
		sub := r.take(2)
		if sub != 0 {
			r.take(8)
		}
		for range 1 << sub {
			r.take(8)
		}
	}
	r.take(2)
	width := int(r.take(4))
	for _, class := range classes {
		for range dimensions[class] {
			r.take(width)
		}
	}
}

// skipResidue walks through what follows a residue's span (8.6.1).
func skipResidue(r *bitsOf) {
	r.take(24)
	classes := r.take(6) + 1
	r.take(8)
	books := 0
	for range classes {
		passes := r.take(3)
		if r.take(1) == 1 {
			passes |= r.take(5) << 3
		}
		books += bits.OnesCount32(passes)
	}
	for range books {
		r.take(8)
	}
}
