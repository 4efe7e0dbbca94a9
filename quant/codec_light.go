//go:build js && !full

package quant

import "fmt"

// A browser's device decodes what it is sent and compresses nothing: what it
// sends is masked. The light build leaves the encoders out.

func encodeSnappy(dst, _ []byte) ([]byte, error) { return dst, errLight("snappy") }
func encodeS2(dst, _ []byte) ([]byte, error)     { return dst, errLight("s2") }
func encodeZstd(dst, _ []byte) ([]byte, error)   { return dst, errLight("zstd") }

func errLight(codec string) error {
	return fmt.Errorf("%w: the light build cannot encode %s", ErrUnknown, codec)
}
