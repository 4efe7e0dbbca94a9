package secagg

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
)

// The mask generator is AES-128 in counter mode with a zero initial counter,
// under a key used for one mask only. The key stream is cut into little-endian
// lanes of 16 bits for rings of at most 16 bits, else of 32 bits; lane i reduced
// mod 2^b masks symbol i.

const maskKeyLen = 16

type maskKey [maskKeyLen]byte

// maxStreams bounds the key streams summed at a time, and so memory: about 1 KB each.
const maxStreams = 4096

// addMasks adds to v the masks of plus and takes off those of minus, mod 2^32
// if lanes are 32 bits wide, else mod 2^16: in both cases right mod 2^width.
//
// Lanes are summed many at a time in 64-bit words. For each word two sums are
// kept over all key streams: s of the words as they are, and e of the words
// with every other lane cleared. The lanes of e have room for carries (2^16 streams), and
// s-e is exactly the sum of the words with the remaining lanes, because addition
// mod 2^64 is associative. addMasksPlain is the same in plain code.
func addMasks(v []uint32, plus, minus []maskKey, width int) {
	for len(plus) > maxStreams || len(minus) > maxStreams {
		p, m := min(len(plus), maxStreams), min(len(minus), maxStreams)
		addMasks(v, plus[:p], minus[:m], width)
		plus, minus = plus[p:], minus[m:]
	}
	const block = 4096 // bytes of key stream at a time: buffers stay in the first cache level
	var (
		zero [block]byte
		ks   [4][block]byte
		s, e [block / 8]uint64
	)
	lanes, even := 4, uint64(0x0000ffff0000ffff)
	if width > 16 {
		lanes, even = 2, 0x00000000ffffffff
	}
	pos, neg := streams(plus), streams(minus)
	for base := 0; base < len(v); base += block / 8 * lanes {
		words := min((len(v)-base+lanes-1)/lanes, block/8)
		out := v[base:min(base+words*lanes, len(v))]
		// What is added; then, on the negated sum, what is taken off; negated
		// back at the end.
		for _, group := range [2][]cipher.Stream{pos, neg} {
			if len(group) > 0 {
				clear(s[:words])
				clear(e[:words])
				for len(group) > 0 {
					k := min(len(group), 4)
					for j := range k {
						group[j].XORKeyStream(ks[j][:words*8], zero[:words*8])
					}
					sumStreams(s[:words], e[:words], &ks, k, even)
					group = group[k:]
				}
				fold(out, s[:words], e[:words], lanes)
			}
			for i := range out {
				out[i] = -out[i]
			}
		}
	}
	for j := range ks {
		clear(ks[j][:])
	}
}

// sumStreams adds the words of k <= 4 key streams.
func sumStreams(s, e []uint64, ks *[4][4096]byte, k int, even uint64) {
	e = e[:len(s)]
	if k == 4 {
		a, b, c, d := ks[0][:len(s)*8], ks[1][:len(s)*8], ks[2][:len(s)*8], ks[3][:len(s)*8]
		for i := range s {
			w := binary.LittleEndian.Uint64(a[i*8:])
			x := binary.LittleEndian.Uint64(b[i*8:])
			y := binary.LittleEndian.Uint64(c[i*8:])
			z := binary.LittleEndian.Uint64(d[i*8:])
			s[i] += w + x + y + z
			e[i] += w&even + x&even + y&even + z&even
		}
		return
	}
	for j := range k {
		a := ks[j][:len(s)*8]
		for i := range s {
			w := binary.LittleEndian.Uint64(a[i*8:])
			s[i] += w
			e[i] += w & even
		}
	}
}

// fold adds the lane sums to v.
func fold(v []uint32, s, e []uint64, lanes int) {
	var lane [4]uint32
	for i := range s {
		o := s[i] - e[i] // sums of the odd lanes, at their places
		if lanes == 4 {
			lane[0], lane[1] = uint32(e[i]), uint32(o>>16)
			lane[2], lane[3] = uint32(e[i]>>32), uint32(o>>48)
		} else {
			lane[0], lane[1] = uint32(e[i]), uint32(o>>32)
		}
		for j := range min(lanes, len(v)-i*lanes) {
			v[i*lanes+j] += lane[j]
		}
	}
}

func streams(keys []maskKey) []cipher.Stream {
	out := make([]cipher.Stream, len(keys))
	var iv [aes.BlockSize]byte
	for i := range keys {
		b, err := aes.NewCipher(keys[i][:])
		if err != nil {
			panic(err) // a 16-byte key is always accepted
		}
		out[i] = cipher.NewCTR(b, iv[:])
	}
	return out
}

// addMasksPlain is the definition that addMasks is tested against.
func addMasksPlain(v []uint32, plus, minus []maskKey, width int) {
	lane := 2
	if width > 16 {
		lane = 4
	}
	ks := make([]byte, len(v)*lane)
	for g, group := range [2][]cipher.Stream{streams(plus), streams(minus)} {
		for _, stream := range group {
			clear(ks)
			stream.XORKeyStream(ks, ks)
			for i := range v {
				var m uint32
				if lane == 2 {
					m = uint32(binary.LittleEndian.Uint16(ks[i*2:]))
				} else {
					m = binary.LittleEndian.Uint32(ks[i*4:])
				}
				if g == 0 {
					v[i] += m
				} else {
					v[i] -= m
				}
			}
		}
	}
}
