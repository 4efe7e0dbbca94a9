//go:build !js || full

package audio

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// maxOggPackets bounds what a file of a few bytes a packet makes a reader do.
const maxOggPackets = 1 << 20

// oggPackets takes an Ogg file (RFC 3533) apart. It holds one stream alone, as recordings do;
// end is how many samples the last page says that there are, -1 where it says none.
func oggPackets(data []byte) (packets [][]byte, end int64, err error) {
	const header = 27
	end = -1
	var open []byte // a packet that goes on on the next page
	going, serial, last := false, uint32(0), false
	for page := uint32(0); len(data) > 0; page++ {
		bad := func(format string, args ...any) ([][]byte, int64, error) {
			return nil, 0, fmt.Errorf("audio: Ogg, page %d: %w", page+1, fmt.Errorf(format, args...))
		}
		if len(data) < header {
			return bad("%w: %d bytes of %d", ErrShort, len(data), header)
		}
		if string(data[:4]) != "OggS" || data[4] != 0 {
			return bad("it begins with %q, want OggS and version 0", data[:5])
		}
		flags, segments := data[5], int(data[26])
		position := int64(binary.LittleEndian.Uint64(data[6:]))
		size := header + segments
		if len(data) >= size {
			for _, n := range data[header:size] {
				size += int(n)
			}
		}
		if len(data) < size {
			return bad("%w: %d bytes of %d", ErrShort, len(data), size)
		}
		switch {
		case last:
			return bad("another stream follows the first: want one recording in a file")
		case page == 0:
			serial = binary.LittleEndian.Uint32(data[14:])
		case binary.LittleEndian.Uint32(data[14:]) != serial:
			return bad("it has several streams beside each other: want one recording in a file")
		}
		if n := binary.LittleEndian.Uint32(data[18:]); n != page {
			return bad("it is numbered %d, so pages are missing", n)
		}
		if got, want := oggSum(data[:size]), binary.LittleEndian.Uint32(data[22:]); got != want {
			return bad("its checksum is %08x, and its content's %08x: the file is damaged", want, got)
		}
		if (flags&1 != 0) != going {
			return bad("a packet goes on that has not begun, or ends without its end")
		}
		body := data[header+segments : size]
		for _, n := range data[header : header+segments] {
			open, body = append(open, body[:n]...), body[n:]
			if going = n == 255; going {
				continue
			}
			if len(packets) == maxOggPackets {
				return bad("more than %d packets", maxOggPackets)
			}
			packets = append(packets, open[:len(open):len(open)])
			open = nil
		}
		if position >= 0 {
			end = position
		}
		last = flags&4 != 0
		data = data[size:]
	}
	if going {
		return nil, 0, fmt.Errorf("audio: Ogg: %w: the last packet has no end", ErrShort)
	}
	if len(packets) == 0 {
		return nil, 0, ErrEmpty
	}
	return packets, end, nil
}

// oggSum is a page's checksum: CRC-32 by the polynomial 04c11db7, most significant bit first,
// from 0, with the checksum itself as zeros.
func oggSum(page []byte) uint32 {
	sum := uint32(0)
	for i, b := range page {
		if i >= 22 && i < 26 {
			b = 0
		}
		sum = sum<<8 ^ oggTable[byte(sum>>24)^b]
	}
	return sum
}

var oggTable = func() (t [256]uint32) {
	for i := range t {
		r := uint32(i) << 24
		for range 8 {
			if r&(1<<31) != 0 {
				r = r<<1 ^ 0x04c11db7
			} else {
				r <<= 1
			}
		}
		t[i] = r
	}
	return t
}()

// decodeOgg reads Vorbis and Opus in Ogg, and says what else it is.
func decodeOgg(data []byte) (*Sound, error) {
	packets, end, err := oggPackets(data)
	if err != nil {
		return nil, err
	}
	switch first := packets[0]; {
	case bytes.HasPrefix(first, []byte("\x01vorbis")):
		return decodeVorbis(packets, end)
	case bytes.HasPrefix(first, []byte("OpusHead")):
		return decodeOpus(packets, end)
	case bytes.HasPrefix(first, []byte("\x7fFLAC")):
		return nil, fmt.Errorf("%w: it is FLAC in Ogg: convert it, as by `ffmpeg -i in.oga out.flac`", ErrFormat)
	case bytes.HasPrefix(first, []byte("Speex")):
		return nil, fmt.Errorf("%w: it is Speex: convert it, as by `ffmpeg -i in.spx out.flac`", ErrFormat)
	}
	return nil, fmt.Errorf("%w: an Ogg file that begins with %q, want Vorbis or Opus", ErrFormat, packets[0][:min(8, len(packets[0]))])
}
