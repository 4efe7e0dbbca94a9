package quant

import (
	"fmt"
	"strings"
	"sync"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Codec is a lossless byte compressor for data that is not masked. Masked bytes are uniformly
// distributed, so no codec can shorten them.
type Codec struct {
	spec *codecSpec
}

type codecSpec struct {
	id     byte // in the header of a compressed vector; never reused
	name   string
	encode func(dst, src []byte) ([]byte, error) // appends
	// decode fills dst, which is as long as the plain bytes are known to be.
	decode func(dst, src []byte) error
}

var codecs = []*codecSpec{&codecNone, &codecSnappy, &codecS2, &codecZstd}

// LookupCodec returns the codec of that name: none (or ""), snappy, s2 or
// zstd. The error wraps ErrUnknown.
func LookupCodec(name string) (Codec, error) {
	if name == "" {
		name = codecNone.name
	}
	for _, c := range codecs {
		if c.name == name {
			return Codec{c}, nil
		}
	}
	return Codec{}, fmt.Errorf("%w: codec %q (have %s)", ErrUnknown, name, strings.Join(CodecNames(), ", "))
}

// CodecNames lists the codecs.
func CodecNames() []string {
	names := make([]string, len(codecs))
	for i, c := range codecs {
		names[i] = c.name
	}
	return names
}

// Name returns the name by which LookupCodec finds the codec.
func (c Codec) Name() string { return c.spec.name }

// Append appends src, compressed, to dst.
func (c Codec) Append(dst, src []byte) ([]byte, error) { return c.spec.encode(dst, src) }

// Decode fills dst with the decompressed src; the error wraps ErrCorrupt
// unless src holds exactly len(dst) bytes.
func (c Codec) Decode(dst, src []byte) error { return c.spec.decode(dst, src) }

var codecNone = codecSpec{id: 0, name: "none",
	encode: func(dst, src []byte) ([]byte, error) { return append(dst, src...), nil },
	decode: func(dst, src []byte) error {
		if len(src) != len(dst) {
			return fmt.Errorf("%w: %d bytes, need %d", ErrCorrupt, len(src), len(dst))
		}
		copy(dst, src)
		return nil
	}}

// codecSnappy is the block format, without framing or checksums; s2 extends it.
var (
	codecSnappy = codecSpec{id: 1, name: "snappy", encode: encodeSnappy, decode: blockDecoder("snappy", snappy.DecodedLen, snappy.Decode)}
	codecS2     = codecSpec{id: 2, name: "s2", encode: encodeS2, decode: blockDecoder("s2", s2.DecodedLen, s2.Decode)}
)

// blockDecoder asks for the length that a block says of itself before it decodes it.
func blockDecoder(name string, length func([]byte) (int, error), decode func(dst, src []byte) ([]byte, error)) func(dst, src []byte) error {
	return func(dst, src []byte) error {
		n, err := length(src)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, name, err)
		}
		if n != len(dst) {
			return fmt.Errorf("%w: %s: holds %d bytes, need %d", ErrCorrupt, name, n, len(dst))
		}
		if _, err := decode(dst, src); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, name, err)
		}
		return nil
	}
}

// codecZstd is one zstd frame with its content size and without checksum.
var codecZstd = codecSpec{id: 3, name: "zstd",
	encode: encodeZstd,
	decode: func(dst, src []byte) error {
		dec, err := zstdDecoder()
		if err != nil {
			return fmt.Errorf("quant: zstd: %w", err)
		}
		// The decoder is limited to dst's capacity; one that ends early, or
		// would not fit, is refused without growing.
		out, err := dec.DecodeAll(src, dst[:0:len(dst)])
		if err != nil {
			return fmt.Errorf("%w: zstd: %w", ErrCorrupt, err)
		}
		if len(out) != len(dst) {
			return fmt.Errorf("%w: zstd: holds %d bytes, need %d", ErrCorrupt, len(out), len(dst))
		}
		if len(dst) > 0 && &out[0] != &dst[0] {
			copy(dst, out)
		}
		return nil
	}}

// The zstd decoder is stateless through DecodeAll and safe for concurrent use;
// making one takes longer than using it.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
})
