//go:build !js || full

package quant

import (
	"fmt"
	"sync"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

func encodeSnappy(dst, src []byte) ([]byte, error) {
	return encodeBlock("snappy", dst, src, snappy.MaxEncodedLen, snappy.Encode)
}

func encodeS2(dst, src []byte) ([]byte, error) {
	return encodeBlock("s2", dst, src, s2.MaxEncodedLen, s2.EncodeBetter)
}

// encodeBlock appends a block of at most so many bytes; most is negative for too many.
func encodeBlock(name string, dst, src []byte, most func(int) int, encode func(dst, src []byte) []byte) ([]byte, error) {
	n := most(len(src))
	if n < 0 {
		return dst, fmt.Errorf("%w: %d bytes are too many for %s", ErrRange, len(src), name)
	}
	at := len(dst)
	dst = grow(dst, n)
	return dst[:at+len(encode(dst[at:], src))], nil
}

func encodeZstd(dst, src []byte) ([]byte, error) {
	enc, err := zstdEncoder()
	if err != nil {
		return dst, fmt.Errorf("quant: zstd: %w", err)
	}
	return enc.EncodeAll(src, dst), nil
}

// The zstd encoder is stateless through EncodeAll and safe for concurrent use.
var zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
})
