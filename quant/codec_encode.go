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
	n := snappy.MaxEncodedLen(len(src))
	if n < 0 {
		return dst, fmt.Errorf("%w: %d bytes are too many for snappy", ErrRange, len(src))
	}
	at := len(dst)
	dst = grow(dst, n)
	return dst[:at+len(snappy.Encode(dst[at:], src))], nil
}

func encodeS2(dst, src []byte) ([]byte, error) {
	n := s2.MaxEncodedLen(len(src))
	if n < 0 {
		return dst, fmt.Errorf("%w: %d bytes are too many for s2", ErrRange, len(src))
	}
	at := len(dst)
	dst = grow(dst, n)
	return dst[:at+len(s2.EncodeBetter(dst[at:], src))], nil
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
